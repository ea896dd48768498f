"""Small files that become large, and children that are not allowed to."""

import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_BLOCK = 2**20
# Address space is more than memory: numpy reserves some for each thread.
_MOST_ADDRESSES = 2**31
_MOST_CPU_S = 20
_MOST_WAITED_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a child ended.

    Attributes:
        cpu_s: of all its threads.
        peak_bytes: of memory that it really held.
    """

    code: int
    err: str
    cpu_s: float
    peak_bytes: int


def write_gzip(path: Path, head: bytes, unit: bytes, number: int, tail: bytes = b"") -> Path:
    """A gzip of one member that holds the head, so many units and the tail; made without making all of it.

    A block that ends with a full flush refers to nothing before it, so its bytes may be repeated.
    """
    units = unit * (_BLOCK // len(unit))
    count = -(-number * len(unit) // len(units))
    checksum = zlib.crc32(head)
    for _ in range(count):
        checksum = zlib.crc32(units, checksum)
    checksum = zlib.crc32(tail, checksum)
    size = len(head) + count * len(units) + len(tail)
    body = _deflated(head) + _deflated(units) * count + _deflated(tail, zlib.Z_FINISH)
    start = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    path.write_bytes(start + body + struct.pack("<II", checksum, size % 2**32))
    return path


def _deflated(content: bytes, end: int = zlib.Z_FULL_FLUSH) -> bytes:
    engine = zlib.compressobj(9, wbits=-15)
    return engine.compress(content) + engine.flush(end)


# Forks commands of itself, as they are once they know what they are to do: each start would take longer than
# what is judged. A child's peak counts from the size of the process that it was forked from, which is small.
_LAUNCHER = f"""
import json, os, resource, runpy, signal, sys
resource.setrlimit(resource.RLIMIT_AS, ({_MOST_ADDRESSES}, {_MOST_ADDRESSES}))
import advisor.cli, numpy, recommender.policy.model, rich.console, sqlalchemy
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, ({_MOST_CPU_S}, {_MOST_CPU_S}))
        signal.alarm({_MOST_WAITED_S})
        null, err = os.open(os.devnull, os.O_RDWR), os.open(job["err"], os.O_WRONLY | os.O_CREAT)
        for number, source in enumerate((null, null, err)):
            os.dup2(source, number)
        os.chdir(job["folder"])
        os.environ.update(job["environment"])
        sys.argv[1:] = job["arguments"]
        runpy.run_module("advisor", run_name="__main__", alter_sys=True)
        sys.exit()
    _, status, usage = os.wait4(child, 0)
    seconds = usage.ru_utime + usage.ru_stime
    print(json.dumps([os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss * 1024]), flush=True)
"""


class Run(Protocol):
    """``advisor ARGUMENTS`` in a child that is killed where it takes 2 GiB of addresses or 20 s of CPU.

    It is killed too where it waits for two minutes: that takes no CPU.
    """

    def __call__(self, folder: Path, *arguments: str | Path) -> Ending: ...


@contextmanager
def launcher() -> Iterator[Run]:
    """What runs commands, one after the other."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ADVISOR_")}
    # One thread, so that the addresses of the others do not count.
    kept |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", _LAUNCHER]
    with subprocess.Popen(
        command, env=kept, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def run(folder: Path, *arguments: str | Path) -> Ending:
            homes = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
            job = {
                "arguments": [*map(str, arguments)],
                "folder": str(folder),
                "environment": dict.fromkeys(homes, str(folder / "home")),
                "err": str(folder / "err.txt"),
            }
            stdin.write(json.dumps(job) + "\n")
            stdin.flush()
            code, cpu_s, peak_bytes = json.loads(stdout.readline())
            return Ending(code=code, err=(folder / "err.txt").read_text(), cpu_s=cpu_s, peak_bytes=peak_bytes)

        try:
            yield run
        finally:
            # Whoever gave up on a command must not wait here until it ends.
            process.kill()
