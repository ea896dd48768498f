"""Times two commands in turn and compares them pair by pair, so that a slow minute hits both."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

RUNS = 9


def wall_s(command: Sequence[str]) -> float:
    """Seconds from start to exit of a command that must succeed."""
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begin


def ratio(command: Sequence[str], baseline: Sequence[str], runs: int = RUNS) -> tuple[float, float]:
    """Median ratio of wall times, and the command's median seconds; one warm-up of each is not counted."""
    wall_s(command)
    wall_s(baseline)
    pairs = [(wall_s(command), wall_s(baseline)) for _ in range(runs)]
    return statistics.median(a / b for a, b in pairs), statistics.median(a for a, _ in pairs)


def processor_s(command: Sequence[str], runs: int) -> float:
    """The least of its user and system seconds, which other processes hardly change."""
    return min(_processor_s(command) for _ in range(runs))


def _processor_s(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall_s(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def report(name: str, command: Sequence[str], limit: float | None = None) -> None:
    """One line: the ratio to a bare interpreter, seconds, and what it is meant to stay under."""
    times, seconds = ratio(command, [sys.executable, "-c", "pass"])
    goal = "" if limit is None else f"  (aim: under {limit:g} s on an idle core)"
    print(f"{name:<34}{times:6.1f} x a bare interpreter  {seconds:6.3f} s{goal}")
