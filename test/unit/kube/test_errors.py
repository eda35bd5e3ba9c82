"""Which failures may be repeated, which may have taken effect, and how long to wait (rules A14, I6)."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from modelfleet.kube.errors import (
    MAX_FOREIGN_TEXT,
    CredentialsError,
    StatusError,
    TransportError,
    parse_retry_after,
)


@pytest.mark.parametrize(
    ("code", "retriable", "unknown_outcome"),
    [
        (400, False, False),
        (401, False, False),
        (403, False, False),
        (404, False, False),
        (409, True, False),
        (410, False, False),
        (413, False, False),
        (422, False, False),
        (429, True, False),
        (500, True, True),
        (502, True, True),
        (503, True, False),
        (504, True, True),
    ],
)
def test_a_code_tells_what_a_retry_can_do(code: int, *, retriable: bool, unknown_outcome: bool) -> None:
    """Only codes that may change by themselves are retriable; only late 5xx leave the outcome open."""
    error = StatusError(code, {})
    assert (retriable, unknown_outcome) == (error.retriable, error.unknown_outcome)


@pytest.mark.parametrize(
    ("error", "unknown_outcome"),
    [
        (TransportError("reset"), True),
        (TransportError("refused", sent=False), False),
        (CredentialsError("no token"), False),
    ],
)
def test_without_an_answer_only_a_sent_request_has_an_unknown_outcome(
    error: TransportError, *, unknown_outcome: bool
) -> None:
    """A request that never left can be repeated without looking first."""
    assert (True, unknown_outcome) == (error.retriable, error.unknown_outcome)


STATUS = (
    b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"deployments.apps \\"a\\" not found",'
    b'"reason":"NotFound","details":{"name":"a","causes":[{"reason":"X","field":"f"}],"retryAfterSeconds":7},'
    b'"code":404}'
)


def test_a_status_body_becomes_reason_message_and_causes() -> None:
    """A metav1.Status is kept in its parts and shown in one line."""
    error = StatusError.of(404, {}, STATUS)
    assert 'deployments.apps "a" not found' == error.message
    assert ("NotFound", [{"reason": "X", "field": "f"}], 7.0) == (
        error.reason,
        error.causes,
        error.retry_after,
    )
    assert '404 NotFound: deployments.apps "a" not found' == str(error)


def test_the_header_wins_over_details_for_how_long_to_wait() -> None:
    """Retry-After comes from whoever answered last and is newer than the body."""
    assert 3.0 == StatusError.of(429, {"retry-after": "3"}, STATUS).retry_after


@pytest.mark.parametrize(
    ("code", "headers", "body", "message"),
    [
        (502, {"content-type": "text/plain"}, b"upstream\n reset", "upstream reset"),
        (
            502,
            {"content-type": "text/html"},
            b"<html>",
            "HTTP 502 with a body of type text/html instead of a Kubernetes Status",
        ),
        (500, {}, b"", "HTTP 500 with a body of type unknown instead of a Kubernetes Status"),
        (
            500,
            {"content-type": "application/json"},
            b'{"token":"s3cret"}',
            "HTTP 500 with a body of type application/json instead of a Kubernetes Status",
        ),
        (
            500,
            {"content-type": "application/json"},
            b"[1]",
            "HTTP 500 with a body of type application/json instead of a Kubernetes Status",
        ),
        (
            302,
            {"location": "https://login"},
            b"",
            "redirected to https://login; redirects aren't followed, configure the final address",
        ),
        (500, {"content-type": "text/plain"}, b"x" * 9999, "x" * MAX_FOREIGN_TEXT + "..."),
        (500, {"content-type": "text/plain"}, b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_an_answer_that_is_no_status_is_described(
    code: int, headers: dict[str, str], body: bytes, message: str
) -> None:
    """Proxies answer too: short plain text is quoted, anything else only named."""
    assert message == StatusError.of(code, headers, body).message


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("", None), ("5", 5.0), ("0.5", 0.5), ("-3", 0.0), ("nan", None), ("inf", None), ("soon", None)],
)
def test_retry_after_in_seconds(value: str, seconds: float | None) -> None:
    """Nonsense counts as no wish, and never as a negative or endless wait."""
    assert seconds == parse_retry_after(value)


def test_retry_after_as_a_date() -> None:
    """An HTTP date becomes the time that is left, nothing if it has passed."""
    soon = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    past = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
    assert 3600 == pytest.approx(parse_retry_after(soon), abs=60)
    assert 0.0 == parse_retry_after(past)


@pytest.mark.parametrize(
    ("code", "status", "gone"),
    [
        (410, {}, True),
        (200, {"reason": "Expired"}, True),
        (500, {"reason": "Gone"}, True),
        (504, {"reason": "Timeout"}, False),
    ],
)
def test_gone_in_every_form(code: int, status: dict[str, Any], *, gone: bool) -> None:
    """410 comes as an HTTP status and as an ERROR event's reason (rule I6)."""
    assert gone == StatusError(code, status).gone


@pytest.mark.parametrize(
    ("code", "status", "too_large"),
    [
        (504, {"details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}}, True),
        (504, {"message": "Timeout: Too large resource version: 9, current: 5"}, True),
        (504, {"message": "timeout"}, False),
        (504, {"details": None}, False),
    ],
)
def test_a_resource_version_from_the_future(code: int, status: dict[str, Any], *, too_large: bool) -> None:
    """The server behind what we have seen says so by cause or, when older, by message (rule I6)."""
    assert too_large == StatusError(code, status).too_large_resource_version
