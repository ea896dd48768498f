"""Fits the roofline's constants for each measured GPU, and writes them with what is assumed for others."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from advisor.core.gpus import load_gpus
from advisor.core.values import GpuSpec
from advisor.predict.calibration.fitting import (
    MeasuredKernels,
    fit_bandwidth_fraction,
    fit_compute_fraction,
)
from training.samples import Samples

_ASSUMED = Path(__file__).with_name("assumed_constants.toml")
_KINDS = {
    "streaming_fraction": ("add", "mul", "div", "relu", "gelu", "tanh", "mulu"),
    "reduction_fraction": ("softmax", "ln"),
    "gemm_fraction.fp32": ("linear", "bmm"),
    "conv_fraction.fp32": ("conv",),
}
Constants = dict[str, dict[str, float]]


def fit_constants(samples: Samples) -> Constants:
    """GPU -> constant -> value: geometric mean over kinds and splits that have enough rows.

    The splits ran at different temperatures and are fitted apart.
    """
    found: Constants = {}
    for gpu in sorted(set(samples.gpus.tolist())):
        for constant, kinds in sorted(_KINDS.items()):
            parts = [(samples.gpus == gpu) & (samples.kinds == kind) for kind in kinds]
            values = [
                value
                for chosen in parts
                for split in np.unique(samples.splits[chosen])
                if (value := _fraction(samples.where(chosen & (samples.splits == split)), gpu, constant))
            ]
            if values:
                found.setdefault(gpu, {})[constant] = statistics.geometric_mean(values)
    return found


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
        return fit_compute_fraction(kernels, spec.vector_flops_per_s["fp32"], spec.memory_bytes_per_s)
    except ValueError:
        return None


def render(fitted: Constants, measured: Iterable[str] = ()) -> str:
    """The TOML text: fitted tables, then what is assumed until somebody measures it.

    Args:
        fitted: by GPU.
        measured: GPUs whose kernels were learned from, which get a table even where they tell no constant.
    """
    tables: Constants = {gpu: {} for gpu in measured} | fitted
    lines = [
        "# Written by python -m training: what GPUs reach of their data sheets. Do not edit.",
        "# Fitted to NeuSight's published kernel measurements (ASPLOS'25, MIT licence, commit 6945927;",
        "# PyTorch 2.1.0, cuDNN 8.9.2, CUDA 12.1, true FP32).",
    ]
    lines += [] if tables else ["", "[gpu]"]
    for gpu, constants in sorted(tables.items()):
        source = "fitted to NeuSight kernel measurements" if constants else "kernels measured, none fitted"
        lines += ["", f'[gpu."{gpu}"]', f'source = "{source}"']
        lines += [f"{name} = {value:.3f}" for name, value in constants.items()]
    return "\n".join([*lines, "", _ASSUMED.read_text(encoding="utf-8")])
