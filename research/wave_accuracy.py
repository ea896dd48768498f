"""Wave scaling against the plain bandwidth ratio on measured streaming kernels, for all pairs of GPUs.

``python -m research.wave_accuracy --kernels DIR`` prints a Markdown table: mean absolute error in percent
per pair, wave scaling / bandwidth ratio. DIR holds NeuSight's published measurements (``add.csv.gz`` ...).
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np
import pandas as pd

from advisor.core.gpus import resolve_gpu
from advisor.native import scale_kernels
from advisor.native.arrays import GpuArrays, KernelArrays

FLOAT_BYTES = 4
# Tensors a call reads and writes per element, and floating-point operations per element.
OPERATORS = {
    "add": (3, 1), "mul": (3, 1), "div": (3, 1), "pow": (3, 10), "addu": (2, 1), "mulu": (2, 1),
    "divu": (2, 1), "powu": (2, 10), "relu": (2, 1), "gelu": (2, 10), "tanh": (2, 10),
    "softmax": (2, 5), "ln": (2, 8),
}  # fmt: skip
COLUMNS = ["gpu", "latency_ms", "B", "H", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"]


def read_operator(folder: Path, operator: str) -> pd.DataFrame:
    """Calls whose own time is at least the launch and event overhead that was measured with them."""
    frame = pd.read_csv(folder / f"{operator}.csv.gz", usecols=COLUMNS)
    overhead_ms = frame.groupby("gpu").latency_ms.transform("min")
    frame["time_s"] = (frame.latency_ms - overhead_ms) * 1e-3
    return frame[frame.time_s >= overhead_ms * 1e-3].drop_duplicates(["gpu", "B", "H"])


def pair_errors(rows: pd.DataFrame, origin: str, destination: str, flops_per_byte: float) -> np.ndarray:
    """Relative errors [2, n] of wave scaling and of the bandwidth ratio on calls measured on both GPUs."""
    both = rows[rows.gpu == origin].merge(rows[rows.gpu == destination], on=["B", "H"], suffixes=("", "_d"))
    if both.empty:
        return np.empty((2, 0))
    specs = resolve_gpu(origin), resolve_gpu(destination)
    int64 = np.int64
    kernels = KernelArrays(
        blocks_K=(both.grid_x * both.grid_y * both.grid_z).to_numpy(int64),
        threads_per_block_K=(both.block_x * both.block_y * both.block_z).to_numpy(int64),
        registers_per_thread_K=np.full(len(both), 32, int64),
        shared_bytes_K=np.zeros(len(both), int64),
        duration_s_K=both.time_s.to_numpy(float),
        intensity_flops_per_byte_K=np.full(len(both), flops_per_byte),
    )
    wave_s = scale_kernels(kernels, GpuArrays.from_specs(specs[:1]), GpuArrays.from_specs(specs[1:]))[:, 0]
    ratio_s = both.time_s.to_numpy() * specs[0].memory_bytes_per_s / specs[1].memory_bytes_per_s
    truth_s = both.time_s_d.to_numpy()
    errors: np.ndarray = np.abs(np.stack([wave_s, ratio_s]) / truth_s - 1)
    return errors


def table(folder: Path, names: list[str]) -> str:
    """One row an origin, one column a destination; means over all calls of the given operators."""
    frames = {name: read_operator(folder, name) for name in names}
    gpus = sorted({gpu for frame in frames.values() for gpu in frame.gpu})
    cells: dict[tuple[str, str], str] = {}
    pooled: list[np.ndarray] = []
    for origin, destination in itertools.permutations(gpus, 2):
        pairs = []
        for name, frame in frames.items():
            tensors, flops = OPERATORS[name]
            pairs.append(pair_errors(frame, origin, destination, flops / (tensors * FLOAT_BYTES)))
        errors = np.concatenate(pairs, axis=1)
        if errors.shape[1]:
            pooled.append(errors)
            cells[origin, destination] = "{:.0f} / {:.0f}".format(*errors.mean(axis=1) * 100)
    lines = [f"| from \\ to | {' | '.join(gpus)} |", "|---" * (len(gpus) + 1) + "|"]
    lines += [f"| {o} | {' | '.join(cells.get((o, d), '-') for d in gpus)} |" for o in gpus]
    mean = np.concatenate(pooled, axis=1).mean(axis=1) * 100
    count = sum(errors.shape[1] for errors in pooled)
    return "\n".join(lines) + "\n\nAll {:,} pairs of calls: {:.1f} / {:.1f} %.".format(count, *mean)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=Path, required=True)
    folder = parser.parse_args().kernels
    streaming = [name for name in OPERATORS if name not in ("softmax", "ln")]
    for title, names in (("Element-wise", streaming), ("Softmax", ["softmax"]), ("Layer norm", ["ln"])):
        print(f"### {title}\n\n{table(folder, names)}\n")


if __name__ == "__main__":
    main()
