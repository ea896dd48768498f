"""How the process of a command begins and ends."""

from __future__ import annotations

import subprocess
import sys

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


def test_nothing_is_looked_through_for_garbage_at_exit() -> None:
    done = subprocess.run([sys.executable, "-c", ENDS], check=True, capture_output=True, text=True)
    _, still_run, ends = done.stdout.splitlines()
    assert (still_run, ends) == ("still run", f"True {NEW_OBJECTS_BEFORE_COLLECTION}")
