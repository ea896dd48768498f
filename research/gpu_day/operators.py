"""Profiles as sums by operator and shape: small enough to commit, and enough to fit kernels to."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

FILE = "operators.csv.gz"
COLUMNS = ("step", "operator", "dtype", "shapes", "calls", "kernels_us", "layout_us")
# What cuDNN runs to bring tensors from one layout to the other, inside a convolution.
_LAYOUTS = re.compile("nchwToNhwc|nhwcToNchw", re.IGNORECASE)
_KERNELS = ("kernel", "gpu_memset", "gpu_memcpy")
# Of an operator's inputs, the shapes that say what it did.
_NUM_SHAPES = 3


def write_operators(folders: Sequence[Path], out: Path) -> None:
    """Sum the kernels of the folders' profiles; nothing is written where there are none."""
    rows = [row for folder in folders for path in sorted(folder.glob("traces-*.zip")) for row in _rows(path)]
    if not rows:
        return
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([COLUMNS, *rows])
    (out / FILE).write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))


def read_operators(folder: Path) -> list[dict[str, str]]:
    """Rows of a folder's file.

    Raises:
        FileNotFoundError: there is none.
    """
    return list(csv.DictReader(io.StringIO(gzip.decompress((folder / FILE).read_bytes()).decode())))


def _rows(archive: Path) -> Iterator[tuple[object, ...]]:
    with zipfile.ZipFile(archive) as files:
        for name in files.namelist():
            step = name.removesuffix(".json").replace("-", "/")
            for key, times in _sums(json.loads(files.read(name))["traceEvents"]).items():
                kernels_us, layout_us = (round(sum(each), 3) for each in zip(*times.values(), strict=True))
                yield step, *key, len(times), kernels_us, layout_us


def _sums(events: Sequence[Mapping[str, Any]]) -> Mapping[tuple[str, ...], Mapping[int, tuple[float, float]]]:
    """Microseconds of each call's kernels, and of those that change a layout, by what was called."""
    calls = {event["args"]["External id"]: event for event in events if event.get("cat") == "cpu_op"}
    sums: dict[tuple[str, ...], dict[int, tuple[float, float]]] = defaultdict(dict)
    for event in events:
        call = calls.get(event.get("args", {}).get("External id"))
        if call is None or event.get("cat") not in _KERNELS:
            continue
        own = sums[_key(call)]
        number = call["args"]["External id"]
        kernels_us, layout_us = own.get(number, (0.0, 0.0))
        is_layout = bool(_LAYOUTS.search(event["name"]))
        own[number] = kernels_us + event["dur"], layout_us + is_layout * event["dur"]
    return sums


def _key(call: Mapping[str, Any]) -> tuple[str, ...]:
    shapes, types = (call["args"].get(name) or [] for name in ("Input Dims", "Input type"))
    known = [shape for shape in shapes if shape and not isinstance(shape[0], list)][:_NUM_SHAPES]
    return (
        call["name"].removeprefix("aten::"),
        next(iter(types), ""),
        " ".join("x".join(map(str, shape)) for shape in known),
    )
