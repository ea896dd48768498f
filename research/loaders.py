"""What tokens and plain numbers take of a CPU to load, for ``research/build_loaders.py``. Needs torch.

A sample is a slice of an array that is mapped from a file, made a tensor and collated with others: what is
left of an input pipeline where nothing is decoded or tokenised.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import quantiles

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

# Stored dtype, dtype of the sample, and sizes of samples that are common.
KINDS = {
    "tokens": (np.uint16, torch.int64, (128, 256, 512, 1024, 2048, 4096)),
    "array": (np.float32, torch.float32, (128, 512, 2048, 8192, 32768, 131072)),
}
NUM_SAMPLES, BATCH, NUM_BATCHES = 512, 32, 12


class Slices(Dataset[torch.Tensor]):
    """Samples of one size out of one file."""

    def __init__(self, path: Path, stored: type[np.generic], dtype: torch.dtype, size: int) -> None:
        self._numbers = np.memmap(path, dtype=stored, mode="w+", shape=(NUM_SAMPLES, size))
        self._dtype = dtype

    def __len__(self) -> int:
        return NUM_SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(np.array(self._numbers[index])).to(self._dtype)


def ns_per_element(stored: type[np.generic], dtype: torch.dtype, size: int) -> float:
    """Nanoseconds of the CPU for one element of a sample of ``size``, the median batch."""
    with tempfile.TemporaryDirectory() as folder:
        batches = iter(DataLoader(Slices(Path(folder) / "numbers", stored, dtype, size), batch_size=BATCH))
        seconds = []
        for _ in range(NUM_BATCHES):
            begin_s = time.process_time()
            next(batches)
            seconds.append(time.process_time() - begin_s)
    return sorted(seconds)[NUM_BATCHES // 2] / (BATCH * size) * 1e9


def main() -> None:
    """Print nanoseconds for one element by kind and size."""
    torch.set_num_threads(1)
    for kind, (stored, dtype, sizes) in KINDS.items():
        ns_by_size = {size: ns_per_element(stored, dtype, size) for size in sizes}
        print(kind, ", ".join(f"{size}: {ns:.3g} ns" for size, ns in ns_by_size.items()))
        deciles = quantiles(ns_by_size.values(), n=10, method="inclusive")
        print(f"  p10 {deciles[0]:.3g}, p50 {deciles[4]:.3g}, p90 {deciles[8]:.3g}")


if __name__ == "__main__":
    main()
