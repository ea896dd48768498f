"""The parts of an evaluation, in order; what is asked for is run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.core.errors import InputError
from advisor.core.gpus import catalog_path
from advisor.core.values import GpuSpec, Op, Trace
from advisor.predict.knowledge import CONSTANTS, Knowledge, read_knowledge, shipped
from benchmarks.accuracy.calibration import calibrated
from benchmarks.accuracy.end_to_end import evaluate
from benchmarks.accuracy.kernels import KernelErrors
from benchmarks.accuracy.knowledge_files import AS_SHIPPED, by_name, described, group, hashes, left_out_groups
from benchmarks.accuracy.label_noise import CLEAN, LabelNoise, noise_of
from benchmarks.accuracy.left_out import MeasuredKernels, leave_one_out
from benchmarks.accuracy.models import Workload, traces_of
from benchmarks.accuracy.op_predictions import errors_of_seeds, kernel_times
from benchmarks.accuracy.op_traces import OpTrace, read_op_traces
from benchmarks.accuracy.results import Results
from benchmarks.accuracy.rows import Measured, read_rows
from benchmarks.accuracy.scaling import Scaled, scaled_pairs
from research.published import CASES, Score, scores
from research.speedups import FILE, SpeedUp, speed_ups
from research.training.folds import UNSEEN_DIMS, held_out
from research.training.overhead import floors_of

SHIPPED = "shipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What to evaluate, and with what; None or empty where it is not asked for."""

    end_to_end: Path
    configs: Path
    kernels: Path | None
    op_traces: Path | None
    third_party: Path | None
    leave_one_out: Path | None
    unseen_dims: Path | None
    fitted: Path | None = None
    knowledge: tuple[Path, ...]


def run(inputs: Inputs, *, command: str, date: str, say: Callable[[str], None]) -> Results:
    """Evaluate; all files are read before anything is profiled.

    Args:
        inputs: files and folders.
        command: how it was called, for the report.
        date: of today, for the report.
        say: told what is being done.

    Raises:
        InputError: a file or folder is missing or broken.
        CatalogError: a folder holds no knowledge.
        ProfileError: a model cannot be built or run.
    """
    _check_tables(inputs.third_party)
    folders = _folders(inputs.knowledge)
    without = left_out_groups(inputs.leave_one_out) if inputs.leave_one_out else {}
    unseen_dims = _unseen_dims(inputs.unseen_dims)
    rows = read_rows(inputs.end_to_end, inputs.configs)
    layers = {row.workload.model: row.num_layers for row in rows if row.num_layers}
    op_traces = read_op_traces(inputs.op_traces, layers) if inputs.op_traces else ()
    members = _read(folders)
    left_out = {gpu: _read(seeds) for gpu, seeds in without.items()}
    fewer_dims = _read(unseen_dims)
    kernels = _kernels(inputs.kernels) if inputs.kernels else None
    noise = [noise_of(row, op_traces) for row in rows]
    traces = _traces(rows, inputs.configs, say)
    say("predicting")
    end_to_end = evaluate(rows, traces, members, noise)
    scaled = _scaled(op_traces, rows, members, end_to_end["rows"])
    throughput, pairs = _third_party(inputs.third_party, shipped(), say)
    return Results(
        command=command,
        date=date,
        hashes=_hashes({**folders, **unseen_dims}, without),
        evaluated=described(folders) if inputs.knowledge else AS_SHIPPED,
        end_to_end=end_to_end,
        shipped=evaluate(rows, traces, {SHIPPED: shipped()}, noise) if inputs.knowledge else {},
        kernels=errors_of_seeds(kernels.samples, members.values(), kernels.floors_s) if kernels else [],
        unseen_dims=_unseen_errors(kernels, fewer_dims),
        scaled=scaled,
        scaled_clean=_clean(scaled, rows, noise),
        left_out=leave_one_out(left_out, rows, traces, noise, kernels, calibrated),
        throughput=throughput,
        speed_ups=pairs,
        fitted=_fitted(inputs.fitted),
    )


def _fitted(measurements: Path | None) -> Sequence[KernelErrors]:
    if measurements is None:
        return ()
    from benchmarks.accuracy.fitted import evaluate as evaluate_fitted

    try:
        return evaluate_fitted(measurements)
    except FileNotFoundError as error:
        raise InputError(f"attention and recurrent layers: {error}") from error


