"""Settings of the controller process: one frozen value, read once, from flags and the environment.

A flag wins over its environment variable, which wins over the default. Names follow from the field:
`lease_duration` is `--lease-duration` and `MODELFLEET_LEASE_DURATION`. The docstring below each field is its
help text. Nothing else in the project reads the environment for configuration.
"""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from modelfleet.runtime import logging
from modelfleet.runtime.endpoint import Bind
from modelfleet.runtime.lease import LeaseTimes

ENV_PREFIX = "MODELFLEET_"

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""IsDNS1123Subdomain of apimachinery, which bounds the whole and not each part."""
_COMPLAINTS = {
    "int_parsing": "is no whole number",
    "int_parsing_size": "is no whole number of usable size",
    "bool_parsing": "is neither true nor false",
    "finite_number": "is too long to wait for",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
}
"""pydantic's type of error -> our words, which follow the value; the braces hold pydantic's context."""
_QUOTED = 60
"""Characters quoted of a bad value: the line must stay one that can be read."""


class SettingsError(Exception):
    """A flag or environment variable has an unusable value; the message is one line that names both."""


def flag_of(field: str) -> str:
    """The flag of a field."""
    return "--" + field.replace("_", "-")


def env_of(field: str) -> str:
    """The environment variable of a field."""
    return ENV_PREFIX + field.upper()


def _seconds(value: object) -> object:
    """Read `15`, `15s`, `500ms`, `2m` or `10h` as seconds; leaves other types to pydantic."""
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value.strip())
    if not match:
        raise ValueError(f"{value!r} is not a duration; write for example 15s, 500ms, 2m or 10h")
    return float(match[1]) * _UNITS[match[2] or "s"]


def _names(value: object) -> object:
    """Read `a,b` or a sequence of such as a tuple of names, without duplicates, in a fixed order."""
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        return value
    return tuple(sorted({name.strip() for part in parts for name in str(part).split(",") if name.strip()}))


def _namespace(name: str) -> str:
    if not _DNS_LABEL.fullmatch(name):
        raise ValueError(f"{name!r} is no namespace name: lower-case letters, digits and '-', at most 63")
    return name


def _object_name(name: str) -> str:
    if not _DNS_SUBDOMAIN.fullmatch(name):
        raise ValueError(
            f"{name!r} is no object name: lower-case letters, digits, '-' and '.', at most 253, "
            "each part beginning and ending with a letter or digit"
        )
    return name


def _address(text: str) -> str:
    Bind.parse(text)
    return text


Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, allow_inf_nan=False)]
Address = Annotated[str, AfterValidator(_address)]
Namespace = Annotated[str, AfterValidator(_namespace)]
Namespaces = Annotated[tuple[Namespace, ...], NoDecode, BeforeValidator(_names)]
ObjectName = Annotated[str, AfterValidator(_object_name)]


class ControllerSettings(BaseSettings):
    """Everything an operator may choose."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )

    kubeconfig: str | None = None
    """Path of a kubeconfig. Default: $KUBECONFIG, else the pod's service account, else ~/.kube/config."""

    context: str | None = None
    """Context of the kubeconfig. Default: its current context."""

    namespaces: Namespaces = ()
    """Namespaces to watch, comma-separated; empty means all. Shapes the watches and the RBAC needed."""

    leader_elect: bool = True
    """Take part in leader election. Off only for local runs: two controllers without it fight."""

    lease_name: ObjectName = "modelfleet-controller"
    """Name of the election's Lease."""

    lease_namespace: Namespace | None = None
    """Namespace of the Lease. Default: the pod's own, else modelfleet-system."""

    lease_duration: Seconds = LeaseTimes().duration
    """How long others wait after the leader's last renewal before they take over; whole seconds."""

    renew_deadline: Seconds = LeaseTimes().renew_deadline
    """How long a leader goes on without a successful renewal before it stops writing and exits."""

    retry_period: Seconds = LeaseTimes().retry_period
    """Pause between attempts to acquire or renew."""

    workers: int = Field(default=4, ge=1, le=64)
    """Objects of one kind reconciled at the same time."""

    max_writes: int = Field(default=32, ge=1, le=256)
    """Writes in flight to the API server at the same time."""

    reconcile_timeout: Seconds = 60.0
    """How long one reconcile may take before it is cancelled and retried."""

    resync_period: Seconds = 36_000.0
    """How often every object is looked at again from the cache, spread by its UID."""

    sync_timeout: Seconds = 120.0
    """How long a required kind may be refused by a reachable API server before the process exits."""

    grace_period: Seconds = 30.0
    """How long running reconciles may take to finish after SIGTERM."""

    health_bind: Address = ":8081"
    """Address of /healthz and /readyz; 0 disables."""

    metrics_bind: Address = ":8080"
    """Address of /metrics; 0 disables."""

    field_validation: Literal["Strict", "Warn", "Ignore"] = "Warn"
    """What the API server does about unknown fields in what we write; Strict for tests."""

    log_level: logging.Level = "info"
    """Least severe level logged."""

    log_format: logging.Format = "auto"
    """auto is console on a terminal and json elsewhere."""

    @model_validator(mode="after")
    def _lease_times_fit(self) -> Self:
        """The rules of LeaseTimes, told in terms of flags."""
        fields = ("lease_duration", "renew_deadline", "retry_period")
        try:
            if not self.lease_duration.is_integer():
                raise ValueError(f"lease duration must be whole seconds, not {self.lease_duration:g}s")  # noqa: TRY301
            self.lease_times()
        except ValueError as error:
            flags, names = ", ".join(map(flag_of, fields)), ", ".join(map(env_of, fields))
            raise ValueError(f"{flags} ({names}): {error}") from error
        return self

    def lease_times(self) -> LeaseTimes:
        """The three durations as the elector takes them."""
        return LeaseTimes(int(self.lease_duration), self.renew_deadline, self.retry_period)


def read_settings(flags: dict[str, Any]) -> ControllerSettings:
    """Build the settings from the flags that were given and the environment.

    Raises:
        SettingsError: One line for the first unusable value.
    """
    try:
        return ControllerSettings(**flags)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if not first["loc"]:
            raise SettingsError(_complaint(first)) from error
        field = str(first["loc"][0])
        raise SettingsError(f"{flag_of(field)} ({env_of(field)}): {_complaint(first)}") from error


def _complaint(error: ErrorDetails) -> str:
    """What is wrong with a value, which is quoted; our validators do so in their own words."""
    if error["type"] == "value_error":
        return error["msg"].removeprefix("Value error, ")
    value = repr(error["input"])
    value = value if len(value) <= _QUOTED else f"{value[:_QUOTED]}..."
    words = _COMPLAINTS.get(error["type"])
    return f"{value} {words.format(**error.get('ctx', {}))}" if words else f"{value}: {error['msg']}"
