"""What the proxy can do to a request, and to which; values only (the proxy carries them out).

Each fault is one that an API server, its load balancer or the network between was seen to produce
(facts/controller.md sections 1.1 and 3.3).
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from test.support.requestinfo import RequestInfo


class End(StrEnum):
    """How a stream stops."""

    EOF = "clean end"
    TORN = "in the middle of a line"
    RESET = "TCP reset"


@dataclass(frozen=True)
class Answer:
    """Answer without forwarding: nothing happened at the server."""

    code: int
    reason: str = ""
    message: str = "injected"
    details: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        """A metav1.Status."""
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": self.code}
        return json.dumps(
            status | {"reason": self.reason, "message": self.message, "details": dict(self.details)}
        ).encode()


@dataclass(frozen=True)
class Delay:
    """Forward late. A client that gave up meanwhile has sent a write that still arrives (rule A14)."""

    seconds: float


@dataclass(frozen=True)
class DropResponse:
    """Forward, then close without a word: committed, but the client can't know."""


@dataclass(frozen=True)
class Hang:
    """Fall silent without FIN after so many lines of a stream; a plain request is not forwarded (rule I4)."""

    lines: int = 0


@dataclass(frozen=True)
class Cut:
    """End a stream after so many lines; a plain request is not forwarded and its connection closed."""

    end: End
    lines: int = 0


@dataclass(frozen=True)
class Inject:
    """Put a line into a stream after so many lines, then end it cleanly."""

    line: bytes
    lines: int = 0


Fault = Answer | Delay | DropResponse | Hang | Cut | Inject

GONE = Answer(410, "Expired", "The resourceVersion for the provided watch is too old.")
"""Rule I6, first form."""
TOO_LARGE_VERSION = Answer(
    504,
    "Timeout",
    "Too large resource version: 9999999, current: 1",
    {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    },
)
"""Rule I6: the server is behind what the client has seen."""
INTERNAL = Answer(500, "InternalError", "Internal error occurred: injected")


def error_event(answer: Answer = GONE, *, lines: int = 0) -> Inject:
    """A watch event of type ERROR; with the default, rule I6's second form."""
    event = {"type": "ERROR", "object": json.loads(answer.body)}
    return Inject(json.dumps(event).encode() + b"\n", lines)


def throttled(seconds: int) -> Answer:
    """429 with Retry-After, as API priority and fairness answers."""
    text = "The server has received too many requests and has asked us to try again later"
    return Answer(429, "TooManyRequests", text, {"retryAfterSeconds": seconds}, {"Retry-After": str(seconds)})


def forbidden(user: str, verb: str, resource: str) -> Answer:
    """403 in the API server's words."""
    text = f'{resource} is forbidden: User "{user}" cannot {verb} resource "{resource}"'
    return Answer(403, "Forbidden", text, {"kind": resource})


@dataclass
class Rule:
    """One fault and the requests that meet it: from the `nth` match on, `times` of them (None: all)."""

    fault: Fault
    verb: str = ""
    resource: str = ""
    """Regular expression for the whole of `plural.group/subresource`."""
    nth: int = 1
    times: int | None = 1
    where: Callable[[RequestInfo, bytes], bool] | None = None
    """Looks at the request and its body."""
    matches: int = 0
    hits: int = 0

    def meets(self, info: RequestInfo, body: bytes) -> bool:
        """Whether this request gets the fault; counts."""
        if self.verb and self.verb != info.verb:
            return False
        if self.resource and not re.fullmatch(self.resource, info.resource):
            return False
        if self.where is not None and not self.where(info, body):
            return False
        self.matches += 1
        if self.matches < self.nth or (self.times is not None and self.hits >= self.times):
            return False
        self.hits += 1
        return True
