"""What is watched, and whom an event wakes."""

from typing import Any

import pytest

from modelfleet.api.meta import API_VERSION, MANAGER
from modelfleet.kube.objects import Item, Meta, Owner
from modelfleet.plan import Api, Key
from modelfleet.reconcilers.inference import keys_of, resources
from modelfleet.reconcilers.inference.apis import (
    CHILDREN,
    DEPLOYMENT,
    ENDPOINT_SLICE,
    HTTP_ROUTE,
    INFERENCE_SERVICE,
    POD,
    SCALED_OBJECT,
)

LABELS = {"modelfleet.dev/inferenceservice": "echo"}
OWNER = Owner(API_VERSION, "InferenceService", "echo", "uid", controller=True)


def item(*, labels: dict[str, str] | None = None, owners: tuple[Owner, ...] = ()) -> Item[Any]:
    """A cached object."""
    return Item(Meta("models", "thing", "u", "1", labels=labels or {}, owners=owners), view=None)


@pytest.mark.parametrize(
    ("expected", "api", "thing"),
    [
        ([Key("models", "thing")], INFERENCE_SERVICE, item()),
        ([Key("models", "echo")], DEPLOYMENT, item(owners=(OWNER,))),
        ([], DEPLOYMENT, item(labels=LABELS)),
        ([], DEPLOYMENT, item(owners=(Owner(API_VERSION, "InferenceService", "echo", "uid"),))),
        ([], DEPLOYMENT, item(owners=(Owner("apps/v1", "ReplicaSet", "echo", "uid", controller=True),))),
        (
            [],
            DEPLOYMENT,
            item(
                owners=(
                    Owner("serving.kserve.io/v1beta1", "InferenceService", "echo", "uid", controller=True),
                )
            ),
        ),
        ([Key("models", "echo")], POD, item(labels=LABELS)),
        ([Key("models", "echo")], ENDPOINT_SLICE, item(labels=LABELS)),
        ([], POD, item()),
    ],
)
def test_whom_an_event_wakes(expected: list[Key], api: Api, thing: Item[Any]) -> None:
    """Children by their controller, pods and endpoint slices by label; another project's kind is not ours."""
    assert expected == list(keys_of(api, thing))


def test_only_keda_and_the_gateway_api_are_optional() -> None:
    """Without them the controller runs; without any other kind it can't tell the truth."""
    optional = {resource.api for resource in resources() if not resource.required}
    assert {SCALED_OBJECT, HTTP_ROUTE} == optional


def test_what_we_apply_is_compared_by_what_we_own() -> None:
    """A kind that gets applies has a digest for our manager, the reconciled kind for its status."""
    managed = {resource.api for resource in resources() if resource.manager == MANAGER}
    assert {INFERENCE_SERVICE, *CHILDREN} == managed


def test_foreign_objects_are_filtered_by_the_server() -> None:
    """Every kind but our own has a selector, so that other people's objects are never cached."""
    unfiltered = {resource.api for resource in resources() if not resource.label_selector}
    assert {INFERENCE_SERVICE} == unfiltered
