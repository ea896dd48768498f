"""A day small enough to commit: clocks and watts as means, nothing that names the machine."""

from __future__ import annotations

import gzip
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .lines import FILE, KERNELS, read_lines, recording_of
from .operators import write_operators

# Of nvidia-smi's text, beside what the board says by the time.
_SAID = ("Driver Version", "CUDA Version", "Current Power Limit", "Default Power Limit", "Max Power Limit")
_EVERY_S = 1.0
_DIGITS = 4

Line = dict[str, Any]


def condense(folders: Sequence[Path], out: Path) -> None:
    """Write the folders' days as one, and their profiles as sums by operator.

    Of the samples of clock and watts remain one mean for each step, and one a second of sustained work.
    """
    out.mkdir(parents=True, exist_ok=True)
    lines = [line for folder in folders for line in read_lines(folder)]
    kept = [*_kept(lines), *_means(lines)]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in kept)
    _pack(out / f"{FILE}.gz", text.encode())
    write_operators(folders, out)
    for recording in filter(None, map(recording_of, folders)):
        data = recording.read_bytes()
        _pack(out / f"{KERNELS}.gz", gzip.decompress(data) if recording.suffix == ".gz" else data)


def _pack(path: Path, data: bytes) -> None:
    # Without the time, so that the same day gives the same file.
    path.write_bytes(gzip.compress(data, 9, mtime=0))


def _kept(lines: Sequence[Line]) -> Iterator[Line]:
    for line in lines:
        if line["part"] == "watch" or "begin" in line or line.get("case") == "topology":
            continue
        if line.get("case") == "nvidia_smi":
            said = [row.strip() for row in str(line["text"]).splitlines() if row.strip().startswith(_SAID)]
            yield {**line, "text": "\n".join(dict.fromkeys(said))}
        else:
            yield {key: value for key, value in line.items() if key not in ("system", "trace")}


def _means(lines: Sequence[Line]) -> Iterator[Line]:
    samples = [line for line in lines if line["part"] == "watch" and "sm_mhz" in line]
    for line in lines:
        if line["part"] == "steps" and "begun_s" in line:
            yield from _mean(samples, line["begun_s"], line["ended_s"])
        elif line["part"] == "sustained" and "chunks" in line:
            begin_s = line["chunks"][0][0]
            while begin_s < line["ended_s"]:
                end_s = min(begin_s + _EVERY_S, line["ended_s"])
                yield from _mean(samples, begin_s, end_s)
                begin_s = end_s


def _mean(samples: Sequence[Mapping[str, Any]], begin_s: float, end_s: float) -> Iterator[Line]:
    """One sample in the middle of a span, in place of all there were."""
    seen = [sample for sample in samples if begin_s <= sample["at_s"] < end_s]
    if not seen:
        return
    reasons = 0
    for sample in seen:
        reasons |= int(sample.get("reasons", 0))
    names = [name for name in seen[0] if name not in ("part", "at_s", "reasons", "energy_j")]
    means = {name: round(statistics.mean(each[name] for each in seen), _DIGITS) for name in names}
    yield {"part": "watch", "at_s": round((begin_s + end_s) / 2, 3), **means, "reasons": reasons}
