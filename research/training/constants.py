"""Fits the roofline's constants for each measured GPU, and writes them with what is assumed for others."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from advisor.core.gpus import load_gpus
from advisor.core.values import GpuSpec
from research.training import data_sets
from research.training.neusight import NEUSIGHT
from research.training.samples import DataSet, Samples
from research.training.slopes import MeasuredKernels, fit_bandwidth_fraction, fit_compute_fraction

_ASSUMED = Path(__file__).with_name("assumed_constants.toml")
Constants = dict[str, dict[str, float]]


def fit_constants(samples: Samples) -> Constants:
    """GPU -> constant -> value: geometric mean over kinds and splits that have enough rows.

    The splits ran at different temperatures and are fitted apart.
    """
    fitted: Constants = {}
    for gpu in sorted(set(samples.gpus.tolist())):
        values: dict[str, list[float]] = {}
        for constant, chosen in _tellers(samples):
            of_gpu = chosen & (samples.gpus == gpu)
            for split in np.unique(samples.splits[of_gpu]):
                value = _fraction(samples.where(of_gpu & (samples.splits == split)), gpu, constant)
                if value:
                    values.setdefault(constant, []).append(value)
        if values:
            means = {name: statistics.geometric_mean(values[name]) for name in sorted(values)}
            fitted[gpu] = _coupled(load_gpus()[gpu], means)
    return fitted


# What one unit runs at several rates: the part of each peak that it reaches is the same.
_COUPLED = {"gemm_fraction.fp16": ("gemm_fraction.bf16", "gemm_fraction.tf32")}


def _coupled(gpu: GpuSpec, constants: dict[str, float]) -> dict[str, float]:
    """The constants, and those of rates that nobody measured on the GPU but that run on the same units."""
    others = {
        other: constants[name]
        for name, alike in _COUPLED.items()
        if name in constants
        for other in alike
        if other.rpartition(".")[2] in gpu.tensor_flops_per_s
    }
    return dict(sorted((others | constants).items()))


def _tellers(samples: Samples) -> list[tuple[str, NDArray[np.bool_]]]:
    """Each constant with the samples of one kind that tells it, [N]."""
    return [
        (constant, (samples.sources == data_set.flag) & (samples.kinds == kind))
        for data_set in data_sets.DATA_SETS
        for kind, constant in data_set.fits.items()
    ]


def _fraction(samples: Samples, gpu: str, constant: str) -> float | None:
    """None where too few kernels are large enough to tell."""
    spec: GpuSpec = load_gpus()[gpu]
    is_bandwidth = "." not in constant
    kernels = MeasuredKernels(
        time_s=samples.time_s,
        flops=np.array([0.0 if is_bandwidth else op.flops for op in samples.ops]),
        num_bytes=np.array([float(op.bytes) for op in samples.ops]),
    )
    try:
        if is_bandwidth:
            return fit_bandwidth_fraction(kernels, spec.memory_bytes_per_s)
        return fit_compute_fraction(kernels, _peak(spec, constant), spec.memory_bytes_per_s)
    except ValueError:
        return None


def _peak(spec: GpuSpec, constant: str) -> float:
    """What the data sheet says of the rate that a constant is a fraction of."""
    rate = constant.rpartition(".")[2]
    return spec.tensor_flops_per_s.get(rate) or spec.vector_flops_per_s[rate]


def render(
    fitted: Constants,
    measured: Iterable[str] = (),
    data_sets: Sequence[DataSet] = (NEUSIGHT,),
    gpus: Mapping[str, Collection[str]] | None = None,
) -> str:
    """The TOML text: fitted tables, then what is assumed until somebody measures it.

    Args:
        fitted: by GPU.
        measured: GPUs whose kernels were learned from, which get a table even where they tell no constant.
        data_sets: those that constants were fitted to.
        gpus: that each data set measured, by its flag; by default all of them.
    """
    tables: Constants = {gpu: {} for gpu in measured} | fitted
    lines = ["# Written by python -m research.training: what GPUs reach of their data sheets. Do not edit."]
    lines += [f"# {line}" for data_set in data_sets for line in data_set.origin]
    lines += [] if tables else ["", "[gpu]"]
    fitting = [data_set for data_set in data_sets if data_set.fits]
    for gpu, constants in sorted(tables.items()):
        own = [each.name for each in fitting if gpus is None or gpu in gpus[each.flag]]
        names = " and ".join(own)
        source = f"fitted to {names} kernel measurements" if constants else "kernels measured, none fitted"
        lines += ["", f'[gpu."{gpu}"]', f'source = "{source}"']
        lines += [f"{name} = {value:.3f}" for name, value in constants.items()]
    return "\n".join([*lines, "", _ASSUMED.read_text(encoding="utf-8")])