def _check_tables(folder: Path | None) -> None:
    names = sorted({FILE, *(case.file for case in CASES)})
    missing = [name for name in names if folder is not None and not (folder / name).is_file()]
    if missing:
        raise InputError(f"published throughput: no {' and no '.join(missing)} in {str(folder)!r}.")


def _third_party(
    folder: Path | None, knowledge: Knowledge, say: Callable[[str], None]
) -> tuple[list[Score], list[SpeedUp]]:
    if folder is None:
        return [], []
    say("profiling models of published tables")
    try:
        return list(scores(folder, knowledge)), list(speed_ups(folder, knowledge))
    except (OSError, LookupError, ValueError) as error:
        raise InputError(f"cannot read published throughput in {str(folder)!r}: {error}") from error


def _folders(given: Sequence[Path]) -> dict[str, Path]:
    if not given:
        return {SHIPPED: catalog_path(CONSTANTS).parent}
    return by_name([member for folder in given for member in group(folder)])


def _unseen_dims(folder: Path | None) -> dict[str, Path]:
    if folder is None:
        return {}
    return {f"{UNSEEN_DIMS}, {name}": path for name, path in by_name(group(folder)).items()}


def _unseen_errors(
    kernels: MeasuredKernels | None, members: Mapping[str, Knowledge]
) -> Sequence[KernelErrors]:
    if kernels is None or not members:
        return []
    return errors_of_seeds(held_out(kernels.samples), members.values(), kernels.floors_s)


def _read(folders: Mapping[str, Path]) -> dict[str, Knowledge]:
    return {name: shipped() if name == SHIPPED else read_knowledge(path) for name, path in folders.items()}


def _hashes(
    folders: Mapping[str, Path], without: Mapping[str, Mapping[str, Path]]
) -> dict[str, dict[str, str]]:
    left_out = {
        f"without {gpu}, {name}": path for gpu, seeds in without.items() for name, path in seeds.items()
    }
    return {name: hashes(path) for name, path in {**folders, **left_out}.items()}


def _kernels(folder: Path) -> MeasuredKernels:
    from research.training.neusight import read_kernels

    try:
        samples = read_kernels(folder)
    except FileNotFoundError as error:
        raise InputError(str(error)) from error
    return MeasuredKernels(samples=samples, floors_s=floors_of(samples))


def _traces(rows: Sequence[Measured], configs: Path, say: Callable[[str], None]) -> dict[Workload, Trace]:
    distinct = {row.workload for row in rows}
    traces: dict[Workload, Trace] = {}
    say(f"profiling {len(distinct)} workloads")
    for workload, trace in traces_of((row.workload for row in rows), configs):
        traces[workload] = trace
        say(f"profiled {workload}: {len(traces)} of {len(distinct)}")
    return traces


def _scaled(
    op_traces: Sequence[OpTrace],
    rows: Sequence[Measured],
    members: Mapping[str, Knowledge],
    predicted: Sequence[Mapping[str, Any]],
) -> list[Scaled]:
    pairs: list[Scaled] = []
    for name, member in members.items():
        own = [1e-3 * row["predicted_ms"] for row in predicted if row["knowledge"] == name]
        time_s = partial(_median_s, knowledge=member)
        pairs += scaled_pairs(op_traces, list(zip(rows, own, strict=True)), time_s)
    return pairs


def _median_s(ops: Sequence[Op], gpu: GpuSpec, *, knowledge: Knowledge) -> NDArray[np.float64]:
    return kernel_times(ops, gpu, knowledge)[0]


def _clean(
    scaled: Sequence[Scaled], rows: Sequence[Measured], noise: Sequence[LabelNoise | None]
) -> list[Scaled]:
    """Pairs whose origin and destination both have clean labels."""
    clean = {
        (row.gpu.name, row.workload)
        for row, label in zip(rows, noise, strict=True)
        if label is not None and label.label == CLEAN
    }
    return [
        pair
        for pair in scaled
        if {(pair.origin, pair.row.workload), (pair.row.gpu.name, pair.row.workload)} <= clean
    ]


def tell(message: str) -> None:
    """Progress: a line on standard error, overwritten on a terminal."""
    start, end = ("\r\033[K", "") if sys.stderr.isatty() else ("", "\n")
    print(f"{start}{message}", end=end, file=sys.stderr, flush=True)
