"""`modelfleet controller`: the composition root of the controller process.

Everything the process is made of is built here, in order, from its settings: access -> transport -> client ->
election -> caches -> controllers -> manager. Nothing else in the project knows how the parts fit together.
"""

import asyncio
import contextlib
import gc
import sys
from pathlib import Path
from typing import Any

import click
import structlog

from modelfleet.api.meta import GROUP, MANAGER
from modelfleet.cli.flags import flags_of, given
from modelfleet.kube.auth import SERVICE_ACCOUNT, Access, load_access
from modelfleet.kube.cache import Cache
from modelfleet.kube.client import Client
from modelfleet.kube.errors import ConfigError
from modelfleet.kube.transport import AiohttpTransport, Transport
from modelfleet.plan import Ref
from modelfleet.reconcilers.inference import InferenceReconciler, resources
from modelfleet.runtime.clock import SystemClock
from modelfleet.runtime.controller import Controller
from modelfleet.runtime.endpoint import Bind, Endpoint, Handler
from modelfleet.runtime.events import EventRecorder
from modelfleet.runtime.health import Checks
from modelfleet.runtime.leader import LeaderElector
from modelfleet.runtime.lease import LEASE, new_identity
from modelfleet.runtime.logging import configure_logging
from modelfleet.runtime.manager import Manager
from modelfleet.runtime.metrics import Metrics
from modelfleet.runtime.process import Exit
from modelfleet.runtime.settings import ControllerSettings, SettingsError, read_settings
from modelfleet.runtime.watchdog import LoopWatchdog
from modelfleet.version import VERSION

log = structlog.get_logger("modelfleet.cli.controller")

DEFAULT_NAMESPACE = "modelfleet-system"
"""Where manifests/base puts the controller."""

_EPILOG = """\b
Exit codes:
  0      stopped in order, every running reconcile finished
  1      could not start, a part failed, or reconciles were cut off
  2      a flag or environment variable has an unusable value
  3      the Lease was lost; restart and stand by
  128+N  a second signal N ended it at once
"""


@click.command(epilog=_EPILOG)
@flags_of(ControllerSettings)
def controller(**flags: Any) -> None:
    """Run the controller until it is told to stop.

    Each flag is also an environment variable, named in brackets; the flag wins. Durations are written 15s,
    500ms, 2m or 10h.
    """
    try:
        settings = read_settings(given(flags))
    except SettingsError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(Exit.USAGE)
    configure_logging(settings.log_level, settings.log_format)
    log.info("settings", version=VERSION, **settings.model_dump(mode="json"))
    sys.exit(asyncio.run(run(settings)))


async def run(settings: ControllerSettings) -> Exit:
    """Find the API server, run against it, close what was opened."""
    try:
        access = await load_access(settings.kubeconfig, settings.context)
    except ConfigError as error:
        log.critical("the controller can't start", error=str(error))
        return Exit.FAILURE
    log.info("access", server=access.server, source=access.source)
    async with contextlib.AsyncExitStack() as stack:
        transports = AiohttpTransport(access), AiohttpTransport(access)
        for transport in transports:
            stack.push_async_callback(transport.close)
        return await compose(settings, access, *transports)


async def compose(settings: ControllerSettings, access: Access, work: Transport, election: Transport) -> Exit:
    """Build the process and run it. The election has connections of its own: a renewal never queues."""
    identity = new_identity()
    metrics = Metrics(version=VERSION)
    client = _client(settings, access, work, identity, metrics)
    elector = None
    if settings.leader_elect:
        elector = _elector(
            settings, _client(settings, access, election, identity, metrics), identity, metrics
        )
        client.fence = elector.fence
    cache = Cache(client, namespaces=settings.namespaces, metrics=metrics.reflectors)
    stores = {resource.api: cache.add(resource) for resource in resources()}
    events = EventRecorder(
        client,
        controller=f"{GROUP}/controller",
        instance=identity,
        manager=MANAGER,
        clock=SystemClock(),
        metrics=metrics.events,
    )
    reconciler = InferenceReconciler(stores)
    queue = metrics.queues.of(reconciler.name)
    inference = Controller(
        reconciler,
        client,
        stores,
        manager=MANAGER,
        events=events,
        concurrency=settings.workers,
        reconcile_timeout=settings.reconcile_timeout,
        resync=settings.resync_period,
        metrics=metrics.controllers.of(reconciler.name),
        queue_metrics=queue,
    )
    queue.follow(inference.queue)
    watchdog = LoopWatchdog(metrics.loop_lag)
    manager = Manager(
        caches=cache,
        stores=list(stores.values()),
        workloads=[inference],
        events=events,
        elector=elector,
        background=[("watchdog", watchdog.run)],
        after_sync=_settle_memory,
        sync_timeout=settings.sync_timeout,
        grace_period=settings.grace_period,
    )
    return await manager.run(_endpoints(settings, metrics, manager, watchdog, elector))


def _client(
    settings: ControllerSettings, access: Access, transport: Transport, identity: str, metrics: Metrics
) -> Client:
    return Client(
        transport,
        user_agent=f"{MANAGER}/{VERSION} ({identity})",
        field_validation=settings.field_validation,
        max_writes=settings.max_writes,
        observe=metrics.requests.record,
        host=access.host,
    )


def _elector(settings: ControllerSettings, client: Client, identity: str, metrics: Metrics) -> LeaderElector:
    return LeaderElector(
        client,
        lease=Ref(LEASE, settings.lease_namespace or _own_namespace(), settings.lease_name),
        identity=identity,
        manager=MANAGER,
        times=settings.lease_times(),
        metrics=metrics.leader(settings.lease_name),
    )


def _own_namespace(service_account: Path = SERVICE_ACCOUNT) -> str:
    """The pod's namespace, which kubelet mounts beside the token."""
    try:
        return (service_account / "namespace").read_text().strip() or DEFAULT_NAMESPACE
    except OSError:
        return DEFAULT_NAMESPACE


def _endpoints(
    settings: ControllerSettings,
    metrics: Metrics,
    manager: Manager,
    watchdog: LoopWatchdog,
    elector: LeaderElector | None,
) -> list[Endpoint]:
    """One server for each address; probes and metrics may share one."""
    live = {"event-loop": watchdog.check}
    ready = {"caches": manager.check_sync, "running": manager.check_stop}
    if elector is not None:
        live["leader"] = elector.check
        ready["lease"] = elector.check_answers
    probes: dict[str, Handler] = {
        "/healthz": Checks("healthz", live).handle,
        "/readyz": Checks("readyz", ready).handle,
    }
    routes: dict[Bind, dict[str, Handler]] = {}
    for address, paths in (
        (settings.health_bind, probes),
        (settings.metrics_bind, {"/metrics": metrics.handle}),
    ):
        if (bind := Bind.parse(address)) is not None:
            routes.setdefault(bind, {}).update(paths)
    return [Endpoint(bind, paths) for bind, paths in routes.items()]


def _settle_memory() -> None:
    """The first lists are in: take them out of the garbage collector's sight.

    A full collection over 50,000 cached objects stops the event loop for a second (facts 4.2).
    """
    gc.collect()
    gc.freeze()
