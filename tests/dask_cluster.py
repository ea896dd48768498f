"""A real Dask cluster on loopback, which computes sweeps in a shell's folder."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.end_to_end.cli import Shell
from tests.waiting import WAIT_S, wait_for

Process = subprocess.Popen[bytes]


@contextmanager
def program(shell: Shell, module: str, *words: str, **environ: str) -> Iterator[Process]:
    """One of Dask's, while it lasts."""
    command = [sys.executable, "-m", f"distributed.cli.{module}", *words, "--no-dashboard"]
    null, env = subprocess.DEVNULL, shell.environ(**environ)
    with subprocess.Popen(command, cwd=shell.folder, env=env, stdout=null, stderr=null) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def worker(shell: Shell, address: str, *more: str, **environ: str) -> Iterator[Process]:
    """One that answers one request at a time."""
    options = ("--nthreads", "1", "--no-nanny", "--memory-limit", "0", "--local-directory", "workers")
    with program(shell, "dask_worker", f"tcp://{address}", *options, *more, **environ) as process:
        yield process


@contextmanager
def scheduler(shell: Shell, *more: str) -> Iterator[tuple[str, Process]]:
    """Its address and process."""
    num_before = len([*shell.folder.glob("scheduler*.json")])
    found = shell.folder / f"scheduler{num_before}.json"
    options = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(found), *more)
    with program(shell, "dask_scheduler", *options) as process:
        wait_for(lambda: found.exists() and found.read_text().endswith("}"))
        yield json.loads(found.read_text())["address"].removeprefix("tcp://"), process


def wait_for_workers(address: str, num: int) -> None:
    """Until as many are there."""
    from distributed import Client

    with Client(f"tcp://{address}", set_as_default=False) as client:
        client.wait_for_workers(num, timeout=WAIT_S)


def kept_in(folder: Path) -> dict[str, bytes]:
    """What a sweep kept, by file."""
    return {path.name: path.read_bytes() for path in folder.glob("*.json")}


def sweep_words(address: str, folder: str) -> tuple[str, ...]:
    """The command line of a sweep on the cluster."""
    return "sweep", "grid.yaml", "--offline", "--folder", folder, "--engine", f"dask://{address}", "--json"
