"""Loader seconds of scripts on a quiet machine and beside eight busy processes. Needs torch.

``python -m research.busy_loading [SCRIPT ...]`` profiles each by turns, quiet and busy, and sets the CPU
seconds of a sample and what is recommended side by side. Its wall clock shows how busy the machine was. By
default one script has workers, and the other loads in its main process.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import advisor
from advisor.core.values import Trace

SCRIPTS = Path(__file__).parents[1] / "tests/compatibility/scripts"
DEFAULT = [SCRIPTS / "input_bound.py", SCRIPTS / "simclr.py"]
NUM_BUSY, ROUNDS = 8, 5
BUSY = "while True: sum(range(10_000))"


@contextlib.contextmanager
def others(count: int) -> Iterator[None]:
    """So many processes that never wait."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def profiled(script: Path, count: int) -> tuple[Trace, float]:
    """Its trace beside so many busy processes, and the seconds of its making."""
    with others(count):
        begin_s = time.perf_counter()
        trace = advisor.profile(script)
        return trace, time.perf_counter() - begin_s


def recommended(trace: Trace) -> str | None:
    """The id of what is recommended for an epoch."""
    return advisor.recommend(trace, epochs=10, offline=True).recommended


def compare(script: Path) -> None:
    """Print both, and how far apart they are."""
    seconds: dict[int, list[float]] = {0: [], NUM_BUSY: []}
    for _ in range(ROUNDS):
        for count, rounds in seconds.items():
            trace, wall_s = profiled(script, count)
            assert trace.loader_cpu_s_per_sample is not None, "the script has a DataLoader"
            rounds.append(trace.loader_cpu_s_per_sample)
            each_ms = rounds[-1] * 1e3
            print(f"beside {count}: {each_ms:.4g} ms a sample, in {wall_s:.0f} s: {recommended(trace)}")
    quiet_s, busy_s = (median(rounds) for rounds in seconds.values())
    print(f"{script.name}: busy over quiet {busy_s / quiet_s:.3f} (median of {ROUNDS})")


def main() -> None:
    """Compare the scripts that are named, or two of ours."""
    for script in [Path(name) for name in sys.argv[1:]] or DEFAULT:
        compare(script)


if __name__ == "__main__":
    main()
