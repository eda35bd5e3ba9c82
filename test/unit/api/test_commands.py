"""`modelfleet validate` and `modelfleet crds` as people use them; the streams are those of every command."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from modelfleet.api.crd import crds as definitions
from modelfleet.cli.crds import crds
from modelfleet.cli.documents import Document, parse
from modelfleet.cli.validate import validate

GOOD = """\
apiVersion: modelfleet.dev/v1alpha1
kind: InferenceService
metadata: {name: good, namespace: models}
spec: {container: {image: server}}
"""
BAD = GOOD.replace("good", "bad").replace("image: server", "image: server, port: 0")
BOMB = "a: &a [x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
OURS = "apiVersion: modelfleet.dev/v1alpha1\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: other}\n"


def check(*arguments: str, stdin: str | bytes = "") -> Result:
    """Run `modelfleet validate`."""
    return CliRunner().invoke(validate, arguments, input=stdin)


def body_of(text: str) -> dict[str, Any]:
    """The one object of a text."""
    [document] = parse("x", text)
    assert isinstance(document, Document)
    return document.body


def write(folder: Path, name: str, text: str) -> str:
    """Write a file and give its name."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_good(tmp_path: Path) -> None:
    """A right manifest is silent on stdout and exits 0."""
    result = check("-f", write(tmp_path, "a.yaml", GOOD))
    assert (0, "", "1 checked, 0 wrong, 0 skipped\n") == (result.exit_code, result.stdout, result.stderr)


def test_bad(tmp_path: Path) -> None:
    """A finding is one line: file, object, field, remedy; the exit code is 1."""
    file = write(tmp_path, "a.yaml", BAD)
    result = check("-f", file)
    assert 1 == result.exit_code
    assert (
        f"{file}: InferenceService models/bad: spec.container.port: must be at least 1, is 0\n"
        == result.stdout
    )


def test_several_documents_and_lists() -> None:
    """Documents of a file, items of a List and stdin are read; other kinds are skipped with a note."""
    items = {"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(BAD), yaml.safe_load(POD)]}
    result = check("-f", "-", stdin=f"{GOOD}---\n---\n{json.dumps(items)}\n")
    assert 1 == result.exit_code
    assert [
        "stdin: InferenceService models/bad: spec.container.port: must be at least 1, is 0"
    ] == result.stdout.splitlines()
    assert [
        "stdin: Pod other: skipped, not a kind of modelfleet.dev",
        "2 checked, 1 wrong, 1 skipped",
    ] == result.stderr.splitlines()


@pytest.mark.parametrize(
    "said", [{}, {"kind": "InferenceService"}, {"apiVersion": "modelfleet.dev/v1alpha1"}]
)
@pytest.mark.parametrize(
    "listed", [{"apiVersion": "modelfleet.dev/v1alpha1", "kind": "InferenceServiceList"}]
)
def test_lists_of_our_kinds(listed: dict[str, str], said: dict[str, str]) -> None:
    """Items are checked one by one, and need not repeat the apiVersion and kind of their list."""
    left = {key: value for key, value in yaml.safe_load(BAD).items() if key in ("metadata", "spec")}
    result = check("-f", "-", stdin=json.dumps({**listed, "items": [left | said, yaml.safe_load(GOOD)]}))
    assert (
        "stdin: InferenceService models/bad: spec.container.port: must be at least 1, is 0\n",
        "2 checked, 1 wrong, 0 skipped\n",
    ) == (result.stdout, result.stderr)


@pytest.mark.parametrize("kind", ["apiVersion: v1\nkind: List\n", f"{OURS}kind: InferenceServiceList\n"])
@pytest.mark.parametrize("items", ["", "items: []\n", "items: null\n"])
def test_empty_lists(kind: str, items: str) -> None:
    """A list of nothing holds nothing wrong, however the emptiness is written."""
    result = check("-f", "-", stdin=kind + items)
    assert (0, "0 checked, 0 wrong, 0 skipped\n") == (result.exit_code, result.stderr)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ("{}", "stdin:1: items of InferenceServiceList must be a list"),
        ("[null]", "stdin:1: items[0]: not a Kubernetes object"),
        ("[{metadata: {name: a}}, b]", "stdin:1: items[1]: not a Kubernetes object"),
    ],
)
def test_broken_lists(items: str, message: str) -> None:
    """What is no list of objects is said with the place of the item; the exit code is 2."""
    result = check("-f", "-", stdin=f"{OURS}kind: InferenceServiceList\nitems: {items}\n")
    assert 2 == result.exit_code
    assert f"error: {message}" in result.stderr


