"""Every case of test/contract/schema against a real API server and against `modelfleet validate`.

A case is one object, or one edit of a stored one:

    name       what it is about
    spec       merged (JSON merge patch) into the smallest spec; keep_nulls: true leaves nulls in
    metadata   merged into the metadata
    old        the spec that is stored before, merged in the same way; the case is then an update
    lax        true: it was stored under an older CRD that checked nothing
    refused    absent: accepted. Else `field` (the end of the path) and `says` (the remedy) are in the
               message; `server` replaces `says` where the server's own words are meant
"""

import copy
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from modelfleet.api.crd import crds
from modelfleet.cli.validate import validate
from test.support.cluster import Cluster
from test.support.kinds import CRD, INFERENCE_SERVICE, path_of
from test.support.report import write_report
from test.support.world import Object, World, WorldError

pytestmark = pytest.mark.contract

CASES = Path(__file__).parent / "schema"
SMALLEST: Object = {"container": {"image": "registry.example.com/server:1.0"}}
STRICT = {"fieldValidation": "Strict", "dryRun": "All"}
OLD_GROUP = "old.modelfleet.test"
"""Holds a copy of our CRD, whose rules can be loosened and tightened without other tests seeing it."""


def _load() -> list[Object]:
    return [
        {"file": path.stem, **case}
        for path in sorted(CASES.glob("*.yaml"))
        for case in yaml.safe_load(path.read_text())
    ]


ALL = _load()


def _merge(base: Any, patch: Any, *, keep_nulls: bool) -> Any:
    if not isinstance(patch, dict) or not isinstance(base, dict):
        return copy.deepcopy(patch)
    merged = dict(base)
    for name, value in patch.items():
        if value is None and not keep_nulls:
            merged.pop(name, None)
        else:
            merged[name] = _merge(base.get(name), value, keep_nulls=keep_nulls)
    return merged


def _object(case: Object, spec: Object | None, *, name: str = "case") -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": INFERENCE_SERVICE.api_version,
        "kind": INFERENCE_SERVICE.kind,
        "metadata": metadata | case.get("metadata", {}),
        "spec": _merge(SMALLEST, spec or {}, keep_nulls=case.get("keep_nulls", False)),
    }


class Tally:
    """Counts cases and wrong verdicts for the report."""

    def __init__(self) -> None:
        self.cases = 0
        self.right = 0


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    """Written to build/reports/schema.json after the last case."""
    counted = Tally()
    yield counted
    write_report("schema", cases=counted.cases, wrong=counted.cases - counted.right)


@pytest.fixture(scope="module")
def old_group(control_plane: Cluster) -> Iterator[str]:
    """A copy of our CRD in another group; its objects were stored while it checked nothing."""
    crd = json.loads(json.dumps(crds()[INFERENCE_SERVICE.qualified]).replace("modelfleet.dev", OLD_GROUP))
    crd["spec"]["names"] = {
        key: crd["spec"]["names"][key] for key in ("kind", "listKind", "plural", "singular")
    }
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    control_plane.kubectl("apply", "--server-side", "-f", "-", input=crd)
    control_plane.kubectl("wait", "--for=condition=Established", f"crd/{crd['metadata']['name']}")
    for index, case in enumerate(ALL):
        if case.get("lax"):
            stored = _object(case, case["old"], name=f"case-{index}") | {
                "apiVersion": f"{OLD_GROUP}/v1alpha1"
            }
            control_plane.kubectl("create", "--validate=false", "-f", "-", input=stored)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    control_plane.kubectl("apply", "--server-side", "-f", "-", input=crd)
    _wait_until_strict(control_plane)
    yield OLD_GROUP
    control_plane.request("DELETE", path_of(CRD, name=crd["metadata"]["name"]))


def _wait_until_strict(cluster: Cluster) -> None:
    """The API server takes a moment to serve a changed schema."""
    wrong = _object({}, {"scaling": {"minReplicas": 0}}) | {"apiVersion": f"{OLD_GROUP}/v1alpha1"}
    path = f"/apis/{OLD_GROUP}/v1alpha1/namespaces/default/{INFERENCE_SERVICE.plural}?dryRun=All"
    deadline = time.monotonic() + 30
    while True:
        try:
            cluster.request("POST", path, wrong)
        except AssertionError as refused:
            if "422" in str(refused):
                return
        assert time.monotonic() < deadline, "the new schema is not served after 30 s"


class Server:
    """The API server's opinion of cases."""

    def __init__(self, api: World, namespace: str, old_group: str) -> None:
        self._api = api
        self._namespace = namespace
        self._old_group = old_group

    async def refusal(self, new: Object, old: Object | None, *, lax: bool) -> str:
        """Its message; "" when it accepts. Nothing is stored but what the edit starts from."""
        try:
            await self._write(new, old, lax=lax)
        except WorldError as error:
            if error.code not in {400, 422}:
                raise
            return str(error.status["message"])
        return ""

    async def _write(self, new: Object, old: Object | None, *, lax: bool) -> None:
        path, new = self._placed(new, lax=lax)
        if old is None:
            await self._api.request("POST", path, new, **STRICT)
            return
        if not lax:
            await self._api.request("POST", path, self._placed(old, lax=False)[1])
        path = f"{path}/{new['metadata']['name']}"
        stored = await self._api.request("GET", path)
        new["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
        await self._api.request("PUT", path, new, **STRICT)

    def _placed(self, body: Object, *, lax: bool) -> tuple[str, Object]:
        """The collection's path, and the object as it is written there."""
        if lax:
            path = f"/apis/{self._old_group}/v1alpha1/namespaces/default/{INFERENCE_SERVICE.plural}"
            return path, copy.deepcopy(body) | {"apiVersion": f"{self._old_group}/v1alpha1"}
        metadata = body["metadata"] | {"namespace": self._namespace}
        return path_of(INFERENCE_SERVICE, self._namespace), body | {"metadata": metadata}


@pytest.fixture
def server(api: World, namespace: str, old_group: str) -> Server:
    """Asks the shared control plane."""
    return Server(api, namespace, old_group)


@pytest.mark.parametrize("case", ALL, ids=[f"{case['file']}: {case['name']}" for case in ALL])
async def test_server_and_validate_agree(case: Object, server: Server, tmp_path: Path, tally: Tally) -> None:
    """The verdict is the expected one on both sides, and a refusal names the field and the remedy."""
    tally.cases += 1
    name = f"case-{ALL.index(case)}" if "old" in case else "case"
    new = _object(case, case.get("spec"), name=name)
    old = _object(case, case["old"], name=name) if "old" in case else None
    refused = case.get("refused")

    answer = await server.refusal(new, old, lax=case.get("lax", False))
    found = _ask_validate(new, old, tmp_path)

    if refused is None:
        assert ("", "") == (answer, found)
    else:
        assert refused["field"] in answer
        assert refused.get("server", refused["says"]) in answer
        assert refused["field"] in found
        assert refused["says"] in found
    tally.right += 1


def _ask_validate(new: Object, old: Object | None, folder: Path) -> str:
    """What `modelfleet validate` prints; "" when it is content."""
    (folder / "new.yaml").write_text(yaml.safe_dump(new))
    arguments = ["-f", str(folder / "new.yaml")]
    if old is not None:
        (folder / "old.yaml").write_text(yaml.safe_dump(old))
        arguments += ["--old", str(folder / "old.yaml")]
    result = CliRunner().invoke(validate, arguments)
    assert result.exit_code in (0, 1), result.output
    assert (result.exit_code == 1) == bool(result.stdout)
    return result.stdout
