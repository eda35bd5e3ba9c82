"""/healthz and /readyz: named checks, reported as kube-apiserver does.

- /healthz answers "would a restart help?": the event loop runs and a leader renews. It never depends on the
  API server, or an outage of that becomes a restart storm of this (facts 1.9).
- /readyz answers "does this process do its job?": required caches are synced and it is not shutting down.

Plain `ok` when all is well; with `?verbose`, or when a check fails, one line for each check with the reason.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus

import structlog
from aiohttp import web

log = structlog.get_logger("modelfleet.runtime.health")

Check = Callable[[], str]
"""Why not, or "" when well. Called from the event loop for each probe: no I/O, no waiting."""


class Checks:
    """The checks behind one path."""

    def __init__(self, name: str, checks: Mapping[str, Check]) -> None:
        """`name` is the path without its slash: healthz or readyz."""
        self._name = name
        self._checks = dict(checks)
        self._failing: tuple[str, ...] = ()

    def problems(self) -> dict[str, str]:
        """Check name -> why it fails, for those that do."""
        return {name: reason for name, check in self._checks.items() if (reason := _ask(check))}

    def report(self, *, verbose: bool) -> tuple[HTTPStatus, str]:
        """Status and text of one answer."""
        problems = self.problems()
        self._log_change(problems)
        if not problems and not verbose:
            return HTTPStatus.OK, "ok\n"
        lines = [
            f"[-]{name} failed: {problems[name]}" if name in problems else f"[+]{name} ok"
            for name in self._checks
        ]
        lines.append(f"{self._name} check {'failed' if problems else 'passed'}")
        return HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK, "\n".join(lines) + "\n"

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one probe."""
        status, text = self.report(verbose="verbose" in request.query)
        return web.Response(status=status, text=text, headers={"Cache-Control": "no-store"})

    def _log_change(self, problems: Mapping[str, str]) -> None:
        """The kubelet's event shows a status code only: say once what it was about."""
        failing = tuple(problems)
        if failing == self._failing:
            return
        self._failing = failing
        if problems:
            log.warning("probe fails", probe=self._name, checks=dict(problems))
        else:
            log.info("probe passes", probe=self._name)


def _ask(check: Check) -> str:
    try:
        return check()
    except Exception as error:  # noqa: BLE001  # a check that breaks is a failed check with its reason
        return f"check raised {type(error).__name__}: {error}"
