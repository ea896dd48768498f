"""The tree: a package holds modules and no code of its own, and a file name means one thing."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("advisor", "recommender")
MOST_THAT_TAKE_ALL_SETTINGS = 40
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
def test_a_package_holds_a_docstring_and_re_exports_only(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "say what the room is for"
    assert not [ast.unparse(node) for node in tree.body if not is_re_export(node)]


def test_the_check_sees_code():
    for code in ("def f(): ...", "X = 1", "class C: ...", "f()", "for x in y: ...", "if x: import y"):
        assert not is_re_export(ast.parse(code).body[0]), code


def takes_all_settings(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether one of its parameters is all settings there are, with who set them or without."""
    parameters = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return any(
        one.annotation is not None and ast.unparse(one.annotation).strip("'") in ("Config", "Settings")
        for one in parameters
    )


def test_few_functions_take_all_settings():
    """A use case takes the groups that it needs: `StoreSettings`, `PricingSettings`, ..."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and takes_all_settings(node)
    ]
    assert 0 < len(found) <= MOST_THAT_TAKE_ALL_SETTINGS, found


def test_the_count_sees_each_kind_of_parameter():
    for code in ("def f(c: Config): ...", "def f(*, s: Settings): ...", "async def f(c: 'Config', /): ..."):
        (function,) = ast.parse(code).body
        assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        assert takes_all_settings(function), code
    (narrow,) = ast.parse("def f(store: StoreSettings, load: Callable[[], Config]) -> Config: ...").body
    assert isinstance(narrow, ast.FunctionDef)
    assert not takes_all_settings(narrow)


def test_no_file_name_means_three_things():
    rooms = defaultdict(list)
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            if not path.name.startswith("__"):
                rooms[path.name].append(str(path.relative_to(ROOT)))
    thrice = {name: paths for name, paths in rooms.items() if len(paths) > 2}
    assert thrice == {}
