"""Metric names are an interface: dashboards of other controllers must work unchanged (facts 1.9)."""

import asyncio
import re
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.metrics import MetricWrapperBase

from modelfleet.kube.client import RequestRecord
from modelfleet.plan import Api
from modelfleet.runtime.endpoint import Bind, Endpoint
from modelfleet.runtime.metrics import Metrics
from modelfleet.runtime.queue import LOW, WorkQueue

DOCUMENTED = Path(__file__).parents[3] / "docs" / "metrics.md"
PODS = Api("", "v1", "Pod", "pods")
POSITION = {"resource": "pods", "namespace": "models"}
THING = {"name": "thing", "controller": "thing"}


@pytest.fixture
def metrics() -> Metrics:
    """Fresh metrics in a registry of their own."""
    return Metrics(version="1.2.3")


def value(metrics: Metrics, name: str, /, **labels: str) -> float | None:
    """One sample."""
    return metrics.registry.get_sample_value(name, labels)


def test_every_metric_is_documented_and_every_documented_one_exists(metrics: Metrics) -> None:
    """docs/metrics.md lists exactly what the process exposes, with type and labels."""
    metrics.leader("lease")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\w, ]*?) ?\|", DOCUMENTED.read_text(), re.MULTILINE)
    documented = {(name, kind, tuple(re.findall(r"\w+", labels))) for name, kind, labels in rows}

    exposed = {
        (
            collector._name + ("_total" if collector._type == "counter" else ""),
            collector._type,
            collector._labelnames,
        )
        for collector in metrics.registry._collector_to_names
        if isinstance(collector, MetricWrapperBase)
    }
    assert documented == exposed


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("workqueue_depth", {**THING, "priority": "0"}),
        ("workqueue_depth", {**THING, "priority": "-100"}),
        ("workqueue_adds_total", THING),
        ("workqueue_retries_total", THING),
        ("workqueue_queue_duration_seconds_count", THING),
        ("workqueue_work_duration_seconds_count", THING),
        *(
            ("controller_runtime_reconcile_total", {"controller": "thing", "result": result})
            for result in ("success", "error", "requeue", "requeue_after")
        ),
        ("controller_runtime_reconcile_errors_total", {"controller": "thing"}),
        ("controller_runtime_terminal_reconcile_errors_total", {"controller": "thing"}),
        ("controller_runtime_reconcile_panics_total", {"controller": "thing"}),
        ("controller_runtime_reconcile_timeouts_total", {"controller": "thing"}),
        ("controller_runtime_active_workers", {"controller": "thing"}),
        ("leader_election_slowpath_total", {"name": "lease"}),
        ("modelfleet_events_dropped_total", {"reason": "QueueFull"}),
    ],
)
def test_known_label_sets_start_at_zero(metrics: Metrics, name: str, labels: dict[str, str]) -> None:
    """A rate over the very first failure needs the zero before it (controller-runtime's initMetrics)."""
    metrics.queues.of("thing")
    metrics.controllers.of("thing")
    metrics.leader("lease")

    assert 0 == value(metrics, name, **labels)


async def test_a_queue_reports(metrics: Metrics) -> None:
    """What the queue tells arrives under client-go's names; the two durations are read at the scrape."""
    report = metrics.queues.of("thing")
    queue: WorkQueue[str] = WorkQueue(metrics=report)
    report.follow(queue)
    queue.add("a")
    queue.add("b", priority=LOW)
    key = await queue.get()
    queue.add_rate_limited("c")

    assert "a" == key
    assert 2 == value(metrics, "workqueue_adds_total", **THING)
    assert 0 == value(metrics, "workqueue_depth", **THING, priority="0")
    assert 1 == value(metrics, "workqueue_depth", **THING, priority="-100")
    assert 1 == value(metrics, "workqueue_queue_duration_seconds_count", **THING)
    assert 1 == value(metrics, "workqueue_retries_total", **THING)
    running = value(metrics, "workqueue_unfinished_work_seconds", **THING)
    assert running is not None
    assert running > 0
    assert value(metrics, "workqueue_longest_running_processor_seconds", **THING)
    queue.done(key)
    assert 1 == value(metrics, "workqueue_work_duration_seconds_count", **THING)
    assert 0 == value(metrics, "workqueue_unfinished_work_seconds", **THING)


