"""The one command, `modelfleet`, which is also `kubectl modelfleet`.

Commands are imported when they are called, so that `modelfleet version` does not pay for the controller's
imports, and so that a module that fails to import breaks one command and not all of them.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

_COMMANDS = {
    "controller": "Run the controller until it is told to stop",
    "crds": "Print or write the CustomResourceDefinitions",
    "render": "Print the objects a spec turns into",
    "validate": "Check manifests as the API server would",
    "version": "Print the version",
}
"""Command name (also the module in modelfleet.cli and the function in it) -> its line in --help."""

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
    return cli(args=argv, prog_name=name)
