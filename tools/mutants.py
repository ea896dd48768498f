"""Show that the tests notice: small faults are put into modules, one at a time, and the tests of each run.

    python -m tools.mutants --number 200 --seed 0

A mutant is a module with one operator or constant changed. It lives in the memory of one process, which runs
the test files that mirror or import the module, and the others of its room, until a test fails; no file is
changed. Printed are how each ends, at which test, and the part that was killed. A test that fails without the
fault too counts for nothing.

Each process is a fork that has the large libraries already. An older commit is judged by the same rules, with
its own environment: `OLD/.venv/bin/python tools/mutants.py --folder OLD --rooms advisor/predict ...`.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import math
import multiprocessing
import os
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
# A test in another process judges kernels of advisor/operators: a fault in memory does not reach it.
ROOMS = ("advisor/predict", "advisor/pricing", "recommender")
# Not those of other rooms that merely need a prediction.
TESTS = tuple(
    f"tests/{room}"
    for room in (
        "property", "unit/native", "unit/operators", "unit/predict", "unit/pricing", "unit/recommender",
        "unit/training",
    )
)  # fmt: skip
# What most tests import, of others: it is imported once.
LIBRARIES = ("hypothesis", "numpy", "pydantic", "requests", "rich", "sqlalchemy", "typer", "yaml")
# A test takes less than a tenth of it: an endless loop ends here. Only what waits for ever needs the second.
CPU_LIMIT_S = 60.0
WALL_LIMIT_S = 600.0
COLLECTION = "collection"
_ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
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


def drawn(number: int, seed: int, rooms: Sequence[str] = ROOMS, root: Path = ROOT) -> list[Mutant]:
    """A sample of all mutants of some rooms; its first ones are a smaller sample."""
    paths = sorted(path for room in rooms for path in (root / room).rglob("*.py"))
    names = [path.relative_to(root).as_posix() for path in paths]
    everything = [each for name in names for each in mutants(name, (root / name).read_text())]
    return random.Random(seed).sample(everything, min(number, len(everything)))  # noqa: S311


def files_for(mutant: Mutant, root: Path) -> list[Path]:
    """The test files that mirror the module's place, the others of its room, and those that import it."""
    parent, _, name = mutant.module.rpartition(".")
    imports = re.compile(
        rf"from {mutant.module} import|from {parent} import .*\b{name}\b|import {mutant.module}\b"
    )
    room = root / "tests/unit" / parent.removeprefix("advisor.").replace(".", "/")
    mirror = room / f"test_{name}.py"

    def rank(path: Path) -> int:
        """Its own tests first: they notice most, and soon."""
        return 0 if path == mirror else 1 if path.parent == room else 2

    files = sorted({path for tests in TESTS for path in (root / tests).rglob("test_*.py")})
    judges = [path for path in files if path.parent == room or imports.search(path.read_text())]
    return sorted(judges, key=rank)


class _Loader(importlib.abc.InspectLoader):
    """Gives one module its faulty code, whoever would find it otherwise."""

    def __init__(self, mutant: Mutant, root: Path) -> None:
        self._mutant = mutant
        self._file = root / mutant.path

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> object:  # noqa: ARG002
        if name != self._mutant.module:
            return None
        inside = [str(self._file.parent)] if self._file.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            name, self._file, loader=self, submodule_search_locations=inside
        )

    def get_source(self, fullname: str) -> str:  # noqa: ARG002
        return self._file.read_text()

    def get_code(self, fullname: str) -> CodeType:
        return compile(mutated(self.get_source(fullname), self._mutant.node), str(self._file), "exec")


@dataclass(frozen=True, slots=True)
class _Reporter:
    """Tells the parent process which test begins; limits the time of each."""

    parent: Connection

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Laws have the same examples each time; of one that is broken no smaller example is sought."""
        from hypothesis import Phase, settings

        settings.register_profile("mutants", derandomize=True, phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutants")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Its name, and the time that it has."""
        self.parent.send((nodeid, False))
        signal.setitimer(signal.ITIMER_VIRTUAL, CPU_LIMIT_S)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """That it failed."""
        if report.failed:
            self.parent.send((report.nodeid, True))


def _tested(mutant: Mutant | None, root: Path, arguments: Sequence[str], parent: Connection) -> None:
    """What a fork does: the tests run, with nothing printed."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    if mutant:
        sys.meta_path.insert(0, _Loader(mutant, root))  # type: ignore[arg-type]
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_LIMIT_S)
    options = ["-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", f"--rootdir={root}"]
    os._exit(pytest.main([*options, *arguments], plugins=[_Reporter(parent)]))


def _failures(mutant: Mutant | None, root: Path, arguments: Sequence[str]) -> Generator[str, None, None]:
    """Names of tests as they fail, and of one that ends the process. Closed, it ends the process itself."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_tested, args=(mutant, root, arguments, theirs))
    process.start()
    theirs.close()
    test = COLLECTION
    try:
        while ours.poll(WALL_LIMIT_S):
            test, has_failed = ours.recv()
            if has_failed:
                yield test
        yield test
    except EOFError:
        process.join()
        if process.exitcode not in _ENDED:
            yield test
    finally:
        with suppress(ProcessLookupError):  # what it left running, too
            os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()


@cache
def _fails_anyway(root: Path, arguments: tuple[str, ...]) -> bool:
    with closing(_failures(None, root, arguments)) as failures:
        return any(failures)


def killer(mutant: Mutant, tests: Sequence[str], root: Path) -> str | None:
    """The first test that notices the fault; None where the mutant survives."""
    with closing(_failures(mutant, root, tests)) as failures:
        for test in failures:
            alone = ("--collect-only", *tests) if test == COLLECTION else (test,)
            if not _fails_anyway(root, alone):
                return test
    return None


def interval(killed: int, number: int) -> tuple[float, float]:
    """Wilson's interval of a rate, at 95 %."""
    square = 1.96**2 / number
    rate = killed / number
    middle = rate + square / 2
    half = math.sqrt(square * rate * (1 - rate) + square**2 / 4)
    return (middle - half) / (1 + square), (middle + half) / (1 + square)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--number", type=int, default=200, metavar="N", help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--folder", type=Path, default=ROOT, metavar="DIR", help="checkout that is judged")
    parser.add_argument("--rooms", nargs="+", default=ROOMS, metavar="ROOM", help="where faults are put")
    options = parser.parse_args()
    root = options.folder.resolve()
    os.chdir(root)
    os.environ["OMP_NUM_THREADS"] = "1"
    for library in LIBRARIES:
        importlib.import_module(library)
    ends = Counter[bool]()
    for mutant in drawn(options.number, options.seed, options.rooms, root):
        tests = [path.relative_to(root).as_posix() for path in files_for(mutant, root)]
        test = killer(mutant, tests, root) if tests else None
        ends[test is not None] += 1
        end = f"killed by {test}" if test else "survived"
        print(f"{mutant.path}:{mutant.line}: {mutant.words}: {end}", flush=True)
    low, high = interval(ends[True], ends.total())
    print(f"{ends[True]} of {ends.total()} killed (95 % interval {low:.0%} to {high:.0%})")


if __name__ == "__main__":
    main()
