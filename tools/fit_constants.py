"""Fits catalogs/fitted.toml from measured kernels: ``python tools/fit_constants.py --kernels DIR``.

DIR holds one ``OP.csv.gz`` an operator with the columns of NeuSight's published measurements (PyTorch 2.1,
true FP32). What has not been measured (tensor cores) comes from ``tools/assumed_constants.toml``.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from advisor.gpus import resolve_gpu
from advisor.predict.calibrate import (
    MeasuredKernels,
    fit_bandwidth_fraction,
    fit_compute_fraction,
)

HERE = Path(__file__).resolve().parent
# Tensors of one float each that a call reads and writes per element.
STREAMING = {"add": 3, "mul": 3, "div": 3, "relu": 2, "gelu": 2, "tanh": 2, "mulu": 2}
REDUCTION = {"softmax": 2, "ln": 2}
FLOAT_BYTES = 4


def streaming_kernels(frame: pd.DataFrame, tensors: int) -> MeasuredKernels:
    """Element-wise, softmax and layer-norm rows: B rows of H columns."""
    num_bytes = (frame.B * frame.H * FLOAT_BYTES * tensors).to_numpy(float)
    return MeasuredKernels(time_s=_time_s(frame), flops=num_bytes * 0, num_bytes=num_bytes)


def gemm_kernels(frame: pd.DataFrame, *, shared_weight: bool) -> MeasuredKernels:
    """B products of [M, K] with [K, N]; a linear layer reads its weight once for all of them."""
    f = frame.astype(dict.fromkeys("BMNK", float))
    weights = f.N * f.K * (1 if shared_weight else f.B)
    return MeasuredKernels(
        time_s=_time_s(f),
        flops=(2 * f.B * f.M * f.N * f.K).to_numpy(),
        num_bytes=(FLOAT_BYTES * (f.B * f.M * (f.K + f.N) + weights)).to_numpy(),
    )


def conv_kernels(frame: pd.DataFrame) -> MeasuredKernels:
    """Square convolutions without groups, forward."""
    f = frame.astype(dict.fromkeys(("B", "in_channels", "out_channels"), float))
    out_size = (f.input_size + 2 * f.padding - f.kernel_size) // f.stride + 1
    weights = f.in_channels * f.out_channels * f.kernel_size**2
    elements = f.B * (f.in_channels * f.input_size**2 + f.out_channels * out_size**2) + weights
    return MeasuredKernels(
        time_s=_time_s(f),
        flops=(2 * f.B * weights * out_size**2).to_numpy(),
        num_bytes=(FLOAT_BYTES * elements).to_numpy(),
    )


def _time_s(frame: pd.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return frame.latency_ms.to_numpy(float) * 1e-3


def by_gpu(folder: Path, operator: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of one operator, one (GPU, split) at a time: the splits ran at different temperatures."""
    frame = pd.read_csv(folder / f"{operator}.csv.gz")
    for (gpu, _split), rows in frame.groupby(["gpu", "split"]):
        yield str(gpu), rows


def fit_all(folder: Path) -> dict[str, dict[str, float]]:
    """Constant -> value for each GPU: geometric mean over operators and splits that have enough rows."""
    samples: dict[str, dict[str, list[float]]] = {}

    def add(gpu: str, constant: str, kernels: MeasuredKernels, *, compute: bool) -> None:
        spec = resolve_gpu(gpu)
        try:
            if compute:
                value = fit_compute_fraction(
                    kernels, spec.vector_flops_per_s["fp32"], spec.memory_bytes_per_s
                )
            else:
                value = fit_bandwidth_fraction(kernels, spec.memory_bytes_per_s)
        except ValueError as too_few:
            print(f"{gpu:16} {constant:20} skipped: {too_few}", file=sys.stderr)
            return
        samples.setdefault(gpu, {}).setdefault(constant, []).append(value)

    for constant, operators in (
        ("streaming_fraction", STREAMING),
        ("reduction_fraction", REDUCTION),
    ):
        for operator, tensors in operators.items():
            for gpu, rows in by_gpu(folder, operator):
                add(gpu, constant, streaming_kernels(rows, tensors), compute=False)
    for operator in ("linear", "bmm"):
        for gpu, rows in by_gpu(folder, operator):
            kernels = gemm_kernels(rows, shared_weight=operator == "linear")
            add(gpu, "gemm_fraction.fp32", kernels, compute=True)
    for gpu, rows in by_gpu(folder, "conv"):
        add(gpu, "conv_fraction.fp32", conv_kernels(rows), compute=True)
    return {
        gpu: {constant: statistics.geometric_mean(v) for constant, v in sorted(fitted.items())}
        for gpu, fitted in sorted(samples.items())
    }


def render(fitted: dict[str, dict[str, float]], assumed: str) -> str:
    """The TOML text: fitted tables, then what is assumed until somebody measures it."""
    lines = [
        "# Written by tools/fit_constants.py: what GPUs reach of their data sheets. Do not edit.",
        "# Fitted to NeuSight's published kernel measurements (ASPLOS'25, MIT licence, commit 6945927;",
        "# PyTorch 2.1.0, cuDNN 8.9.2, CUDA 12.1, true FP32).",
    ]
    for gpu, constants in fitted.items():
        lines += ["", f'[gpu."{gpu}"]', 'source = "fitted to NeuSight kernel measurements"']
        lines += [f"{name} = {value:.3f}" for name, value in constants.items()]
    return "\n".join(lines) + "\n\n" + assumed


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=HERE.parent / "catalogs" / "fitted.toml")
    arguments = parser.parse_args()
    assumed = (HERE / "assumed_constants.toml").read_text()
    text = render(fit_all(arguments.kernels), assumed)
    tomllib.loads(text)
    arguments.out.write_text(text)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
