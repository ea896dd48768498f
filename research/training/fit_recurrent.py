"""Fit what the steps of recurrent layers cost to DeepBench's published times.

    python -m research.training.fit_recurrent --measurements DIR --out catalogs/recurrent.toml

DIR holds ``tensor_cores/deepbench_recurrent.csv.gz``: cuDNN's layers without the product of the inputs,
forward and backward by the data, FP32 and fp16. Fitted to the V100, whose libraries (cuDNN 7) are the newest;
the other boards only judge. One step alone is not timed there but its launch, so such rows are left out.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from advisor.core.files import write_atomically
from advisor.core.gpus import load_gpus
from advisor.core.values import Z90, GpuSpec
from advisor.operators.recurrent import StepConstants, Steps, steps_time_s
from research.training.least_squares import least_squares

ORIGIN = "DeepBench (Apache-2.0, commit da81ba782073, 2020-08-11), deepbench_recurrent.csv.gz"
FITTED = "Volta"
FOLDS = 5
_GATES = {"vanilla": 1, "lstm": 4, "gru": 3}
_CORES = {"fp32": "vector", "fp16_tensor_core_fp32_add": "tensor"}
_DIRECTIONS = {"forward": False, "backward_data": True}
# What a call of some hundred microseconds to seconds costs beside its steps; fitted ones are 18 to 50 us.
_CALL_S = 40e-6
_START = StepConstants(
    cell_s=dict.fromkeys(sorted(_GATES.values()), 2e-5),
    latency_s=25e-6,
    compute=0.7,
    memory=0.9,
    traffic=1.0,
    sigma=0.15,
    architectures=frozenset(),
)
_SHARES = ("latency_s", "compute", "memory", "traffic")
_HELD = 0.15
# No product is faster than its roofs.
_MOST = {"compute": 0.9, "memory": 1.0}

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLayer:
    """One layer of one board; ``cores`` are ``"vector"`` or ``"tensor"``."""

    steps: Steps
    cores: str
    gpu: GpuSpec
    time_s: float

    def predicted_s(self, constants: StepConstants) -> float:
        """What DeepBench should have timed."""
        gpu = self.gpu
        rate = gpu.tensor_flops_per_s["fp16"] if self.cores == "tensor" else gpu.vector_flops_per_s["fp32"]
        return _CALL_S + steps_time_s(self.steps, constants, gpu, rate)


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
    steps = Steps(
        num_by_rows={int(row["batch"]): num_steps},
        outputs=outputs,
        depth=depth,
        weight_bytes=outputs * depth * (2 if cores == "tensor" else 4),
        gates=gates,
        hidden=hidden,
        is_backward=is_backward,
    )
    return [MeasuredLayer(steps=steps, cores=cores, gpu=gpu, time_s=1e-6 * float(row["time_us"]))]


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


def fit_steps(layers: Iterable[MeasuredLayer]) -> dict[tuple[str, bool], StepConstants]:
    """Constants by rate and direction, with widths of shapes that were held out."""
    fitted = {}
    for key, own in sorted(by_rate(layer for layer in layers if layer.gpu.architecture == FITTED).items()):
        errors = np.log(unseen(own)) - np.log([layer.time_s for layer in own])
        sigma = float(np.quantile(np.abs(errors), 0.8)) / Z90
        fitted[key] = replace(fit(own), sigma=sigma, architectures=frozenset({FITTED}))
    return fitted


def render(fitted: Mapping[tuple[str, bool], StepConstants]) -> str:
    """The catalog's text."""
    lines = [
        "# Written by python -m research.training.fit_recurrent: steps of recurrent layers. Do not edit."
    ]
    lines += [f"# Fitted to {ORIGIN}."]
    for (cores, is_backward), constants in fitted.items():
        cells = ", ".join(f"{gates} = {seconds:.4g}" for gates, seconds in constants.cell_s.items())
        lines += ["", f"[steps.{cores}.{'backward' if is_backward else 'forward'}]"]
        lines += [f"cell_s = {{ {cells} }}"]
        lines += [f"{name} = {getattr(constants, name):.4g}" for name in (*_SHARES, "sigma")]
        lines += [f'architectures = ["{FITTED}"]']
    return "\n".join([*lines, ""])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--measurements", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.toml")
    options = parser.parse_args()
    try:
        layers = read_layers(options.measurements)
    except FileNotFoundError as error:
        parser.error(f"no {error.filename}: name the folder of measurements.")
    write_atomically(options.out, render(fit_steps(layers)).encode())


if __name__ == "__main__":
    main()
