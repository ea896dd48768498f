"""Small files that become large, and children that are not allowed to."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

_BLOCK = 2**20
# Address space is more than memory: numpy reserves some for each thread.
_MOST_ADDRESSES = 2**31
_MOST_CPU_S = 20


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


# Between us and the command: a child's peak counts from the size of the process that it was forked from.
_LAUNCHER = f"""
import json, os, resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({_MOST_ADDRESSES}, {_MOST_ADDRESSES}))
resource.setrlimit(resource.RLIMIT_CPU, ({_MOST_CPU_S}, {_MOST_CPU_S}))
child = os.fork()
if child == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execv(sys.executable, [sys.executable, "-m", "advisor", *sys.argv[1:]])
_, status, usage = os.wait4(child, 0)
seconds = usage.ru_utime + usage.ru_stime
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss * 1024]))
"""


def run(folder: Path, *arguments: str | Path) -> Ending:
    """``advisor ARGUMENTS`` in a child that is killed where it takes 2 GiB of addresses or 20 s of CPU."""
    home = {
        name: str(folder / "home") for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ADVISOR_")}
    done = subprocess.run(
        [sys.executable, "-c", _LAUNCHER, *map(str, arguments)],
        cwd=folder,
        # One thread, so that the addresses of the others do not count.
        env=kept | home | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    code, cpu_s, peak_bytes = json.loads(done.stdout)
    return Ending(code=code, err=done.stderr, cpu_s=cpu_s, peak_bytes=peak_bytes)
