"""Rows of a file of measured iterations, all faults of the file named at once.

Columns: ``gpu, model, mode, seq_len, batch_size, measured_ms``; optional ``num_layers``, ``forward_ms``,
``backward_ms`` and any number of other predictors as ``NAME_ms``.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from advisor.core.errors import InputError, UnknownGpuError, did_you_mean
from advisor.core.gpus import resolve_gpu
from advisor.core.values import GpuSpec
from benchmarks.accuracy.models import Workload

REQUIRED = ("gpu", "model", "mode", "seq_len", "batch_size", "measured_ms")
MODES = ("train", "inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measured iteration."""

    columns: Mapping[str, str]
    """All columns as they are written in the file."""
    gpu: GpuSpec
    workload: Workload
    measured_s: float
    num_layers: int | None
    """Equal layers of the model, None where the file does not say."""
    forward_s: float | None
    """Seconds of the forward pass alone, None where the file does not say; so ``backward_s``."""
    backward_s: float | None


def read_rows(path: Path, configs: Path) -> tuple[Measured, ...]:
    """All rows of a file, in order.

    Args:
        path: CSV with a header.
        configs: the folder of the models' ``MODEL.json``.

    Raises:
        InputError: the file cannot be read, lacks a column or has no row; or rows are wrong: a GPU that is
            not in the catalog, a model without a configuration, a number that is none.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [name for name in REQUIRED if name not in (reader.fieldnames or ())]
            lines = [] if missing else [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}. Give a CSV file with a header.") from error
    if missing:
        raise InputError(f"{str(path)!r} lacks the columns {missing}: a row needs {', '.join(REQUIRED)}.")
    if not lines:
        raise InputError(f"{str(path)!r} has a header and no rows.")
    models = sorted(file.stem for file in configs.glob("*.json"))
    faults = [f"line {number}: {fault}" for number, row in lines for fault in _faults(row, models, configs)]
    if faults:
        raise InputError("\n  ".join([f"{str(path)!r} cannot be used:", *faults]))
    return tuple(_measured(row) for _, row in lines)


def _faults(row: Mapping[str, str | None], models: list[str], configs: Path) -> Iterator[str]:
    if None in row.values() or None in row:
        yield "its number of fields is not that of the header"
        return
    texts = {name: str(value) for name, value in row.items()}
    try:
        resolve_gpu(texts["gpu"])
    except UnknownGpuError as error:
        yield str(error)
    if texts["model"] not in models:
        yield (
            f"no configuration of the model {texts['model']!r}: write {texts['model']}.json into"
            f" {str(configs)!r}, or name its folder with --configs.{did_you_mean(texts['model'], models)}"
        )
    if texts["mode"] not in MODES:
        yield f"mode {texts['mode']!r} is none of {', '.join(MODES)}"
    for name in ("seq_len", "batch_size"):
        if not texts[name].isdecimal() or int(texts[name]) == 0:
            yield f"{name} {texts[name]!r} is not a whole number of 1 or more"
    for name, text in texts.items():
        if name.endswith("_ms") and not _is_time(text, required=name == "measured_ms"):
            yield f"{name} {text!r} is not a time in milliseconds"
    if not _is_time(texts.get("num_layers", ""), required=False):
        yield f"num_layers {texts['num_layers']!r} is not a number"


def _is_time(text: str, *, required: bool) -> bool:
    try:
        value = float(text or ("nan" if required else "0"))
    except ValueError:
        return False
    return math.isfinite(value) and (value > 0 if required else value >= 0)


def _measured(row: Mapping[str, str]) -> Measured:
    # 0 and nothing both stand for "not said".
    published = {
        name: float(row.get(name) or 0) or None for name in ("num_layers", "forward_ms", "backward_ms")
    }
    layers, forward_ms, backward_ms = published.values()
    return Measured(
        columns=row,
        gpu=resolve_gpu(row["gpu"]),
        workload=Workload(
            model=row["model"],
            mode=row["mode"],
            seq_len=int(row["seq_len"]),
            batch_size=int(row["batch_size"]),
        ),
        measured_s=float(row["measured_ms"]) * 1e-3,
        num_layers=None if layers is None else int(layers),
        forward_s=None if forward_ms is None else forward_ms * 1e-3,
        backward_s=None if backward_ms is None else backward_ms * 1e-3,
    )
