"""RouteReady counts the answers of our own parents at the current generation, and nothing else."""

from typing import Any

import pytest

from modelfleet.plan import Cause, Problem
from modelfleet.reconcilers.inference.apis import HTTP_ROUTE
from test.unit.reconcilers.inference.scenes import (
    PARENT,
    ROUTED,
    condition,
    failed,
    found,
    healthy,
    judge,
    parent_status,
    route,
    spec,
    verdicts,
)
from test.unit.reconcilers.inference.world import World

SPEC = spec(route=ROUTED)
ACCEPTED, RESOLVED = condition("Accepted", "True"), condition("ResolvedRefs", "True")


def routed_world() -> World:
    """Everything works."""
    world = World(SPEC)
    healthy(world)
    return world


def test_absent_without_a_route() -> None:
    """A condition that does not apply is not there."""
    world = World(spec())
    healthy(world)
    assert "RouteReady" not in verdicts(judge(world))


@pytest.mark.parametrize(
    ("expected", "parents"),
    [
        ("True/Accepted", [parent_status()]),
        ("Unknown/NoControllerAnswered", []),
        ("Unknown/NoControllerAnswered", [parent_status(namespace="elsewhere")]),
        ("Unknown/NoControllerAnswered", [parent_status(sectionName="https")]),
        ("Unknown/NoControllerAnswered", [parent_status(kind="ListenerSet")]),
        ("Unknown/NoControllerAnswered", [parent_status(group="example.com")]),
        ("Unknown/NoControllerAnswered", [parent_status(name="other")]),
        ("Unknown/NoControllerAnswered", [parent_status(port=443)]),
        ("Unknown/NoControllerAnswered", [parent_status(RESOLVED)]),
        ("Unknown/NoControllerAnswered", [parent_status(ACCEPTED)]),
        (
            "Unknown/NoControllerAnswered",
            [parent_status(condition("Accepted", "Unknown", "Pending"), RESOLVED)],
        ),
        (
            "False/NotAcceptedByGateway",
            [parent_status(condition("Accepted", "False", "NoMatchingParent", "no listener"), RESOLVED)],
        ),
        (
            "False/RefsNotResolved",
            [parent_status(ACCEPTED, condition("ResolvedRefs", "False", "BackendNotFound", "no Service"))],
        ),
        ("True/Accepted", [parent_status(controller="example.com/foreign", name="other"), parent_status()]),
        (
            "True/Accepted",
            [
                parent_status(condition("Accepted", "False", "NoMatchingParent"), controller="a/a"),
                parent_status(),
            ],
        ),
    ],
)
def test_who_counts(expected: str, parents: list[dict[str, Any]]) -> None:
    """Every part of the reference must match, and both conditions must be True (kserve#5582, #5986)."""
    world = routed_world()
    route(world, *parents)
    assert expected == verdicts(judge(world))["RouteReady"]


@pytest.mark.parametrize(
    ("expected", "generation"),
    [("Unknown/StaleGatewayStatus", 1), ("True/Accepted", 2), ("True/Accepted", 0)],
)
def test_answers_about_a_former_spec_do_not_count(expected: str, generation: int) -> None:
    """An old acceptance says nothing about the route as it is now; 0 is a controller that does not say."""
    world = routed_world()
    world.edit(spec(route={**ROUTED, "paths": ["/v2"]}))
    world.converge()
    conditions = [{**known, "observedGeneration": generation} for known in (ACCEPTED, RESOLVED)]
    route(world, parent_status(*conditions))
    assert expected == verdicts(judge(world))["RouteReady"]


def test_all_parents_must_accept() -> None:
    """The route is ready when it is ready everywhere; the refusing listener is named."""
    world = World(spec(route={**ROUTED, "parentRefs": [PARENT, {**PARENT, "sectionName": "https"}]}))
    healthy(world)
    refused = condition("Accepted", "False", "NotAllowedByListeners", "namespace not allowed")
    route(world, parent_status(), parent_status(refused, RESOLVED, sectionName="https"))
    verdict = found(judge(world), "RouteReady")
    assert ("False", "NotAcceptedByGateway") == (verdict.status, verdict.reason)
    assert 'listener "https" of Gateway gateway/shared' in verdict.message
    assert "NotAllowedByListeners: namespace not allowed" in verdict.message


def test_a_parent_without_a_namespace_is_in_the_routes_own() -> None:
    """The Gateway API's default for parentRefs.namespace."""
    parent = {"name": "shared", "sectionName": "http"}
    world = World(spec(route={**ROUTED, "parentRefs": [parent]}))
    healthy(world)
    route(world, parent_status(namespace="models"))
    assert "True/Accepted" == verdicts(judge(world))["RouteReady"]


def test_nobody_answers() -> None:
    """The message says what to check, not that something is pending."""
    world = routed_world()
    route(world)
    expected = (
        'no Gateway controller has answered for listener "http" of Gateway gateway/shared: check that it '
        "exists and that the controller of its GatewayClass runs"
    )
    assert expected == found(judge(world), "RouteReady").message


def test_the_gateway_api_is_not_installed() -> None:
    """The missing part is named with its remedy, and the absent type gets no request."""
    world = World(SPEC, absent=(HTTP_ROUTE,))
    healthy(world)
    status = judge(world)
    assert "False/GatewayAPINotInstalled" == verdicts(status)["RouteReady"]
    assert "install the Gateway API CRDs" in found(status, "RouteReady").message
    assert () == world.step()[0].actions


def test_a_refused_route() -> None:
    """A held name becomes the route's condition."""
    world = routed_world()
    problem = Problem(Cause.NAME_CONFLICT, "HTTPRoute models/echo exists and is controlled by nobody.")
    status = judge(world, failed("httproute", problem))
    assert "False/NameConflict" == verdicts(status)["RouteReady"]
    assert problem.message == found(status, "RouteReady").message


def test_an_edit_is_not_accepted_before_it_is_applied() -> None:
    """In the pass that applies a new route the old acceptance does not count."""
    world = routed_world()
    world.edit(spec(route={**ROUTED, "paths": ["/v2"]}))
    assert "Unknown/NoControllerAnswered" == verdicts(judge(world))["RouteReady"]


@pytest.mark.parametrize(
    ("expected", "change"),
    [
        ("http://echo.example.com/v1", {}),
        (None, {"hostnames": ["*.example.com"]}),
        (None, {"hostnames": []}),
    ],
)
def test_the_url_is_the_first_real_host_name(expected: str | None, change: dict[str, Any]) -> None:
    """A wildcard is no address, and neither is a host name nobody has given."""
    world = World(spec(route={**ROUTED, **change}))
    healthy(world)
    assert expected == judge(world).fields.get("url")


def test_no_url_before_the_route_is_accepted() -> None:
    """A URL that nobody answers is not announced."""
    world = routed_world()
    route(world)
    assert "url" not in judge(world).fields
