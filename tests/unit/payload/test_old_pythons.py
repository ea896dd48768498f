"""The payload runs in the user's interpreter: older than ours, with torch and nothing else of ours."""

import ast
import sys
from pathlib import Path

import pytest

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
