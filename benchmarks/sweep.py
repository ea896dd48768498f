"""``advisor sweep`` on a Dask cluster of this machine.

    python -m benchmarks.sweep --kill 10             # worker, scheduler and client, 10 times each
    python -m benchmarks.sweep --combinations 2000   # from 40 traces, with one and with two workers

A kill is passed if the sweep, repeated where it ended, keeps the files of one on this machine byte for byte,
and computes nothing again that was kept.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from advisor.formats.trace_files import write_trace
from tests.builders import make_trace
from tests.dask_cluster import Process, kept_in, scheduler, sweep_words, wait_for_workers, worker
from tests.end_to_end.cli import Shell

NUM_TRACES = 40
KINDS = ("worker", "scheduler", "client")
_KILL_TRACES, _KILL_EPOCHS = 4, 2


@dataclass(slots=True)
class Cluster:
    """A scheduler and two workers; those that were killed are started anew."""

    shell: Shell
    num_workers: int = 2
    address: str = ""
    scheduler: Process | None = None
    workers: list[Process] = field(default_factory=list)
    _all: ExitStack = field(default_factory=ExitStack)

    def mend(self) -> None:
        """All of it runs when this returns."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.close()
            self.address, self.scheduler = self._all.enter_context(scheduler(self.shell))
        self.workers = [one for one in self.workers if one.poll() is None]
        while len(self.workers) < self.num_workers:
            self.workers.append(self._all.enter_context(worker(self.shell, self.address)))
        wait_for_workers(self.address, self.num_workers)

    def close(self) -> None:
        """End all of it."""
        self._all.close()
        self.workers.clear()


@contextmanager
def grid_of(num_traces: int, num_epochs: int) -> Iterator[Shell]:
    """A folder with a grid of so many traces, each with so many lengths and two machines."""
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(folder=Path(folder))
        for i in range(num_traces):
            write_trace(make_trace(script=f"t{i}"), shell.folder / f"t{i}.json.gz")
        epochs = [*range(1, num_epochs + 1)]
        shell.write(
            "grid.yaml", f"subjects: [t*.json.gz]\noptions: {{epochs: {epochs}, gpu: [L4:1, A100:8]}}\n"
        )
        yield shell


def _run(shell: Shell, *words: str) -> tuple[int, str, str]:
    with shell.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        out, err = process.communicate()
    return process.returncode, out, err


def kill_each(times: int, seed: int) -> bool:
    """Whether all kills are passed; a line for each."""
    rng = random.Random(seed)  # noqa: S311
    with grid_of(_KILL_TRACES, _KILL_EPOCHS) as shell:
        _run(shell, "sweep", "grid.yaml", "--offline", "--folder", "local")
        local = kept_in(shell.folder / "local")
        cluster = Cluster(shell)
        try:
            cluster.mend()
            passed = [
                _killed(cluster, kind, f"{kind}{i}", local, rng) for i in range(times) for kind in KINDS
            ]
        finally:
            cluster.close()
    print(f"seed {seed}: {sum(passed)} of {len(passed)} kills passed")
    return all(passed)


def _killed(cluster: Cluster, kind: str, name: str, local: dict[str, bytes], rng: random.Random) -> bool:
    shell, folder = cluster.shell, cluster.shell.folder / name
    words = sweep_words(cluster.address, name)
    num_jobs = len(local) - 1
    after, more_s = rng.randrange(num_jobs), rng.uniform(0.0, 0.5)
    with (shell.folder / "out").open("w") as out, (shell.folder / "err").open("w") as err:
        client = shell.start(*words, stdout=out, stderr=err)
        while len(kept_in(folder)) < after and client.poll() is None:
            time.sleep(0.01)
        time.sleep(more_s if after else rng.uniform(0.0, 5.0))
        was_running = client.poll() is None
        victim = {"worker": cluster.workers[0], "scheduler": cluster.scheduler}.get(kind) or client
        victim.kill()
        victim.wait()
        code = client.wait()
    said = [(shell.folder / "err").read_text()]
    num_kept = len(kept_in(folder).keys() - {"last.json"})
    document = (shell.folder / "out").read_text()
    cluster.mend()
    expected = 0
    if code != 0:
        expected = num_kept
        code, document, error = _run(shell, *sweep_words(cluster.address, name))
        said.append(error)
    jobs = json.loads(document)["jobs"] if code == 0 else []
    num_old = sum(not one["is_new"] for one in jobs)
    faults = {
        f"exit code {code}": code != 0,
        f"{len(jobs)} of {num_jobs} jobs answered": len({one["job"] for one in jobs}) != num_jobs,
        f"{num_old} of {expected} kept answers used": num_old != expected,
        "other files than of this machine": kept_in(folder) != local,
        "a traceback": "Traceback" in "".join(said),
    }
    found = [fault for fault, is_so in faults.items() if is_so]
    when = f"after {num_kept if expected else after} of {num_jobs} answers" if was_running else "at the end"
    print(f"{name} killed {when}: {'; '.join(found) or 'passed'}", flush=True)
    if found:
        print("".join(said))
    return not found


def measure(combinations: int, workers: int) -> dict[str, bytes]:
    """What is kept; a line with the seconds of a first and of a second sweep."""
    with grid_of(NUM_TRACES, max(combinations // (2 * NUM_TRACES), 1)) as shell:
        cluster = Cluster(shell, num_workers=workers)
        try:
            cluster.mend()
            took_s = []
            for _ in range(2):
                begin = time.perf_counter()
                code, _, err = _run(shell, *sweep_words(cluster.address, "kept"))
                took_s.append(time.perf_counter() - begin)
                assert code == 0, err
        finally:
            cluster.close()
        kept = kept_in(shell.folder / "kept")
        num_bytes = sum(map(len, kept.values()))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{len(kept) - 1:,} answers with {workers} worker(s): {took_s[0]:.1f} s, again {took_s[1]:.1f} s,"
        f" {num_bytes / (len(kept) - 1) / 1e3:.1f} kB each;"
        f" {used.ru_utime + used.ru_stime:.0f} s of CPU in all",
        flush=True,
    )
    return kept


def main() -> None:
    """Kills, or figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kill", type=int, help="how often each is killed")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))  # noqa: S311
    parser.add_argument("--combinations", type=int, default=2000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    if options.kill:
        sys.exit(not kill_each(options.kill, options.seed))
    kept = [measure(options.combinations, workers) for workers in options.workers]
    print("the same bytes" if all(one == kept[0] for one in kept) else "THE ANSWERS DIFFER")


if __name__ == "__main__":
    main()
