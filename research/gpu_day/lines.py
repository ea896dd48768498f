"""The file of a day: JSON lines that several processes append to, and that counts as far as it got.

Every line has a ``part``. A line with ``begin`` says that a case was begun, so that a process that follows
one that died leaves that case out; any other line with a ``case`` is its outcome, with a ``reason`` if it
could not be measured.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

FILE = "gpu_day.jsonl"
# Beside it: a recording as ``advisor measure`` writes it.
KERNELS = "kernels.jsonl"
_LONGEST_REASON = 300
# Of everything but a lack of memory, which has an exception of its own.
_LOST = "CUDA error"


class Lines:
    """Appends lines, whole ones whoever else writes.

    Args:
        folder: where the file is.
        part: of each line.
        until_s: as ``time.time`` counts; no case is begun afterwards.
        recorded: folders of other days, whose cases are left out.
    """

    def __init__(self, folder: Path, part: str, until_s: float, recorded: Sequence[Path] = ()) -> None:
        self._path = folder / FILE
        self.part = part
        self.until_s = until_s
        self.recorded = recorded
        self._begun = {line["begin"] for line in read_lines(folder, part) if "begin" in line}
        for other in recorded:
            self._begun |= {line["case"] for line in read_lines(other, part) if "case" in line}

    def write(self, **facts: object) -> None:
        """One line."""
        line = json.dumps({"part": self.part, "at_s": round(time.time(), 3), **facts}) + "\n"
        out = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(out, line.encode())
        finally:
            os.close(out)

    def case(self, name: str, measure: Callable[[], Mapping[str, object]]) -> None:
        """Measure a case that no process began before, and write what came of it."""
        if name in self._begun or time.time() > self.until_s:
            return
        self.write(begin=name)
        # Whoever started this process sees by it that it gets on.
        print(self.part, name, flush=True)
        begin_s = time.time()
        try:
            facts = measure()
        except Exception as error:  # noqa: BLE001 - one case must not end the others
            text = str(error).strip().partition("\n")[0]
            facts = {"reason": f"{type(error).__name__}: {text}"[:_LONGEST_REASON]}
        self.write(case=name, took_s=round(time.time() - begin_s, 3), **facts)
        if _LOST in str(facts.get("reason")):
            # Nothing works any more in a process whose kernel failed: the next one goes on.
            sys.exit(_LOST)


def read_lines(folder: Path, part: str | None = None) -> list[dict[str, Any]]:
    """The whole lines of a day, of one part or of all; none where there is no file yet.

    The file may be compressed, as ``gpu_day.jsonl.gz``.

    Raises:
        ValueError: a line is damaged.
    """
    path = _packed_or_not(folder / FILE)
    if path is None:
        return []
    data = path.read_bytes()
    whole, _, _ = (gzip.decompress(data) if path.suffix == ".gz" else data).decode().rpartition("\n")
    lines = [json.loads(line) for line in whole.split("\n") if line]
    return [line for line in lines if part is None or line["part"] == part]


def recording_of(folder: Path) -> Path | None:
    """The day's kernels; None if it has none."""
    return _packed_or_not(folder / KERNELS)


def _packed_or_not(path: Path) -> Path | None:
    packed = path.with_name(path.name + ".gz")
    return next((each for each in (packed, path) if each.exists()), None)
