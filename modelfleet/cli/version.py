"""`modelfleet version`."""

import json
import platform

import click
import yaml

from modelfleet.api.meta import GROUP
from modelfleet.api.meta import VERSION as API_VERSION
from modelfleet.version import VERSION


@click.command()
@click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True
)
def version(output: str) -> None:
    """Print the version of this program and of the API it serves."""
    facts = {"version": VERSION, "apiVersion": f"{GROUP}/{API_VERSION}", "python": platform.python_version()}
    match output:
        case "json":
            click.echo(json.dumps(facts))
        case "yaml":
            click.echo(yaml.safe_dump(facts, sort_keys=False), nl=False)
        case _:
            click.echo(f"modelfleet {VERSION} (API {facts['apiVersion']}, Python {facts['python']})")