def test_a_controller_reports(metrics: Metrics) -> None:
    """A failed pass counts by result and as an error; the rest count for themselves."""
    report = metrics.controllers.of("thing")
    report.workers(4)
    report.active(2)
    report.reconciled("error", 0.2)
    report.reconciled("success", 0.1)
    report.terminal_error()
    report.panic()
    report.timeout()

    prefix, labels = "controller_runtime_", {"controller": "thing"}
    assert 1 == value(metrics, f"{prefix}reconcile_total", **labels, result="error")
    assert 1 == value(metrics, f"{prefix}reconcile_errors_total", **labels)
    assert 2 == value(metrics, f"{prefix}reconcile_time_seconds_count", **labels)
    assert 1 == value(metrics, f"{prefix}terminal_reconcile_errors_total", **labels)
    assert 1 == value(metrics, f"{prefix}reconcile_panics_total", **labels)
    assert 1 == value(metrics, f"{prefix}reconcile_timeouts_total", **labels)
    assert (4, 2) == (
        value(metrics, f"{prefix}max_concurrent_reconciles", **labels),
        value(metrics, f"{prefix}active_workers", **labels),
    )


@pytest.mark.parametrize(("code", "label"), [(201, "201"), (0, "<error>")])
def test_a_request_is_counted(metrics: Metrics, code: int, label: str) -> None:
    """By method and host as client-go does, and by Kubernetes verb and resource."""
    metrics.requests.record(
        RequestRecord("apply", "PATCH", "api:6443", "deployments.apps", code, 0.01, 300, 900)
    )

    assert 1 == value(metrics, "rest_client_requests_total", code=label, method="PATCH", host="api:6443")
    assert 1 == value(metrics, "rest_client_request_duration_seconds_count", verb="PATCH", host="api:6443")
    assert 300 == value(metrics, "rest_client_request_size_bytes_sum", verb="PATCH", host="api:6443")
    assert 900 == value(metrics, "rest_client_response_size_bytes_sum", verb="PATCH", host="api:6443")
    assert 1 == value(
        metrics, "modelfleet_api_requests_total", verb="apply", resource="deployments.apps", code=label
    )


@pytest.mark.looptime
async def test_a_reflector_reports(metrics: Metrics) -> None:
    """Silence grows with time and ends with the next bookmark."""
    reflectors = metrics.reflectors
    reflectors.listed(PODS, "models", "initial")
    reflectors.progressed(PODS, "models", 41)
    reflectors.held(PODS, "models", 3)
    reflectors.failed(PODS, "models", "cut")
    await asyncio.sleep(70)

    assert 70 == value(metrics, "modelfleet_reflector_seconds_since_last_event", **POSITION)
    reflectors.progressed(PODS, "models", 42)
    assert 0 == value(metrics, "modelfleet_reflector_seconds_since_last_event", **POSITION)
    assert 42 == value(metrics, "modelfleet_reflector_last_resource_version", **POSITION)
    assert 1 == value(metrics, "modelfleet_reflector_lists_total", **POSITION, cause="initial")
    assert 1 == value(metrics, "modelfleet_reflector_failures_total", **POSITION, ending="cut")
    assert 3 == value(metrics, "modelfleet_store_objects", **POSITION)


def test_events_and_leadership_and_lag(metrics: Metrics) -> None:
    """The rest arrives too."""
    events = metrics.events
    events.event_written()
    events.event_dropped("GaveUp")
    leader = metrics.leader("lease")
    leader.leading(1)
    leader.slow_path()
    metrics.loop_lag(0.3)

    assert 1 == value(metrics, "modelfleet_events_written_total")
    assert 1 == value(metrics, "modelfleet_events_dropped_total", reason="GaveUp")
    assert 1 == value(metrics, "leader_election_master_status", name="lease")
    assert 1 == value(metrics, "leader_election_slowpath_total", name="lease")
    assert 1 == value(metrics, "modelfleet_event_loop_lag_seconds_count")


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [("", "text/plain"), ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text")],
)
async def test_is_scraped(metrics: Metrics, accept: str, content_type: str) -> None:
    """The endpoint speaks the format that is asked for, without the *_created series."""
    metrics.queues.of("thing")
    endpoint = Endpoint(Bind("127.0.0.1", 0), {"/metrics": metrics.handle})
    await endpoint.start()
    try:
        url = f"http://127.0.0.1:{endpoint.port}/metrics"
        async with aiohttp.ClientSession(headers={"Accept": accept}) as session, session.get(url) as answer:
            text = await answer.text()
            assert 200 == answer.status
            assert answer.headers["Content-Type"].startswith(content_type)
    finally:
        await endpoint.close()

    assert 'workqueue_adds_total{controller="thing",name="thing"} 0.0' in text
    assert "modelfleet_build_info{python=" in text
    assert "_created" not in text


def test_registries_are_independent() -> None:
    """Two processes' worth of metrics can live in one: nothing is global."""
    one, other = Metrics(version="1"), Metrics(version="2")
    one.loop_lag(1.0)

    assert 0 == value(other, "modelfleet_event_loop_lag_seconds_count")
