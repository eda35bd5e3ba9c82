"""`python -m hack.cluster`: the local cluster's commands."""

import contextlib
import fcntl
import time
from collections.abc import Iterator

import click

from hack.cluster.binaries import Binaries
from hack.cluster.cache import Cache, default_root
from hack.cluster.cluster import FAKE_NOTE, Choice, Cluster, order, real_node_obstacle
from hack.cluster.controlplane import LOOPBACK
from hack.cluster.display import Display
from hack.cluster.errors import ClusterError
from hack.cluster.gateway import PORT
from hack.cluster.layout import Layout
from hack.cluster.progress import Progress, clock
from hack.cluster.works import Works

DEFAULT = "dev"
"""As in the Makefile."""
_NAME = click.option(
    "--name", default=DEFAULT, show_default=True, help="Instance; each has its own folder and ports."
)
_PROFILE = click.option(
    "--profile", type=click.Choice(["full", "core"]), default="full", show_default=True,
    help="core leaves gateway and KEDA out.",
)  # fmt: skip
_FAKE = click.option(
    "--fake-node", is_flag=True, help="KWOK instead of a real node, also where that is possible."
)


INTERRUPTED = 130
"""128 + SIGINT, as shells say it."""


class _Commands(click.Group):
    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except ClusterError as error:
            raise click.ClickException(str(error)) from error
        except PermissionError as error:
            raise click.ClickException(f"{error}: use the account that started this instance") from error


@click.group(cls=_Commands)
def main() -> None:
    """A Kubernetes cluster as processes on this machine."""


@main.command()
@_NAME
@_PROFILE
@_FAKE
@click.option("--bare", is_flag=True, help="Without Model Fleet: no CRDs, controller and sample.")
def up(name: str, profile: str, *, fake_node: bool, bare: bool) -> None:
    """Start what is missing, up to the sample Ready; builds what was never built."""
    choice = Choice(profile == "full", _fake_because(asked=fake_node), fleet=not bare)
    layout = Layout.named(name)
    with _interruptible(name), _locked(layout), _works() as (works, display):
        order(works, choice)
        if works.progress.parts:
            seconds = works.progress.remaining(time.monotonic())
            display.say(f"to build or fetch: {count_parts(works)}, about {clock(seconds)}")
        Cluster(layout, works, display.say).up(choice, display.show)
    if not choice.real_node:
        click.echo(FAKE_NOTE, err=True)
    click.echo(f"up in {display.seconds:.1f} s; export KUBECONFIG={layout.conf / 'admin.kubeconfig'}")
    if choice.full and choice.fleet and choice.real_node:
        click.echo(f"curl -H 'Host: model.localhost' http://{LOOPBACK}:{PORT}/")


@main.command()
@_NAME
def down(name: str) -> None:
    """Stop the instance and put the host back; its state stays."""
    layout = Layout.named(name)
    if layout.state.exists():
        with _locked(layout), _works() as (works, display):
            Cluster(layout, works, display.say).down()
            click.echo(f"down in {display.seconds:.1f} s")


@main.command()
@_NAME
def clean(name: str) -> None:
    """Stop the instance and delete its state; what was built stays in the cache."""
    layout = Layout.named(name)
    if layout.state.exists():
        with _locked(layout), _works() as (works, display):
            Cluster(layout, works, display.say).clean()


@main.command()
@_NAME
def kubeconfig(name: str) -> None:
    """Print the path of the administrator's kubeconfig."""
    path = Layout.named(name).conf / "admin.kubeconfig"
    if not path.exists():
        raise ClusterError(f"instance {name} was never up: run `{_make('up', name)}`")
    click.echo(path)


@main.command()
@_NAME
def status(name: str) -> None:
    """List the instance's processes; exit 1 unless all of them run."""
    layout = Layout.named(name)
    with _works() as (works, display):
        processes = Cluster(layout, works, display.say).status()
    if not processes:
        raise ClusterError(f"nothing of instance {name} runs: start it with `{_make('up', name)}`")
    for process, alive in processes:
        click.echo(f"{'running' if alive else 'stopped':8} {process:24} {layout.log(process)}")
    if not all(alive for _, alive in processes):
        raise SystemExit(1)


@main.command()
@_PROFILE
@_FAKE
def build(profile: str, *, fake_node: bool) -> None:
    """Build and fetch all parts without starting anything."""
    choice = Choice(profile == "full", _fake_because(asked=fake_node))
    with _works() as (works, display):
        order(works, choice)
        works.finish()
        click.echo(f"{count_parts(works)} made in {display.seconds:.1f} s, in {default_root()}")


def _fake_because(*, asked: bool) -> str:
    return "--fake-node was given" if asked else real_node_obstacle()


def count_parts(works: Works) -> str:
    """`1 part`, `2 parts`: how many there are to make."""
    count = len(works.progress.parts)
    return f"{count} part{'' if count == 1 else 's'}"


def _make(target: str, name: str) -> str:
    return f"make {target}" if name == DEFAULT else f"make {target} NAME={name}"


@contextlib.contextmanager
def _interruptible(name: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        goes_on, stops = _make("up", name), _make("down", name)
        click.echo(
            f"\ninterrupted: what was started keeps running; `{goes_on}` goes on, `{stops}` stops it",
            err=True,
        )
        raise SystemExit(INTERRUPTED) from None


@contextlib.contextmanager
def _works() -> Iterator[tuple[Works, Display]]:
    cache, progress = Cache(default_root()), Progress()
    with (
        Display(progress.line) as display,
        Works(cache, Binaries(cache, note=display.say), progress) as works,
    ):
        yield works, display


@contextlib.contextmanager
def _locked(layout: Layout) -> Iterator[None]:
    """One command at a time works on an instance."""
    layout.state.mkdir(parents=True, exist_ok=True)
    with (layout.state / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ClusterError(f"another command works on {layout.state}: wait for it") from error
        yield
