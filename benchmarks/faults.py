"""``python -m benchmarks.faults``: what becomes of guarded runs whose guard, job, clock or network fails.

Each kind of fault comes at another moment of each run. A job is to outlive its guard, to end at its limit,
and to be counted once with the cost of the time that it took.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

RUNS_OF_A_KIND = 17
USD_PER_H, LIMIT_S = 36.0, 2.0
LONGEST_S = 1.5
"""Of the moments at which faults come, after the start."""
LATE_S = 3.0
"""Between a limit and the death of what ignores all signals: a loaded machine looks some times a second."""
RUN = (sys.executable, "-m", "advisor", "run", "--usd-per-hour", str(USD_PER_H))
WAITS = ("sh", "-c", "echo $$; read line && echo alive")
DEAF = ("sh", "-c", "trap '' USR1 TERM; echo $$; sleep 1000; sleep 1000")
# A day later or earlier at each reading; what measures time is not touched.
JUMPS = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
  static int times;
  int failed = syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec -= ++times % 2 * 86400;
  return failed;
}
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of a run."""

    as_meant: bool
    """The job lived on, or ended, as it should; at its limit it ends in time."""
    entries: int
    """In the ledger, read twice: 1, or 0 of a guard that died before it had a file."""
    cost_is_true: bool
    late_s: float = 0.0


def main() -> None:
    """A row for each kind; ends with 1 where a run was counted twice or a job did not do as meant."""
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        jumps = compiled(Path(folder))
        for name, run in kinds(jumps).items():
            seen = []
            for number in range(RUNS_OF_A_KIND):
                home = Path(folder) / f"{name.split()[0]}-{number}"
                home.mkdir()
                seen.append(run(home, LONGEST_S * number / RUNS_OF_A_KIND))
            rows[name] = seen
            print(row_of(name, seen), flush=True)
    everything = [one for seen in rows.values() for one in seen]
    print(row_of("all", everything))
    if any(not one.as_meant or one.entries > 1 or not one.cost_is_true for one in everything):
        raise SystemExit(1)


def kinds(jumps: Path | None) -> Mapping[str, Callable[[Path, float], Seen]]:
    """How to make a run of each kind, in a home of its own."""
    found: dict[str, Callable[[Path, float], Seen]] = {
        "guard killed": partial(killed, guard=True, job=False),
        "job killed": partial(killed, guard=False, job=True),
        "both killed": partial(killed, guard=True, job=True),
        "signals ignored": partial(limited, before=(), option="--max-time"),
    }
    if shutil.which("unshare"):
        alone = ("unshare", "--map-root-user", "--net")
        found["network gone"] = partial(limited, before=alone, option="--max-cost")
    else:
        print("no unshare: the network stays")
    if jumps is not None:
        found["clock jumps"] = partial(limited, before=("env", f"LD_PRELOAD={jumps}"), option="--max-cost")
    return found


def row_of(name: str, seen: list[Seen]) -> str:
    """Counts of one kind."""
    counted = [sum(one.entries == number for one in seen) for number in (0, 1)]
    more = len(seen) - sum(counted)
    return (
        f"{name:16} {len(seen):4} runs, {sum(one.as_meant for one in seen):4} as meant, counted once"
        f" {counted[1]:4}, twice {more:2}, never {counted[0]:2}, costs true"
        f" {sum(one.cost_is_true for one in seen):4}, latest end {max(one.late_s for one in seen):.2f} s"
    )


def compiled(folder: Path) -> Path | None:
    """The clock that jumps; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler: the clock does not jump")
        return None
    (folder / "jumps.c").write_text(JUMPS)
    made = folder / "jumps.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, folder / "jumps.c"], check=True)
    return made


def started(home: Path, *command: str) -> subprocess.Popen[str]:
    """With nothing of this user's own settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ADVISOR_")}
    own = {"HOME": str(home), "XDG_CONFIG_HOME": f"{home}/config", "XDG_DATA_HOME": f"{home}/data"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, env=kept | own, text=True, cwd=home, **pipes)


def killed(home: Path, after_s: float, *, guard: bool, job: bool) -> Seen:
    """A command that waits for a line, and SIGKILL some time after its start."""
    limits = ("--no-metadata", "--max-time", "1h", "--max-cost", "9")
    with started(home, *RUN, *limits, "--", *WAITS) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        time.sleep(after_s)
        had_file = any((home / "data").rglob("receipts/*.json"))
        if guard:
            process.kill()
            process.wait()
        if job:
            os.kill(pid, signal.SIGKILL)
        else:
            process.stdin.write("on\n")
            process.stdin.flush()
        lives = process.stdout.readline() == "alive\n"
    runs = ledger(home)
    is_lost = [run["status"] == "lost" and run["cost_usd"] is None for run in runs]
    is_true = all(is_lost) if guard else all(map(is_priced, runs))
    return Seen(lives != job and len(runs) >= had_file, len(runs), is_true)


def limited(home: Path, after_s: float, *, before: tuple[str, ...], option: str) -> Seen:
    """A command that ends by SIGKILL alone, at a limit of some seconds."""
    limit_s = LIMIT_S + after_s
    limit = f"{limit_s}s" if option == "--max-time" else f"{limit_s * USD_PER_H / 3600}"
    receipt = home / "receipt.json"
    command = (*before, *RUN, option, limit, "--receipt", str(receipt), "--", *DEAF)
    with started(home, *command) as process:
        assert process.stdout is not None
        process.stdout.readline()
        begun = time.monotonic()
        code = process.wait()
        late_s = time.monotonic() - begun - limit_s
    enter = [sys.executable, "-m", "advisor", "run", "record", "--receipt", str(receipt)]
    with started(home, *enter) as again:
        again.communicate()
    runs = ledger(home)
    ended = code == 128 + signal.SIGKILL and late_s <= LATE_S
    return Seen(ended and len(runs) == 1, len(runs), all(map(is_priced, runs)), max(0.0, late_s))


def is_priced(run: Mapping[str, Any]) -> bool:
    """Whether it costs its time, once."""
    return abs(float(run["cost_usd"]) - run["duration_s"] * USD_PER_H / 3600) < 1e-9


def ledger(home: Path) -> list[dict[str, Any]]:
    """What the second of two readings shows."""
    for _ in range(2):
        with started(home, sys.executable, "-m", "advisor", "run", "list", "--json") as process:
            told = process.communicate()[0]
    return list(json.loads(told)["runs"])


if __name__ == "__main__":
    main()
