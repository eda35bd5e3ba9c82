"""Warning headers (rule A12)."""

import pytest
from structlog.testing import capture_logs

from modelfleet.kube.warning_header import REMEMBERED, WarningLog, parse_warnings


@pytest.mark.parametrize(
    ("header", "texts"),
    [
        ("", []),
        ('299 - "unknown field \\"spec.foo\\""', ['unknown field "spec.foo"']),
        ('299 - "a, b", 299 - "c"', ["a, b", "c"]),
        ('299 kube "back\\\\slash" "Wed, 21 Oct 2015 07:28:00 GMT"', ["back\\slash"]),
        ('110 - "stale"', []),
        ("299 - no quotes", []),
    ],
)
def test_the_texts_of_a_warning_header(header: str, texts: list[str]) -> None:
    """Only 299 is Kubernetes'; quotes and commas in a text are part of it."""
    assert texts == parse_warnings(header)


def test_each_text_is_logged_once() -> None:
    """An object that is applied often must not fill the log."""
    log = WarningLog()
    with capture_logs() as logs:
        for text in ("a", "b", "a"):
            log.note({"warning": f'299 - "{text}"'}, "deployments.apps")
    assert [("a", "deployments.apps"), ("b", "deployments.apps")] == [
        (e["warning"], e["resource"]) for e in logs
    ]


def test_what_was_logged_is_forgotten_in_the_end() -> None:
    """Texts may name objects, so remembering all of them would grow for ever."""
    log = WarningLog()
    with capture_logs() as logs:
        for number in (*range(REMEMBERED + 1), 0):
            log.note({"warning": f'299 - "{number}"'}, "")
    assert REMEMBERED + 2 == len(logs)
