"""Quantities as a real API server writes them back."""

import random
from pathlib import Path

import pytest

from modelfleet.api.quantity import MILLI, canonical
from test.support.kinds import DEPLOYMENT, path_of
from test.support.world import Object, World

pytestmark = pytest.mark.contract

KNOWN = (Path(__file__).parent / "quantities.txt").read_text().split()
UNITS = ["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "e0", "e1", "e2", "e3", "E3", "e-1", "e-3"]


def _random(count: int) -> list[str]:
    """The same numbers on each run, with many digits, zeros and units."""
    source = random.Random(20)
    made = []
    for _ in range(count):
        whole = str(source.randrange(10 ** source.randint(0, 7))) + "0" * source.choice((0, 0, 1, 2, 3))
        rest = source.choice(("", "", f".{source.randrange(10 ** source.randint(1, 6))}", ".500", "."))
        made.append(whole + rest + source.choice(UNITS))
    return made


async def test_canonical_is_what_the_server_stores(api: World, namespace: str) -> None:
    """A quantity written in its canonical form comes back unchanged, so an apply of it is no change (A2)."""
    quantities = KNOWN + _random(300)

    volumes: list[Object] = [
        {"name": f"v{i}", "emptyDir": {"sizeLimit": q}} for i, q in enumerate(quantities)
    ]
    containers: list[Object] = [
        {"name": f"c{i}", "image": "x", "resources": {"limits": {"ephemeral-storage": q}}}
        for i, q in enumerate(quantities)
    ]
    stored = await _stored(api, namespace, containers, volumes)

    sizes = [volume["emptyDir"]["sizeLimit"] for volume in stored["volumes"]]
    limits = [each["resources"]["limits"]["ephemeral-storage"] for each in stored["containers"]]
    assert [canonical(q) for q in quantities] == sizes
    assert [canonical(q, smallest=MILLI) for q in quantities] == limits


async def _stored(api: World, namespace: str, containers: list[Object], volumes: list[Object]) -> Object:
    labels = {"app": "quantities"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers, "volumes": volumes}}
    body = {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.kind,
        "metadata": {"name": "quantities", "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    await api.request("POST", path_of(DEPLOYMENT, namespace), body)
    created = await api.get(DEPLOYMENT, namespace, "quantities")
    return dict(created["spec"]["template"]["spec"])
