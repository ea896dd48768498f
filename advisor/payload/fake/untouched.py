"""Zeros in main memory that stand for values of the GPU and take room only where they are written."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence

import torch

# A private mapping is read without taking memory, and promises none that a machine may not have.
_FLAGS = ("MAP_PRIVATE", "MAP_ANONYMOUS", "MAP_NORESERVE")
# Below it, ordinary zeros are faster and can be resized.
_SMALL_BYTES = 2**20


def untouched_zeros(shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Zeros of this form: pages of a fresh mapping if they are many."""
    num_elements = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    if math.prod(shape) * dtype.itemsize <= _SMALL_BYTES:
        return torch.empty_strided(shape, stride, dtype=dtype).zero_()
    pages = _map(num_elements * dtype.itemsize)
    return torch.frombuffer(pages, dtype=torch.uint8).view(dtype).as_strided(shape, stride)


def _map(num_bytes: int) -> mmap.mmap:
    # Windows has no such flags, and others not all of them.
    flags = sum(getattr(mmap, name, 0) for name in _FLAGS)
    return mmap.mmap(-1, num_bytes, flags=flags) if flags else mmap.mmap(-1, num_bytes)
