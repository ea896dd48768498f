"""The parts of a day, each in a process of its own with a share of the time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

from .lines import KERNELS, Lines

LOG = "log.txt"
_WATCH = "watch"
# What a part does, and its share of the time, in order of value.
PARTS: Mapping[str, tuple[str, float]] = {
    "environment": ("environment:describe", 10),
    "steps": ("timed_steps:time_steps", 190),
    "host": ("host:time_host", 20),
    "kernels": ("kernels:time_kernels", 95),
    "profiles": ("timed_steps:profile_steps", 65),
    "sustained": ("sustained:sustain", 95),
}
_ALL: Mapping[str, tuple[str, float]] = {_WATCH: ("watching:watch", 0), **PARTS}
# A case that is under way may end; a process that has not ended then is killed.
_GRACE_S = 4.0
# Importing torch for the first time.
_START_S = 7.0
_MOST_STARTS = 4
_CALM_S = 0.1
_DONE = "done"
# No fault: the case that was under way is the only one lost.
_TIME_OVER = "time over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """What to record, and where."""

    folder: Path
    backend: str
    tiny: bool
    recorded: tuple[Path, ...] = ()
    """Folders of earlier days, whose cases are left out."""
    stall_s: float = 60.0
    """A process that gets nothing done for so long is ended."""


def record(day: Day, seconds: float, chosen: Sequence[str], say: Callable[[str], None]) -> None:
    """Run the parts one after the other; together they take no longer than so many seconds."""
    end_s = time.time() + seconds
    day.folder.mkdir(parents=True, exist_ok=True)
    lines = Lines(day.folder, "day", end_s)
    lines.write(
        backend=day.backend, tiny=day.tiny, seconds=seconds, parts=list(chosen),
        recorded=[folder.name for folder in day.recorded],
    )  # fmt: skip
    watcher = _start(day, _WATCH, end_s)
    try:
        for number, name in enumerate(chosen):
            shares = [PARTS[each][1] for each in chosen[number:]]
            shared_s = max(0.0, end_s - time.time() - _GRACE_S - _START_S * len(shares))
            budget_s = _START_S + shared_s * shares[0] / sum(shares)
            say(f"{name}: {budget_s:.0f} s at most")
            begin_s = time.time()
            ends = _whole(day, name, begin_s + budget_s)
            lines.write(done=name, ended=ends, took_s=round(time.time() - begin_s, 1))
            say(f"{name}: took {time.time() - begin_s:.0f} s; {', then '.join(ends)}")
    finally:
        _end(watcher)


def _whole(day: Day, name: str, until_s: float) -> list[str]:
    """How its processes ended: one that died is followed by one that leaves its last case out."""
    ends: list[str] = []
    while len(ends) < _MOST_STARTS and time.time() < until_s - 1:
        process = _start(day, name, until_s)
        ends.append(_awaited(process, day, until_s + _GRACE_S))
        if ends[-1] in (_DONE, _TIME_OVER):
            break
    return ends


def _awaited(process: subprocess.Popen[bytes], day: Day, until_s: float) -> str:
    """How it ended; it is killed at its time, and when it got nothing done for long."""
    # Not the day's file: the watcher writes to it all the time.
    signs = [day.folder / LOG, day.folder / KERNELS]
    sizes, changed_s = [-1], time.time()
    while process.poll() is None:
        now = [_size(path) for path in signs]
        if now != sizes:
            sizes, changed_s = now, time.time()
        if time.time() > until_s:
            _end(process)
            return _TIME_OVER
        if time.time() - changed_s > day.stall_s:
            _end(process)
            return f"nothing done for {day.stall_s:g} s"
        time.sleep(_CALM_S)
    return _DONE if process.returncode == 0 else f"died with {process.returncode}"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _start(day: Day, name: str, until_s: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "research.gpu_day.parts", name, str(day.folder), day.backend,
               str(int(day.tiny)), repr(until_s), *map(str, day.recorded)]  # fmt: skip
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
    with (day.folder / LOG).open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it and what it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_part(lines: Lines, backend: str, tiny: bool, folder: Path) -> None:
    """One part, in this process."""
    module, _, function = _ALL[lines.part][0].partition(":")
    if backend == "cpu":
        import torch

        from advisor.payload.fake.patches import libraries

        # Where others compute as well, threads that wait for each other take as long as those others do.
        torch.set_num_threads(1)
        # Where a rehearsal's torchvision is built for another torch, its networks need its operators' names.
        libraries.install_torchvision_ops(SimpleNamespace())
    getattr(import_module(f"{__package__}.{module}"), function)(lines, backend, tiny, folder)


if __name__ == "__main__":
    _, part, where, device, small, until, *others = sys.argv
    # What ran is said by each day for itself.
    skipped = [] if part == "environment" else list(map(Path, others))
    run_part(Lines(Path(where), part, float(until), skipped), device, small == "1", Path(where))