def test_an_unknown_list_kind_of_our_group() -> None:
    """A slip in the kind of a list shows in its items, since it is theirs too."""
    result = check("-f", "-", stdin=f"{OURS}kind: InferenceServceList\nitems: [{{metadata: {{name: a}}}}]\n")
    assert "InferenceServce a: kind: must be one of InferenceService" in result.stdout


def test_directories(tmp_path: Path) -> None:
    """A directory is read with its subdirectories, manifests only, in the order of their names."""
    write(tmp_path, "b/deep.yml", BAD)
    write(tmp_path, "a.json", json.dumps(yaml.safe_load(BAD)))
    write(tmp_path, "notes.txt", "{{ not yaml")
    result = check("-f", str(tmp_path))
    assert ["a.json", "deep.yml"] == [Path(line.split(": ")[0]).name for line in result.stdout.splitlines()]


def test_unknown_kind_of_our_group() -> None:
    """A slip in the kind is an error, not something to skip."""
    result = check("-f", "-", stdin=GOOD.replace("kind: InferenceService", "kind: InferenceServce"))
    assert 1 == result.exit_code
    assert "InferenceServce models/good: kind: must be one of InferenceService" in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2\n", "stdin:2: "),
        (
            "a: 1\n---\nspec: {}\nkind: x\nspec: {}\n",
            "stdin:5: key 'spec' was given already on line 3: remove one",
        ),
        ("- a\n", "stdin:1: not a Kubernetes object"),
        ("\tkind: x\n", "stdin:1: "),
        ("a: *b\n", "stdin:1: found undefined alias"),
        ("a: .nan\n", "stdin:1: .nan is no JSON number"),
        ("a: !!python/object:os.system {}\n", "stdin:1: could not determine a constructor"),
        ("[" * 5000, "stdin: not YAML: "),
        ("a: 1\nb: &b [*b]\n", "stdin:2: an anchor contains itself"),
        (BOMB, "stdin:7: aliases make this more than 1000000 values"),
    ],
)
def test_no_yaml(text: str, message: str) -> None:
    """What is no YAML is reported with file and line, never with a traceback; the exit code is 2."""
    result = check("-f", "-", stdin=text)
    assert (2, SystemExit) == (result.exit_code, type(result.exception))
    assert f"error: {message}" in result.stderr


def test_unreadable_files_do_not_hide_the_rest(tmp_path: Path) -> None:
    """Everything that can be read is checked; the exit code says that something could not."""
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty").mkdir()
    result = check(
        "-f",
        str(tmp_path / "no"),
        "-f",
        str(tmp_path / "empty"),
        "-f",
        str(tmp_path),
        "-f",
        write(tmp_path, "x.yaml", BAD),
    )
    assert 2 == result.exit_code
    assert "no: No such file or directory" in result.stderr
    assert "empty: no .yaml, .yml, .json file in this directory" in result.stderr
    assert "binary.yaml: not UTF-8 text (byte 0)" in result.stderr
    assert "models/bad: spec.container.port" in result.stdout


def test_wrong_usage() -> None:
    """Without -f the command says what is missing; the exit code is 2."""
    result = check()
    assert 2 == result.exit_code
    assert "Missing option '-f'" in result.stderr


def test_json(tmp_path: Path) -> None:
    """-o json gives the same for programs, with the line of the document."""
    file = write(tmp_path, "a.yaml", f"{POD}---\n{BAD}")
    result = check("-f", file, "-o", "json")
    assert {
        "checked": 1,
        "violations": [
            {
                "file": file,
                "line": 5,
                "kind": "InferenceService",
                "namespace": "models",
                "name": "bad",
                "path": "spec.container.port",
                "message": "must be at least 1, is 0",
            }
        ],
        "skipped": [{"file": file, "object": "Pod other"}],
        "errors": [],
    } == json.loads(result.stdout)


def test_old(tmp_path: Path) -> None:
    """With --old an edit is judged as the server judges it."""
    old = write(tmp_path, "old.yaml", BAD)
    suspended = write(tmp_path, "new.yaml", BAD.replace("{container", "{suspend: true, container"))
    headless = write(
        tmp_path, "headless.yaml", BAD.replace("{container", "{service: {headless: true}, container")
    )
    assert (1, 0, 1) == (
        check("-f", suspended).exit_code,
        check("-f", suspended, "--old", old).exit_code,
        check("-f", headless, "--old", old).exit_code,
    )


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("2026-01-31", "2026-01-31"),
        ("1:30", "1:30"),
        ("1e3", 1000),
        ("0644", 420),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", 1000),
        ("08", 8),
        ("1.5", 1.5),
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("", None),
        ('"yes"', "yes"),
    ],
)
def test_yaml_is_read_as_kubernetes_reads_it(written: str, value: object) -> None:
    """Scalars mean what go-yaml makes of them, which is what the API server gets."""
    assert {"value": value} == body_of(f"value: {written}\n")


