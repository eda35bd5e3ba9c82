"""The one command, `modelfleet`, which is also `kubectl modelfleet`.

Commands are imported when they are called, so that `modelfleet version` does not pay for the controller's
imports, and so that a module that fails to import breaks one command and not all of them.

Output that can't be written is an error of every command, told here: one line on stderr and exit code 2. A
reader that has seen enough (`| head`) is no error worth a line; click ends the process quietly.
"""

import contextlib
import errno
import os
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click

_COMMANDS = {
    "controller": "Run the controller until it is told to stop",
    "crds": "Print or write the CustomResourceDefinitions",
    "render": "Print the objects a spec turns into",
    "validate": "Check manifests as the API server would",
    "version": "Print the version",
}
"""Command name (also the module in modelfleet.cli and the function in it) -> its line in --help."""

_UNWRITABLE = 2
"""Exit code of a command whose output can't be written: the one of input that can't be read."""

_EPILOG = """\b
Start with:
  modelfleet validate -f samples/
  modelfleet render -f samples/inference-kind.yaml
  modelfleet crds | kubectl apply --server-side -f -

Installed as kubectl-modelfleet too: `kubectl modelfleet validate -f FILE` is the same command.
"""


class _Commands(click.Group):
    """A group that knows its commands by name and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"modelfleet.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's signature
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Declare GPU inference as custom resources; run it as ordinary Kubernetes objects."""


def main(argv: list[str] | None = None) -> Any:
    """Run the command; kubectl finds it as a plugin by the name kubectl-modelfleet."""
    called_as = Path(sys.argv[0]).name
    name = "kubectl modelfleet" if called_as.startswith("kubectl-") else "modelfleet"
    if sys.stdout is None:
        sys.stdout = _refusing()
    try:
        return cli(args=argv, prog_name=name)
    except OSError as error:
        if not _while_printing(error):
            raise
        _give_up(error)


def _refusing() -> TextIO:
    """In place of a closed stdout, which click would take for one nobody reads: every write fails."""
    return os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")


def _while_printing(error: OSError) -> bool:
    """All commands print by click.echo; an OSError from anywhere else is a defect and keeps its traceback."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_code is click.echo.__code__


def _give_up(error: OSError) -> NoReturn:
    with contextlib.suppress(OSError):  # stderr may be what can't be written: the exit code must do
        why = "stdout is closed" if error.errno == errno.EBADF else error.strerror
        click.echo(f"error: can't write the output: {why}", err=True)
    # What is left in the buffers would fail again at exit, with a message and an exit code of Python's own.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            os.dup2(nowhere, stream.fileno())
    sys.exit(_UNWRITABLE)
