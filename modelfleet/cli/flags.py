"""Command-line flags made from a settings class, so that a setting is described in one place."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
from pydantic_settings import BaseSettings

from modelfleet.runtime.settings import env_of, flag_of

F = TypeVar("F", bound=Callable[..., Any])


def flags_of(settings: type[BaseSettings]) -> Callable[[F], F]:
    """Add one option for each field; an option that is not given stays out of the keyword arguments.

    Values stay text here: flags and environment variables are read by the same code, the settings class.
    """

    def decorate(command: F) -> F:
        for field, info in reversed(settings.model_fields.items()):
            flag = flag_of(field)
            boolean = info.annotation is bool
            default = "" if info.default in (None, ()) else f" Default: {_shown(info.default)}."
            command = click.option(
                f"{flag}/--no-{flag.removeprefix('--')}" if boolean else flag,
                field,
                type=bool if boolean else str,
                default=None,
                metavar=None if boolean else "VALUE",
                help=f"{info.description}{default} [{env_of(field)}]",
            )(command)
        return command

    return decorate


def given(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags that were on the command line."""
    return {field: value for field, value in flags.items() if value is not None}


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    return f"{default:g}" if isinstance(default, float) else str(default)
