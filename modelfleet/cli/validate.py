"""`modelfleet validate`: what the API server would say about manifests, before they are sent to one.

Exit codes: 0 everything is right, 1 something is wrong, 2 something could not be read or written, or the
command line is wrong. Findings go to stdout, notes and the summary to stderr.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import click

from modelfleet.api.meta import GROUP
from modelfleet.api.validate import Violation
from modelfleet.api.validate import validate as violations_of
from modelfleet.cli.documents import Document, Identity, UnreadableError, filenames, read

_EXAMPLES = """\b
One file, a directory, whatever kustomize makes:
  modelfleet validate -f service.yaml
  modelfleet validate -f samples/
  kubectl kustomize overlays/prod | modelfleet validate -f -
An edit of something that runs:
  kubectl get inferenceservices -n models -o yaml > now.yaml
  modelfleet validate -f service.yaml --old now.yaml

\b
Exit status: 0 all right, 1 violations, 2 unreadable input, unwritable output or wrong usage.
"""


@dataclass
class _Report:
    """What was found in all files."""

    checked: int = 0
    findings: list[tuple[Document, Violation]] = field(default_factory=list)
    skipped: list[Document] = field(default_factory=list)
    unreadable: list[UnreadableError] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """See the module."""
        return 2 if self.unreadable else 1 if self.findings else 0


@click.command(epilog=_EXAMPLES)
@filenames
@click.option(
    "--old",
    multiple=True,
    metavar="FILE|DIR",
    help="What is stored in the cluster now. What an object there breaks already, and the new one "
    "leaves alone, is forgiven, and fields that can't change are compared.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def validate(sources: tuple[str, ...], old: tuple[str, ...], output: str) -> None:
    """Check manifests as the API server would, without one.

    Objects of other groups are skipped. Each finding names the file, the object, the field and what to
    write instead.
    """
    report = _Report()
    stored = _by_identity(report, old)
    for document in _documents(report, sources):
        _check(report, document, stored)
    _print_json(report) if output == "json" else _print_text(report)
    sys.exit(report.exit_code)


def _documents(report: _Report, sources: tuple[str, ...]) -> Iterable[Document]:
    for found in read(sources):
        if isinstance(found, UnreadableError):
            report.unreadable.append(found)
        else:
            yield found


def _by_identity(report: _Report, sources: tuple[str, ...]) -> dict[Identity, dict[str, Any]]:
    return {document.identity: document.body for document in _documents(report, sources)}


def _check(report: _Report, document: Document, stored: dict[Identity, dict[str, Any]]) -> None:
    if document.group != GROUP:
        report.skipped.append(document)
        return
    report.checked += 1
    before = stored.get(document.identity)
    report.findings += [(document, violation) for violation in violations_of(document.body, before)]


def _print_text(report: _Report) -> None:
    for error in report.unreadable:
        click.echo(f"error: {error}", err=True)
    for document in report.skipped:
        click.echo(f"{document}: skipped, not a kind of {GROUP}", err=True)
    for document, violation in report.findings:
        click.echo(f"{document}: {violation}")
    wrong = len({id(document) for document, _ in report.findings})
    click.echo(f"{report.checked} checked, {wrong} wrong, {len(report.skipped)} skipped", err=True)


def _print_json(report: _Report) -> None:
    findings = []
    for document, violation in report.findings:
        kind, namespace, name = document.identity
        place = {
            "file": document.source,
            "line": document.line,
            "kind": kind,
            "namespace": namespace,
            "name": name,
        }
        findings.append(place | {"path": violation.path, "message": violation.message})
    result = {
        "checked": report.checked,
        "violations": findings,
        "skipped": [{"file": each.source, "object": each.title} for each in report.skipped],
        "errors": [str(error) for error in report.unreadable],
    }
    click.echo(json.dumps(result, indent=2))
