"""How the process of a command begins and ends."""

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import advisor.__main__
from advisor.__main__ import NEW_OBJECTS_BEFORE_COLLECTION

# What is registered first runs last.
ENDS = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count() > 0, gc.get_threshold()[0]))
from advisor.__main__ import main
atexit.register(print, "still run")
sys.argv = ["advisor", "--version"]
main()
"""


def test_nothing_is_looked_through_for_garbage_at_exit():
    done = subprocess.run([sys.executable, "-c", ENDS], check=True, capture_output=True, text=True)
    _, still_run, ends = done.stdout.splitlines()
    assert (still_run, ends) == ("still run", f"True {NEW_OBJECTS_BEFORE_COLLECTION}")


# A signal that comes while a module is imported.
HIT = """
import os, sys
from advisor.__main__ import main
module, number = sys.argv[1:]
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), int(number))
sys.meta_path.insert(0, Finder())
sys.argv[:] = ["advisor", "gpus"]
main()
raise SystemExit(f"{module} was not imported")
"""


@pytest.mark.parametrize(
    ("module", "number", "words"),
    [
        ("typer", "SIGINT", "interrupted"),
        ("advisor.cli.commands", "SIGTERM", ""),
        ("advisor.core.gpus", "SIGHUP", ""),
        ("rich.console", "SIGINT", "interrupted"),
        ("rich.console", "SIGTERM", ""),
    ],
)
def test_a_signal_among_imports_is_no_traceback(module, number, words):
    """Ctrl-C in the first half second was one."""
    signalled = signal.Signals[number]
    command = [sys.executable, "-c", HIT, module, str(signalled.value)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert done.returncode == 128 + signalled
    assert done.stderr.strip() in (words, "interrupted")


def test_nothing_is_imported_before_signals_are_handled():
    tree = ast.parse(Path(advisor.__main__.__file__).read_text())
    imported = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert not {name for name in imported if name and name.startswith("advisor")}


@pytest.mark.parametrize(
    ("words", "code", "closed"),
    [
        ("gpus", 1, ">&-"), ("gpus", 0, "2>&-"), ("gpus", 0, "<&-"), ("gpus", 1, ">&- 2>&-"),
        ("gpus", 1, "<&- >&- 2>&-"), ("--help", 1, ">&-"), ("nope", 2, "2>&-"), ("nope", 2, "<&- >&- 2>&-"),
    ],
)  # fmt: skip
def test_a_closed_stream_is_no_traceback(words, code, closed, tmp_path):
    """Was one, and the next file that was opened had the number of stdout; then nothing was said."""
    said = tmp_path / "said"
    line = f'"{sys.executable}" -P -m advisor {words} {closed}; echo $? > {said}'
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
    assert said.read_text().strip() == str(code)
    assert "Traceback" not in done.stderr
    is_told = "cannot read or write: standard output is closed" in done.stderr
    assert is_told == (code == 1 and "2>" not in closed)


@pytest.mark.parametrize("words", ["gpus", "--help", "prices --json"])
def test_who_reads_no_further_gets_no_complaint(words):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as out:
        command = [sys.executable, "-P", "-m", "advisor", *words.split()]
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True)
    assert done.returncode in (0, 1)
    assert not [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
