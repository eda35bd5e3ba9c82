"""Flags and environment become one frozen value, or one line that names both."""

import contextlib

import click
import pytest
from click.testing import CliRunner
from hypothesis import given as given_values
from hypothesis import strategies as st
from pydantic import ValidationError

from modelfleet.cli.flags import flags_of, given
from modelfleet.runtime.lease import LeaseTimes
from modelfleet.runtime.settings import ENV_PREFIX, ControllerSettings, SettingsError, env_of, read_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the machine that runs the tests."""
    for field in ControllerSettings.model_fields:
        monkeypatch.delenv(env_of(field), raising=False)


def test_defaults() -> None:
    """Without flags and environment: client-go's election, all namespaces, both endpoints."""
    settings = read_settings({})

    assert LeaseTimes(15, 10.0, 2.0) == settings.lease_times()
    assert ((), True) == (settings.namespaces, settings.leader_elect)
    assert (":8081", ":8080") == (settings.health_bind, settings.metrics_bind)


def test_a_flag_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flag, then environment, then default; an empty variable counts as absent."""
    monkeypatch.setenv("MODELFLEET_WORKERS", "7")
    monkeypatch.setenv("MODELFLEET_MAX_WRITES", "9")
    monkeypatch.setenv("MODELFLEET_LOG_LEVEL", "")
    settings = read_settings({"workers": "8"})

    assert (8, 9, "info") == (settings.workers, settings.max_writes, settings.log_level)


@pytest.mark.parametrize(
    ("text", "seconds"), [("15", 15.0), ("15s", 15.0), ("500ms", 0.5), ("2m", 120.0), ("1.5h", 5400.0)]
)
def test_reads_durations(text: str, seconds: float) -> None:
    """Durations as Kubernetes flags write them; a bare number is seconds."""
    assert seconds == read_settings({"grace_period": text}).grace_period


@pytest.mark.parametrize(("text", "names"), [("b,a", ("a", "b")), (" a , ,a", ("a",)), ("", ())])
def test_reads_namespaces(monkeypatch: pytest.MonkeyPatch, text: str, names: tuple[str, ...]) -> None:
    """A comma-separated list, in the environment too; no name twice and always in the same order."""
    monkeypatch.setenv("MODELFLEET_NAMESPACES", text)

    assert names == read_settings({}).namespaces


@pytest.mark.parametrize(
    ("field", "text", "complaint"),
    [
        ("workers", "many", "'many' is no whole number"),
        ("workers", "1.5", "'1.5' is no whole number"),
        ("workers", "9" * 5000, "99... is no whole number"),
        ("workers", "0", "'0' must be at least 1"),
        ("max_writes", "257", "'257' must be at most 256"),
        ("leader_elect", "perhaps", "'perhaps' is neither true nor false"),
        ("sync_timeout", "9" * 400, "99... is too long to wait for"),
        ("grace_period", "soon", "'soon' is not a duration"),
        ("grace_period", "-5s", "not a duration"),
        ("retry_period", "0", "'0' must be more than 0"),
        ("namespaces", "Not_A_Name", "'Not_A_Name' is no namespace name"),
        ("namespaces", "a,b.c", "'b.c' is no namespace name"),
        ("lease_namespace", "A b", "'A b' is no namespace name"),
        ("lease_namespace", "n" * 64, "is no namespace name"),
        ("lease_name", "A b", "'A b' is no object name"),
        ("lease_name", "a_b", "'a_b' is no object name"),
        ("lease_name", "-a", "'-a' is no object name"),
        ("lease_name", "a-.b", "'a-.b' is no object name"),
        ("lease_name", "a..b", "'a..b' is no object name"),
        ("lease_name", "a\n", "'a\\n' is no object name"),
        ("lease_name", "n" * 254, "is no object name"),
        ("health_bind", "8081", "'8081' is no address"),
        ("log_level", "loud", "'loud' must be 'debug', 'info', 'warning' or 'error'"),
        ("field_validation", "strict", "'strict' must be 'Strict', 'Warn' or 'Ignore'"),
    ],
)
def test_a_bad_value_is_one_line(
    monkeypatch: pytest.MonkeyPatch, field: str, text: str, complaint: str
) -> None:
    """The line names the flag and the variable, from wherever the value came."""
    with pytest.raises(SettingsError) as from_flag:
        read_settings({field: text})
    monkeypatch.setenv(env_of(field), text)
    with pytest.raises(SettingsError) as from_environment:
        read_settings({})

    assert str(from_flag.value) == str(from_environment.value)
    assert str(from_flag.value).startswith(f"--{field.replace('_', '-')} ({ENV_PREFIX}{field.upper()}): ")
    assert complaint in str(from_flag.value)
    assert "\n" not in str(from_flag.value)


@pytest.mark.parametrize("name", ["a", "0", "a.b-c.d", "n" * 253])
def test_reads_lease_names(name: str) -> None:
    """Every name the API server takes for a Lease: a DNS subdomain."""
    assert name == read_settings({"lease_name": name}).lease_name


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ({"lease_duration": "10s"}, "must be longer than the renew deadline"),
        ({"retry_period": "9s"}, "must be longer than 1.2 times"),
        ({"lease_duration": "15500ms"}, "must be whole seconds"),
    ],
)
def test_election_times_must_fit(flags: dict[str, str], complaint: str) -> None:
    """Three settings that belong together are named together."""
    with pytest.raises(SettingsError, match=complaint) as error:
        read_settings(flags)

    assert str(error.value).startswith("--lease-duration, --renew-deadline, --retry-period (MODELFLEET_")


def test_is_frozen() -> None:
    """Settings are read once: nothing may change them later."""
    with pytest.raises(ValidationError, match="frozen"):
        read_settings({}).workers = 3  # type: ignore[misc]  # what must fail


def test_every_field_has_its_help() -> None:
    """The docstring below a field is its --help; --help names the variable and the default."""

    @click.command()
    @flags_of(ControllerSettings)
    def command(**flags: object) -> None:
        """Nothing."""

    text = " ".join(CliRunner().invoke(command, ["--help"]).output.split())

    for field, info in ControllerSettings.model_fields.items():
        assert info.description, f"{field} has no docstring"
        assert f"[{env_of(field)}]" in text
    assert "Default: on." in text
    assert "Default: 15." in text


def test_only_given_flags_count() -> None:
    """An option that is not on the command line leaves its variable in force; --no-... is given."""
    seen: dict[str, object] = {}

    @click.command()
    @flags_of(ControllerSettings)
    def command(**flags: object) -> None:
        seen.update(given(flags))

    CliRunner().invoke(command, ["--no-leader-elect", "--workers", "2"], catch_exceptions=False)

    assert {"leader_elect": False, "workers": "2"} == seen


@given_values(st.text(max_size=30))
def test_no_text_is_a_crash(text: str) -> None:
    """Any text in any field is either used or refused with a line."""
    for field in ControllerSettings.model_fields:
        with contextlib.suppress(SettingsError):
            assert isinstance(read_settings({field: text}), ControllerSettings)
