"""What starts a process: `advisor.core.processes`, and for a reason of its own each of a few others."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("advisor", "recommender")
ALLOWED = {
    "advisor/core/processes.py": {"subprocess.Popen", "subprocess.run"},
    # Waits beside the script and imports nothing of ours; the path of its program is found before it starts.
    "advisor/profile/launcher.py": {"os.posix_spawnp"},
    # A copy of this process, for a function that is profiled from Python; starts no program.
    "advisor/profile/profiling.py": {"os.fork"},
    # The user's own command, as it is: its program is found as a shell finds it.
    "advisor/receipt/command.py": {"subprocess.Popen"},
    # What the script's own calls are led around; starts nothing.
    "advisor/payload/fake/patches/distributed.py": {"multiprocessing.process.BaseProcess"},
}
_OF_OS = ("exec", "spawn", "posix_spawn", "fork", "system", "popen", "startfile")
_OF_SUBPROCESS = ("run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput")
_MODULES = ("multiprocessing", "pty", "concurrent.futures.process", "webbrowser", "asyncio.subprocess")
_NAMES = ("ProcessPoolExecutor", "create_subprocess_exec", "create_subprocess_shell", "subprocess_exec")


def starts(tree: ast.AST) -> Iterator[str]:
    """Dotted names in a module that start a process."""
    types = {node.value for node in ast.walk(tree) if isinstance(node, ast.Subscript)}  # Popen[bytes]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node not in types:
            names = [ast.unparse(node)]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{one.name}" for one in node.names]
        elif isinstance(node, ast.Import):
            names = [f"{one.name}.*" for one in node.names if one.asname or one.name in _MODULES]
        else:
            continue
        yield from filter(is_a_start, names)


def is_a_start(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    return (
        (owner in ("os", "posix") and last.startswith(_OF_OS))
        or (owner == "subprocess" and (last in _OF_SUBPROCESS or last == "*"))
        or (owner in _MODULES and last[:1] in "*ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        or owner.startswith("multiprocessing.")
        or last in _NAMES
    )


@cache
def found() -> dict[str, set[str]]:
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    by_file = {str(path.relative_to(ROOT)): set(starts(ast.parse(path.read_bytes()))) for path in files}
    return {name: calls for name, calls in by_file.items() if calls}


def test_processes_are_started_in_one_place():
    others = {name: calls - ALLOWED.get(name, set()) for name, calls in found().items()}
    new = {name: sorted(calls) for name, calls in others.items() if calls}
    assert not new, "start programs with advisor.core.processes, which takes none from the working folder"


def test_the_exceptions_are_still_needed():
    calls = found()
    assert {name: calls.get(name, set()) for name in ALLOWED} == ALLOWED


@pytest.mark.parametrize(
    "code",
    [
        "subprocess.run(['x'])", "subprocess.check_output('x')", "from subprocess import run",
        "import subprocess as s",
        "os.execv('x', [])", "os.spawnlp(0, 'x')", "os.system('x')", "os.popen('x')",
        "from os import fork", "os.posix_spawn('x', [], {})", "import multiprocessing", "import pty",
        "multiprocessing.Process(target=f)", "from multiprocessing import Pool", "import webbrowser",
        "from concurrent.futures import ProcessPoolExecutor", "concurrent.futures.ProcessPoolExecutor()",
        "asyncio.create_subprocess_exec('x')", "loop.subprocess_exec(f, 'x')",
    ],
)  # fmt: skip
def test_each_way_is_noticed(code):
    assert list(starts(ast.parse(code)))
