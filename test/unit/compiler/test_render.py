"""`modelfleet render` prints what the controller would apply, or nothing."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from modelfleet.cli.render import render
from test.unit.compiler.golden import SPECS, compiled, load

SAMPLE = Path(__file__).parents[3] / "samples" / "inference-kind.yaml"
GOOD = """\
apiVersion: modelfleet.dev/v1alpha1
kind: InferenceService
metadata: {name: echo}
spec:
  container:
    image: x
    env: [{name: A, value: "1e9"}, {name: B, value: "y"}, {name: C, value: "a\\nb"}]
"""
BAD = GOOD.replace("image: x", "port: 0")

LISTED = json.dumps(
    {
        "apiVersion": "modelfleet.dev/v1alpha1",
        "kind": "InferenceServiceList",
        "items": [
            {"metadata": {"name": "first"}, "spec": {"container": {"image": "x"}}},
            {"metadata": {"name": "second", "namespace": "a"}, "spec": {"container": {"port": 0}}},
        ],
    }
)


def run(*arguments: str, text: str = "") -> Result:
    """Run the command."""
    return CliRunner().invoke(render, list(arguments), input=text)


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_the_same_compiler(spec: Path) -> None:
    """What is printed is what the controller applies, but for the owner references."""
    expected = [dict(manifest.body) for manifest in compiled(load(spec)).at_birth]
    for body in expected:
        body["metadata"] = {k: v for k, v in body["metadata"].items() if k != "ownerReferences"}
    result = run("-f", str(spec))
    assert (0, expected) == (result.exit_code, list(yaml.safe_load_all(result.stdout)))
    as_json = run("-f", str(spec), "-o", "json")
    assert expected == json.loads(as_json.stdout)["items"]


def test_the_sample_has_four_children() -> None:
    """The sample of the local cluster shows every kind of child but the budget."""
    result = run("-f", str(SAMPLE))
    kinds = [body["kind"] for body in yaml.safe_load_all(result.stdout)]
    assert ["Deployment", "Service", "ScaledObject", "HTTPRoute"] == kinds
    assert "Namespace models: skipped" in result.stderr


def test_text_stays_text_for_every_yaml_reader() -> None:
    """1e9 and y are text here; kubectl's YAML would read them as a number and a truth value."""
    result = run("-f", "-", text=GOOD)
    assert 'value: "1e9"' in result.stdout
    assert 'value: "y"' in result.stdout
    (deployment, _service) = yaml.safe_load_all(result.stdout)
    values = [one["value"] for one in deployment["spec"]["template"]["spec"]["containers"][0]["env"]]
    assert ["1e9", "y", "a\nb"] == values


@pytest.mark.parametrize(
    ("code", "words", "text", "arguments"),
    [
        (1, "error: stdin: InferenceService echo: spec.container", BAD, ()),
        (1, "spec.container", f"{GOOD}---\n{BAD}", ()),
        (1, "kind: must be one of", GOOD.replace("kind: InferenceService", "kind: Unheard"), ()),
        (2, "stdin:2", "a: b\n: : :", ()),
        (2, "no/such/file", "", ("-f", "no/such/file")),
        (1, "stdin: InferenceService a/second: spec.container.port: must be", LISTED, ()),
        (2, "stdin: InferenceService a/second: metadata.namespace: is 'a'", LISTED, ("-n", "b")),
        (2, "--namespace is 'b'", GOOD.replace("name: echo", "name: echo, namespace: a"), ("-n", "b")),
        (2, "Missing option", "", None),
    ],
)
def test_one_bad_document_leaves_stdout_empty(
    code: int, words: str, text: str, arguments: tuple[str, ...] | None
) -> None:
    """Half of a set of manifests must not reach `kubectl apply`; stderr says what is wrong and where."""
    result = run(*(() if arguments is None else ("-f", "-", *arguments)), text=text)
    assert (code, "") == (result.exit_code, result.stdout)
    assert words in result.stderr


def test_the_namespace_of_objects_that_name_none() -> None:
    """`--namespace` fills in what the file leaves open."""
    result = run("-f", "-", "-n", "models", text=GOOD)
    assert {"models"} == {body["metadata"]["namespace"] for body in yaml.safe_load_all(result.stdout)}


def test_nothing_to_render() -> None:
    """Files without an object of ours are no error; stdout is empty."""
    assert (0, "") == ((result := run("-f", "-", text="kind: ConfigMap\n")).exit_code, result.stdout)
