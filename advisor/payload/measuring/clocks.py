"""How long a device takes for a number of equal calls: by CUDA's events, or by the CPU's clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import torch

Launch = Callable[[int], object]
# Of GPUs that do not tell the size of their L2.
_L2_BYTES = 64 * 2**20
_CLOCK_HZ = 2e9
_SHORTEST_HEAD_START_S = 1e-3
_LONGEST_HEAD_START_S = 0.2
_ATTEMPTS = 6


class HostTooSlowError(Exception):
    """The host launches the kernels of a call more slowly than the device runs them."""


class Clock(Protocol):
    """Times calls on one device.

    Attributes:
        device: as torch names it.
        cache_bytes: what the device's last cache holds.
        most_calls: how many calls are worth putting behind each other.
    """

    device: str
    cache_bytes: int
    most_calls: int

    def time_s(self, launch: Launch, num_calls: int) -> float:
        """Device seconds of one call, the mean over ``num_calls`` in a row; ``launch`` gets their numbers."""


class CpuClock:
    """The CPU's own clock, and one of its cores: for trying things out."""

    device = "cpu"
    cache_bytes = 0
    most_calls = 10_000

    def __init__(self) -> None:
        # Where others compute as well, threads that wait for each other take as long as those others do.
        torch.set_num_threads(1)

    def time_s(self, launch: Launch, num_calls: int) -> float:
        """Seconds of one call."""
        begin_s = time.perf_counter()
        for number in range(num_calls):
            launch(number)
        return (time.perf_counter() - begin_s) / num_calls


class CudaClock:
    """CUDA's events around calls that wait in the stream behind a kernel that idles.

    Python launches a call every few microseconds, small kernels take less: without the head start one
    would time the host. Whether it was long enough shows in the first event, which must still be pending
    when the last call was launched.
    """

    device = "cuda"
    # A stream holds about a thousand launches before the host has to wait.
    most_calls = 200

    def __init__(self) -> None:
        facts = torch.cuda.get_device_properties(0)
        self.cache_bytes = int(getattr(facts, "L2_cache_size", 0)) or _L2_BYTES
        # In kHz; newer versions of torch tell it.
        self._clock_hz = 1e3 * getattr(facts, "clock_rate", 0) or _CLOCK_HZ
        self._head_start_s = _SHORTEST_HEAD_START_S

    def time_s(self, launch: Launch, num_calls: int) -> float:
        """Device seconds of one call.

        Raises:
            HostTooSlowError: no head start is long enough.
        """
        for attempt in range(_ATTEMPTS):
            device_s, host_s, is_covered = self._attempt(launch, num_calls)
            self._head_start_s = min(max(_SHORTEST_HEAD_START_S, 2 * host_s), _LONGEST_HEAD_START_S)
            # A device with more work than the host has never waits for it.
            if is_covered or host_s < device_s / 2:
                return device_s / num_calls
            if attempt > 0:
                # Kernels of many calls fill the stream, and the host waits with the device.
                num_calls = max(1, num_calls // 4)
        raise HostTooSlowError("the host launches its kernels too slowly to time them")

    def _attempt(self, launch: Launch, num_calls: int) -> tuple[float, float, bool]:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        torch.cuda._sleep(int(self._head_start_s * self._clock_hz))
        begin.record()
        host_begin_s = time.perf_counter()
        for number in range(num_calls):
            launch(number)
        host_s = time.perf_counter() - host_begin_s
        end.record()
        is_covered = not begin.query()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3, host_s, is_covered


def clock_of(backend: str) -> Clock:
    """The clock of a backend, ``cuda`` or ``cpu``."""
    return CudaClock() if backend == "cuda" else CpuClock()
