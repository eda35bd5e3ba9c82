"""One log stream on stderr: structured, UTC, without secrets and without request bodies.

Ours and foreign records (aiohttp, asyncio, kubernetes_asyncio through the standard library) take the same way
out. Foreign loggers speak at WARNING and above whatever our level is: kubernetes_asyncio logs response bodies
at DEBUG, Secrets included (facts 1.9). Tracebacks show no local variables, for the same reason.
"""

import logging
import os
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import Processor

Format = Literal["auto", "json", "console"]
Level = Literal["debug", "info", "warning", "error"]

OUR_LOGGER = "modelfleet"

REDACTED = "[redacted]"
_SECRET_KEYS = frozenset(
    {"authorization", "token", "password", "secret", "api_key", "body", "data", "string_data"}
)
_CREDENTIAL = re.compile(r"\b(Bearer|Basic) +[\w.~+/=-]{8,}", re.IGNORECASE)
_MESSAGE_KEY = "msg"
"""As in klog and zap, so that one query finds the lines of every controller in a cluster."""


def configure_logging(level: Level = "info", style: Format = "auto", stream: TextIO | None = None) -> None:
    """Set up structlog and the standard library once, at the start of a process.

    Args:
        level: Of our own loggers.
        style: `auto` is console on a terminal and JSON elsewhere.
        stream: Default stderr; stdout is for the output of commands.
    """
    stream = stream or sys.stderr
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        redact,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *before,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=before,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendering(style, stream),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OUR_LOGGER).setLevel(level.upper())
    logging.captureWarnings(capture=True)


def redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The last line of defence: hide values under telling keys and credentials inside texts."""
    for key, value in event.items():
        if key.lower() in _SECRET_KEYS:
            event[key] = REDACTED
        elif isinstance(value, str):
            event[key] = _CREDENTIAL.sub(rf"\1 {REDACTED}", value)
    return event


def _rendering(style: Format, stream: TextIO) -> list[Processor]:
    if style == "json" or (style == "auto" and not stream.isatty()):
        return [
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer(_MESSAGE_KEY),
            structlog.processors.JSONRenderer(),
        ]
    colors = stream.isatty() and not os.environ.get("NO_COLOR")  # https://no-color.org
    return [structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)]
