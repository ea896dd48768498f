"""Show that the tests notice: small faults are put into modules, one at a time, and the tests of each run.

    python -m tools.mutants --number 200 --seed 0

A mutant is a module with one operator or constant changed. It lives in the memory of one process, which runs
the test files that mirror or import the module; no file is changed. Printed are how each ends and the
part that was killed. Test files that fail without any fault count for nothing.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("advisor/predict", "advisor/pricing", "recommender")
# Not those of other rooms that merely need a prediction.
TESTS = tuple(
    f"tests/{room}"
    for room in ("property", "unit/predict", "unit/pricing", "unit/recommender", "unit/native")
)
TIMEOUT_S = 600.0
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One fault: the node of this number, in the order of ``ast.walk``, is another one."""

    path: str
    node: int
    line: int
    words: str

    @property
    def module(self) -> str:
        """Its dotted name."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def mutants(path: str, source: str) -> Iterator[Mutant]:
    """All faults that can be put into a module."""
    tree = ast.parse(source)
    spared = _in_decorators(tree)
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in spared:
            continue
        before = ast.unparse(node) if isinstance(node, ast.expr) else ""
        if changed := _changed(node):
            line = getattr(node, "lineno", 0)
            yield Mutant(path=path, node=number, line=line, words=f"{before} -> {ast.unparse(changed)}")


def _in_decorators(tree: ast.Module) -> set[int]:
    """Nodes of ``@dataclass(frozen=True, slots=True)`` and the like, which no answer depends on."""
    lists = [node.decorator_list for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {id(node) for decorators in lists for each in decorators for node in ast.walk(each)}


def mutated(source: str, number: int) -> ast.Module:
    """The module with one fault."""
    tree = ast.parse(source)
    for index, node in enumerate(ast.walk(tree)):
        if index == number:
            _changed(node)
    return ast.fix_missing_locations(tree)


def _changed(node: ast.AST) -> ast.expr | None:
    """The node, changed in place; None where there is nothing to change."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
        node.ops[0] = _SWAPS[type(node.ops[0])]()  # type: ignore[call-overload]
        return node
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _SWAPS and not _is_of_types(node):
        node.op = _SWAPS[type(node.op)]()  # type: ignore[assignment]
        return node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node.op = ast.UAdd()
        node.operand = ast.Call(func=ast.Name(id="bool", ctx=ast.Load()), args=[node.operand], keywords=[])
        return node
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
        return node
    return None


def _is_of_types(node: ast.BinOp | ast.BoolOp) -> bool:
    """Texts that are joined: there is no other operator for them."""
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    return any(isinstance(part, ast.JoinedStr | ast.Constant) and _is_text(part) for part in parts)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def drawn(number: int, seed: int, rooms: Sequence[str] = ROOMS) -> list[Mutant]:
    """A sample of all mutants of some rooms, by file and line."""
    paths = sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))
    names = [path.relative_to(ROOT).as_posix() for path in paths]
    everything = [each for name in names for each in mutants(name, (ROOT / name).read_text())]
    chosen = random.Random(seed).sample(everything, min(number, len(everything)))  # noqa: S311
    return sorted(chosen, key=lambda each: (each.path, each.line))


def files_for(mutant: Mutant, folder: Path) -> list[Path]:
    """The test files that mirror the module's place or import it; where there are none, those of its room."""
    parent, _, name = mutant.module.rpartition(".")
    imports = re.compile(
        rf"from {mutant.module} import|from {parent} import .*\b{name}\b|import {mutant.module}\b"
    )
    room = folder / "tests/unit" / parent.removeprefix("advisor.").replace(".", "/")
    files = sorted(path for tests in TESTS for path in (folder / tests).rglob("test_*.py"))
    own = [path for path in files if path == room / f"test_{name}.py" or imports.search(path.read_text())]
    # Its own tests first: they notice most, and soon.
    own.sort(key=lambda path: (path != room / f"test_{name}.py", not path.is_relative_to(room), path))
    return own or [path for path in files if path.is_relative_to(room)]


class _Loader(importlib.abc.InspectLoader):
    """Gives one module its faulty code, whoever would find it otherwise."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> object:  # noqa: ARG002
        if name != self._mutant.module:
            return None
        file = ROOT / self._mutant.path
        return importlib.util.spec_from_file_location(name, file, loader=self, submodule_search_locations=(
            [str(file.parent)] if file.name == "__init__.py" else None
        ))  # fmt: skip

    def get_source(self, fullname: str) -> str:  # noqa: ARG002
        return (ROOT / self._mutant.path).read_text()

    def get_code(self, fullname: str) -> CodeType:
        tree = mutated(self.get_source(fullname), self._mutant.node)
        return compile(tree, str(ROOT / self._mutant.path), "exec")


def _run_one(path: str, node: int, tests: Sequence[str]) -> int:
    import pytest

    sys.meta_path.insert(0, _Loader(Mutant(path=path, node=node, line=0, words="")))  # type: ignore[arg-type]
    return int(pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]))


def _ends(mutant: Mutant, tests: Sequence[Path], folder: Path) -> str:
    if not tests:
        return "no tests"
    command = [sys.executable, __file__, "--one", mutant.path, str(mutant.node), *map(str, tests)]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return "killed"
    return "survived" if done.returncode == 0 else "killed"


def _sound(files: set[Path], folder: Path) -> set[Path]:
    """Those that pass when nothing is wrong."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rfE",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        *map(str, sorted(files)),
    ]
    out = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout
    failed = set(re.findall(r"^(?:FAILED|ERROR) ([^:\s]+)", out, flags=re.MULTILINE))
    return {path for path in files if path.relative_to(folder).as_posix() not in failed}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--number", type=int, default=200, metavar="N", help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument(
        "--folder", type=Path, default=ROOT, metavar="DIR", help="checkout whose tests are judged"
    )
    options = parser.parse_args()
    folder = options.folder.resolve()
    chosen = [(each, files_for(each, folder)) for each in drawn(options.number, options.seed)]
    sound = _sound({path for _, tests in chosen for path in tests}, folder)
    ends = Counter[str]()
    for each, tests in chosen:
        end = _ends(each, [path for path in tests if path in sound], folder)
        ends[end] += 1
        print(f"{end}: {each.path}:{each.line}: {each.words}", flush=True)
    part = ends["killed"] / len(chosen)
    print(f"{ends['killed']} of {len(chosen)} killed ({part:.0%}), {ends['no tests']} without tests")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        sys.exit(_run_one(sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
    main()
