"""Fit what the steps of recurrent layers cost to DeepBench's published times.

    python -m research.training.fit_recurrent --measurements DIR --kernels FILE --out catalogs/recurrent.toml

DIR holds ``tensor_cores/deepbench_recurrent.csv.gz``: cuDNN's layers without the product of the inputs,
forward and backward by the data, FP32 and fp16. Fitted to the V100; the other boards only judge. One step
alone is not timed there but its launch, so such rows are left out.

Those libraries are of 2018 (cuDNN 7). What a step costs beside its products is a quarter of that since: it is
told by the layers of FILE, which ``advisor measure`` recorded (cuDNN 9), whatever the cell.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import statistics
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from advisor.core.files import write_atomically
from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import Z90, GpuSpec, Precision
from advisor.formats.recording_files import read_recording
from advisor.operators.family import wanted_rate
from advisor.operators.recurrent import RECURRENT, RecurrentSteps, StepConstants, steps_of, steps_time_s
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import shipped
from advisor.predict.roofline import roofs_of
from research.training.least_squares import least_squares

ORIGIN = "DeepBench (Apache-2.0, commit da81ba782073, 2020-08-11), deepbench_recurrent.csv.gz"
NEWER = "cells to eight layers of an H100, cuDNN 9, 2026-11"
FITTED = "Volta"
FOLDS = 5
_GATES = {"vanilla": 1, "lstm": 4, "gru": 3}
_CORES = {"fp32": "vector", "fp16_tensor_core_fp32_add": "tensor"}
_DIRECTIONS = {"forward": False, "backward_data": True}
_EXACT = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=False)
# What a call of some hundred microseconds to seconds costs beside its steps; fitted ones are 18 to 50 us.
_CALL_S = 40e-6
_START = StepConstants(
    cell_s=dict.fromkeys(sorted(_GATES.values()), 2e-5), latency_s=25e-6, compute=0.7, memory=0.9, traffic=1.0
)
# No cell takes less than a launch.
_LEAST_CELL_S = 2e-6
_SHARES = ("latency_s", "compute", "memory", "traffic")
_HELD = 0.15
# No product is faster than its roofs.
_MOST = {"compute": 0.9, "memory": 1.0}

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLayer:
    """One layer of one board; ``cores`` are ``"vector"`` or ``"tensor"``, ``beside_s`` is what is no step."""

    steps: RecurrentSteps
    cores: str
    gpu: GpuSpec
    time_s: float
    beside_s: float = _CALL_S

    def predicted_s(self, constants: StepConstants) -> float:
        """What DeepBench should have timed."""
        gpu = self.gpu
        rate = gpu.tensor_flops_per_s["fp16"] if self.cores == "tensor" else gpu.vector_flops_per_s["fp32"]
        return self.beside_s + steps_time_s(self.steps, constants, gpu, rate)


def read_layers(folder: Path) -> tuple[MeasuredLayer, ...]:
    """All rows of boards that the catalog has.

    Raises:
        FileNotFoundError: the file is missing.
    """
    path = folder / "tensor_cores" / "deepbench_recurrent.csv.gz"
    with gzip.open(path, "rt", newline="") as file:
        return tuple(layer for row in csv.DictReader(file) for layer in _layers(row))


def _layers(row: Mapping[str, str]) -> list[MeasuredLayer]:
    cores, is_backward = _CORES.get(row["math"]), _DIRECTIONS.get(row["direction"])
    gpu, num_steps = load_gpus().get(row["gpu"]), int(row["time_steps"])
    if cores is None or is_backward is None or gpu is None or num_steps < 2:
        return []
    gates, hidden = _GATES[row["cell"]], int(row["hidden"])
    outputs, depth = gates * hidden, hidden
    if is_backward:
        outputs, depth = depth, outputs
    steps = RecurrentSteps(
        num_by_rows={int(row["batch"]): num_steps},
        outputs=outputs,
        depth=depth,
        weight_bytes=outputs * depth * (2 if cores == "tensor" else 4),
        gates=gates,
        hidden=hidden,
        is_backward=is_backward,
    )
    return [MeasuredLayer(steps=steps, cores=cores, gpu=gpu, time_s=1e-6 * float(row["time_us"]))]


def read_recorded(path: Path) -> Iterator[MeasuredLayer]:
    """The layers of a recording; the products of all their inputs at once are no steps.

    Raises:
        RecordingError: the file is missing, broken or not of a GPU of the catalog.
    """
    recording = read_recording(path)
    gpu = resolve_gpu(recording.header.gpu or "")
    for kernel in recording.measurements:
        steps = steps_of(kernel.op)
        if steps is None:
            continue
        rate = wanted_rate(kernel.op, RECURRENT, _EXACT)
        roofs = roofs_of(rate, RECURRENT, gpu, constants_for(gpu, shipped()))
        at_once_s = (kernel.op.flops - steps.flops) / roofs.rate.flops_per_s
        yield MeasuredLayer(
            steps=steps, cores="vector" if rate == "fp32" else "tensor", gpu=gpu, time_s=kernel.time_s,
            beside_s=roofs.launch_s + max(at_once_s, kernel.op.bytes / roofs.bytes_per_s),
        )  # fmt: skip


def by_rate(layers: Iterable[MeasuredLayer]) -> dict[tuple[str, bool], list[MeasuredLayer]]:
    """Layers by cores and direction."""
    groups: dict[tuple[str, bool], list[MeasuredLayer]] = {}
    for layer in layers:
        groups.setdefault((layer.cores, layer.steps.is_backward), []).append(layer)
    return groups


def fit(layers: Sequence[MeasuredLayer]) -> StepConstants:
    """Constants of layers of one rate and direction."""
    logs = np.log([layer.time_s for layer in layers])
    start = np.log([*_START.cell_s.values(), *(getattr(_START, name) for name in _SHARES)])

    def residuals(parameters: Floats) -> Floats:
        constants = _constants(np.exp(parameters))
        errors = np.log([layer.predicted_s(constants) for layer in layers]) - logs
        return np.concatenate([errors, _HELD * (parameters - start)])

    return _constants(np.exp(least_squares(residuals, start)))


def _constants(values: Floats) -> StepConstants:
    gates = list(_START.cell_s)
    shares = {
        name: min(value, _MOST.get(name, value))
        for name, value in zip(_SHARES, values[len(gates) :].tolist(), strict=True)
    }
    return replace(_START, cell_s=dict(zip(gates, values[: len(gates)].tolist(), strict=True)), **shares)


def shape_fold(layer: MeasuredLayer) -> int:
    """Which fifth of the shapes it is of, lengths of sequences aside."""
    steps = layer.steps
    shape = (steps.gates, steps.hidden, sorted(steps.num_by_rows))
    return zlib.crc32(repr(shape).encode()) % FOLDS


def unseen(
    layers: Sequence[MeasuredLayer], group_of: Callable[[MeasuredLayer], int] = shape_fold
) -> list[float]:
    """Seconds of each layer, by a fit to the other groups."""
    fits = {
        group: fit([layer for layer in layers if group_of(layer) != group])
        for group in set(map(group_of, layers))
    }
    return [layer.predicted_s(fits[group_of(layer)]) for layer in layers]


def width(layers: Sequence[MeasuredLayer]) -> float:
    """Log-normal sigma of shapes that were held out."""
    errors = np.log(unseen(layers)) - np.log([layer.time_s for layer in layers])
    return float(np.quantile(np.abs(errors), 0.8)) / Z90


def fit_steps(
    layers: Iterable[MeasuredLayer], newer: Iterable[MeasuredLayer]
) -> dict[tuple[str, bool], StepConstants]:
    """Constants by rate and direction.

    Args:
        layers: that tell all of them.
        newer: that tell what a cell takes with libraries of today.
    """
    of_today = by_rate(newer)
    fitted = {}
    for key, own in sorted(by_rate(layer for layer in layers if layer.gpu.architecture == FITTED).items()):
        constants = fit(own)
        cell_s = cell_of_today_s(of_today[key], constants) if key in of_today else None
        cells = constants.cell_s if cell_s is None else dict.fromkeys(constants.cell_s, cell_s)
        fitted[key] = replace(constants, cell_s=cells)
    return fitted


def cell_of_today_s(layers: Sequence[MeasuredLayer], constants: StepConstants) -> float:
    """The median over layers of what a step takes beside all else that is modelled."""
    plain = replace(constants, cell_s=dict.fromkeys(constants.cell_s, 0.0))
    lefts_s = [
        (layer.time_s - layer.predicted_s(plain)) / sum(layer.steps.num_by_rows.values()) for layer in layers
    ]
    return max(statistics.median(lefts_s), _LEAST_CELL_S)


def render(fitted: Mapping[tuple[str, bool], StepConstants]) -> str:
    """The catalog's text."""
    lines = [
        "# Written by python -m research.training.fit_recurrent: steps of recurrent layers. Do not edit."
    ]
    lines += [f"# Fitted to {ORIGIN};", f"# {NEWER}."]
    for (cores, is_backward), constants in fitted.items():
        cells = ", ".join(f"{gates} = {seconds:.4g}" for gates, seconds in constants.cell_s.items())
        lines += ["", f"[steps.{cores}.{'backward' if is_backward else 'forward'}]"]
        lines += [f"cell_s = {{ {cells} }}"]
        lines += [f"{name} = {getattr(constants, name):.4g}" for name in _SHARES]
    return "\n".join([*lines, ""])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--measurements", type=Path, required=True, metavar="DIR")
    parser.add_argument("--kernels", type=Path, required=True, metavar="FILE")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.toml")
    options = parser.parse_args()
    try:
        layers = read_layers(options.measurements)
    except FileNotFoundError as error:
        parser.error(f"no {error.filename}: name the folder of measurements.")
    fitted = fit_steps(layers, read_recorded(options.kernels))
    write_atomically(options.out, render(fitted).encode())


if __name__ == "__main__":
    main()
