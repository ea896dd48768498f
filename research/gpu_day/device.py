"""What differs between a GPU and the CPU that rehearses: marks in time, waiting, memory."""

from __future__ import annotations

import time
from typing import Protocol

import torch


class Mark(Protocol):
    """A moment on the device."""

    def seconds_to(self, later: Mark) -> float:
        """From here to a later mark, once the device has come to it."""


class _CpuMark:
    def __init__(self) -> None:
        self.at_s = time.perf_counter()

    def seconds_to(self, later: Mark) -> float:
        assert isinstance(later, _CpuMark)
        return later.at_s - self.at_s


class _CudaMark:
    def __init__(self) -> None:
        self.event = torch.cuda.Event(enable_timing=True)
        self.event.record()

    def seconds_to(self, later: Mark) -> float:
        assert isinstance(later, _CudaMark)
        return 1e-3 * float(self.event.elapsed_time(later.event))


class Device:
    """A backend, ``cuda`` or ``cpu``."""

    def __init__(self, backend: str) -> None:
        self.name = backend
        self._is_cuda = backend == "cuda"

    def mark(self) -> Mark:
        """Now, in the order of the device's work."""
        return _CudaMark() if self._is_cuda else _CpuMark()

    def wait(self) -> None:
        """Until all work is done."""
        if self._is_cuda:
            torch.cuda.synchronize()

    def forget(self) -> None:
        """Give memory back, and start counting its peak anew."""
        if self._is_cuda:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        self.reset_peak()

    def reset_peak(self) -> None:
        """Start counting the peak anew."""
        if self._is_cuda:
            torch.cuda.reset_peak_memory_stats()

    def memory(self) -> dict[str, int]:
        """Bytes that are allocated now, at the peak, and reserved at the peak; nothing on a CPU."""
        if not self._is_cuda:
            return {}
        return {
            "allocated_bytes": torch.cuda.memory_allocated(),
            "peak_bytes": torch.cuda.max_memory_allocated(),
            "reserved_bytes": torch.cuda.max_memory_reserved(),
        }
