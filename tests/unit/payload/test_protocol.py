"""Parent and child hold each other to one contract; the payload runs in older interpreters than ours."""

import ast
import json
import sys
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import ProfileError
from advisor.payload import child as child_program
from advisor.payload import protocol
from advisor.payload.child import start
from advisor.payload.progress import write_result
from advisor.payload.protocol import VERSION, Status, Warned, notice
from advisor.profile.attempt import AttemptJob, ScriptGpu, written
from advisor.profile.recording import read_recording
from tests.unit.profile.test_recording import recording

JOB = AttemptJob(script="train.py", arguments=("--lr", "1"), backend="fake", gpu=ScriptGpu())
COLLECTIVE = {"kind": "all_reduce", "num_bytes": 8, "world_size": None, "count": 1}
LOADING = {
    name: value for name, value in recording()["loading"].items() if name in protocol.Loading.__annotations__
}
# Every field of a result that has a form of its own.
WHOLE = recording(collectives=[COLLECTIVE], calls=[[0, 1, 2]], iteration_s=0.5, line=None, loading=LOADING)


def read(tmp_path, document: object):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return read_recording(path)


def places(value: object, path: tuple[Any, ...] = ()):
    """Where the document holds something whose form is checked."""
    if path[-1:] in (("attributes",), ("versions",), ("facts",)):
        return
    yield path
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from places(child, (*path, key))


def changed(value: Any, path: tuple[Any, ...], other: object) -> Any:
    if not path:
        return other
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = changed(value[path[0]], path[1:], other)
    return copied


def test_what_the_child_writes_is_what_the_parent_reads(tmp_path):
    assert read(tmp_path, WHOLE) == WHOLE


@pytest.mark.parametrize("path", list(places(WHOLE)), ids=lambda path: ".".join(map(str, path)) or "all")
def test_no_value_of_another_kind_passes(path, tmp_path):
    # No field takes all of them, and none takes an object without fields.
    for other in ({}, {"a": "b"}):
        with pytest.raises(ProfileError, match=r"damaged|different versions"):
            read(tmp_path, changed(WHOLE, path, other))


@pytest.mark.parametrize("path", [p for p in places(WHOLE) if len(p) > 1 and isinstance(p[-1], str)])
def test_no_field_of_a_part_may_be_missing(path, tmp_path):
    document = json.loads(json.dumps(WHOLE))
    owner = document
    for key in path[:-1]:
        owner = owner[key]
    del owner[path[-1]]
    with pytest.raises(ProfileError, match="damaged"):
        read(tmp_path, document)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *((("operators", 0, "count"), count) for count in (-1, 1.0, True, "1")),
        *((("iteration_s",), seconds) for seconds in (-0.5, float("inf"), float("nan"), "1")),
    ],
)
def test_no_count_or_time_is_negative_infinite_or_of_another_kind(path, value, tmp_path):
    with pytest.raises(ProfileError, match="damaged"):
        read(tmp_path, changed(WHOLE, path, value))


@given(text=st.text(max_size=200), names=st.lists(st.text(max_size=50), max_size=5))
def test_any_words_arrive(text, names, tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    warnings = [notice(Warned.NOT_DONE, what="download", name=name) for name in names]
    write_result(written(JOB, folder), Status.CRASHED, {"message": text, "warnings": warnings})
    arrived = read_recording(folder / "result.json")
    assert (arrived["status"], arrived["message"], arrived["warnings"]) == (Status.CRASHED, text, warnings)


def test_a_job_holds_what_the_contract_says(tmp_path):
    job = json.loads(json.dumps(written(JOB, tmp_path)))
    assert set(job) == set(protocol.ScriptJob.__annotations__)
    assert set(job["gpu"]) == set(protocol.Gpu.__annotations__)
    assert (job["version"], job["script"], job["arguments"]) == (VERSION, "train.py", ["--lr", "1"])


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1, None])
def test_a_child_refuses_a_job_of_another_version(version, tmp_path, monkeypatch):
    class Left(BaseException):
        pass

    def leave(status: int) -> None:
        raise Left(status)

    monkeypatch.setattr("os._exit", leave)
    with pytest.raises(Left):
        start({**written(JOB, tmp_path, module="no_such_module"), "version": version})
    refusal = json.loads((tmp_path / "result.json").read_text())
    assert (refusal["format_version"], refusal["status"]) == (VERSION, "crashed")


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_parent_refuses_a_result_of_another_version_in_one_line(version, is_first, tmp_path):
    rest = {"status": "ok"}
    document = {"format_version": version, **rest} if is_first else {**rest, "format_version": version}
    with pytest.raises(ProfileError, match="different versions: install gpu-advisor anew") as refused:
        read(tmp_path, document)
    assert "\n" not in str(refused.value)


def test_only_what_the_check_can_read_stands_in_the_contract():
    """A kind that ``result_schema`` does not know would pass unchecked."""
    known = {int, float, str, bool, type(None), Status}

    def kinds(hint: Any):
        if isinstance(hint, type) and hasattr(hint, "__required_keys__"):
            for inner in get_type_hints(hint, include_extras=True).values():
                yield from kinds(inner)
        elif get_origin(hint) is dict or not get_args(hint):
            yield hint
        elif str(get_origin(hint)) != "typing.Literal":
            for inner in get_args(hint):
                if not isinstance(inner, protocol.LengthLimit):
                    yield from kinds(inner)

    unknown = {hint for hint in kinds(protocol.Result) if hint not in known and get_origin(hint) is not dict}
    assert not unknown


PAYLOAD = Path(__file__).parents[3] / "advisor" / "payload"
FILES = sorted(PAYLOAD.rglob("*.py"))
# Of the interpreter that torch asks for; commands of `advisor run` may start any.
OLDEST, OLDEST_OF_RECEIPTS = (3, 10), (3, 7)


def imported_at_run_time(node: ast.AST):
    """The modules that a file imports; those for the type checker alone left out."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        children = node.orelse
    else:
        children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        yield str(node.module)
    for child in children:
        yield from imported_at_run_time(child)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PAYLOAD)))
def test_a_file_is_old_python_that_needs_torch_alone(path):
    oldest = OLDEST_OF_RECEIPTS if "receipt" in path.parts else OLDEST
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=oldest)
    roots = {name.partition(".")[0] for name in imported_at_run_time(tree)}
    assert roots <= {"torch", *sys.stdlib_module_names}


def test_a_python_that_is_too_old_says_so_in_its_result(tmp_path, monkeypatch):
    """Was: a TypeError of ours."""
    result, job = tmp_path / "result.json", tmp_path / "job.json"
    job.write_text(json.dumps({"version": VERSION, "result": str(result)}))
    monkeypatch.setattr(child_program, "die_with_the_parent", lambda: None)
    monkeypatch.setattr(sys, "argv", ["child.py", str(job)])
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))
    child_program.main()
    monkeypatch.undo()
    assert read_recording(result) | {"format_version": 0} == {
        "format_version": 0, "status": "old_python", "message": "3.9.18"
    }  # fmt: skip
