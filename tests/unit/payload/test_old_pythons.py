"""The payload runs in the user's interpreter: older than ours, with torch and nothing else of ours."""

import ast
import json
import sys
from pathlib import Path

import pytest

from advisor.payload import child as child_program
from advisor.payload.protocol import VERSION
from advisor.profile.recording import read_recording

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