def test_keys_are_strings() -> None:
    """JSON has no other keys."""
    assert {"1": "a", "true": "b"} == body_of("1: a\ntrue: b\n")


def test_anchors_and_merge_keys() -> None:
    """Merge keys fill in what is not given, and are no duplicates."""
    assert {"i": 1, "j": 3} == body_of("a: &a {i: 1, j: 2}\nb: {<<: *a, j: 3}\n")["b"]


def test_crds_are_printed() -> None:
    """Without options the CRDs go to stdout, ready for kubectl."""
    result = CliRunner().invoke(crds, [])
    assert 0 == result.exit_code
    assert list(definitions().values()) == list(yaml.safe_load_all(result.stdout))


def test_crds_are_written_and_checked(tmp_path: Path) -> None:
    """--output writes, --check compares, and files of kinds that are gone go."""
    folder = tmp_path / "crd"
    stale = "olds.modelfleet.dev.yaml"
    run = CliRunner().invoke
    missing = run(crds, ["--output", str(folder), "--check"])
    assert 1 == missing.exit_code
    assert f"run modelfleet crds --output {folder}" in missing.stderr
    assert 0 == run(crds, ["--output", str(folder)]).exit_code
    assert 0 == run(crds, ["--output", str(folder), "--check"]).exit_code
    (folder / stale).write_text("kind: x\n")
    assert 1 == run(crds, ["--output", str(folder), "--check"]).exit_code
    assert 0 == run(crds, ["--output", str(folder)]).exit_code
    assert {f"{name}.yaml" for name in definitions()} == {path.name for path in folder.iterdir()}


def test_crds_wrong_usage(tmp_path: Path) -> None:
    """--check without a directory, and a directory that can't be made, are said plainly."""
    (tmp_path / "file").write_text("")
    alone = CliRunner().invoke(crds, ["--check"])
    blocked = CliRunner().invoke(crds, ["--output", str(tmp_path / "file" / "crd")])
    assert (2, 2) == (alone.exit_code, blocked.exit_code)
    assert "--check needs --output DIR" in alone.stderr
    assert "can't write to" in blocked.stderr


def shell(line: str, file: str) -> tuple[int, str, str]:
    """Run `modelfleet` as a process, with real streams: exit code, stdout, stderr."""
    script = (
        f"modelfleet() {{ '{sys.executable}' -c 'from modelfleet.cli import main; main()' \"$@\"; }}; {line}"
    )
    done = subprocess.run(["bash", "-c", script, "bash", file], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("command", ["render -f $1", "crds", "version", "--help"])
@pytest.mark.parametrize(
    ("stream", "why"),
    [
        (">/dev/full", "No space left on device"),
        (">&-", "stdout is closed"),
        (">&- <&-", "stdout is closed"),
    ],
)
def test_output_that_cannot_be_written(tmp_path: Path, command: str, stream: str, why: str) -> None:
    """No command ends well when nobody got its output: one line on stderr and exit code 2."""
    file = write(tmp_path, "a.yaml", GOOD)
    expected = (2, "", f"error: can't write the output: {why}\n")
    assert expected == shell(f"modelfleet {command} {stream}", file)


@pytest.mark.parametrize("stream", [">/dev/full 2>/dev/full", "2>/dev/full", "2>&- >/dev/full"])
def test_errors_that_cannot_be_written(tmp_path: Path, stream: str) -> None:
    """Where no line can be left, the exit code still tells."""
    file = write(tmp_path, "a.yaml", BAD)
    assert (2, "", "") == shell(f"modelfleet validate -f $1 {stream} | sed d; exit $PIPESTATUS", file)


def test_a_closed_stdout_that_is_not_needed(tmp_path: Path) -> None:
    """A command that prints nothing doesn't care who listens."""
    assert 0 == shell(f"modelfleet crds --output {tmp_path} >&-", "")[0]


def test_a_reader_that_leaves() -> None:
    """`| head -1` is no error worth a word."""
    _, stdout, stderr = shell("modelfleet crds | head -1", "")
    assert (1, "") == (len(stdout.splitlines()), stderr)


@pytest.mark.parametrize("command", ["validate", "render"])
@pytest.mark.parametrize(("stream", "why"), [("<&-", "closed: pipe"), ("0>/dev/null", "Bad file descriptor")])
def test_a_stdin_that_cannot_be_read(command: str, stream: str, why: str) -> None:
    """`-f -` without a readable stdin is an unreadable source like any other."""
    code, stdout, stderr = shell(f"modelfleet {command} -f - {stream}", "")
    assert (2, "") == (code, stdout)
    assert f"error: stdin: {why}" in stderr
    assert "Traceback" not in stderr
