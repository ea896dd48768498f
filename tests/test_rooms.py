"""The tree: a package holds modules and no code of its own, and a file name means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("advisor", "recommender")
# The face of the library hands out its names when they are asked for: importing it imports nothing heavy.
LAZY = ROOT / "advisor" / "__init__.py"
INITS = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("__init__.py") if path != LAZY)


def is_re_export(node: ast.stmt) -> bool:
    """A docstring, an import, or the list of names that are public."""
    if isinstance(node, ast.Assign):
        return [ast.unparse(target) for target in node.targets] == ["__all__"]
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or isinstance(node, ast.Import | ast.ImportFrom)


@pytest.mark.parametrize("path", INITS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_holds_a_docstring_and_re_exports_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "say what the room is for"
    assert not [ast.unparse(node) for node in tree.body if not is_re_export(node)]


def test_the_check_sees_code() -> None:
    for code in ("def f(): ...", "X = 1", "class C: ...", "f()", "for x in y: ...", "if x: import y"):
        assert not is_re_export(ast.parse(code).body[0]), code


def test_no_file_name_means_three_things() -> None:
    rooms = defaultdict(list)
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            if not path.name.startswith("__"):
                rooms[path.name].append(str(path.relative_to(ROOT)))
    thrice = {name: paths for name, paths in rooms.items() if len(paths) > 2}
    assert thrice == {}
