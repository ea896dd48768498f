"""What a command did with its GPUs, sampled once a second while it ran: busy, memory, watts.

One nvidia-smi runs beside the command and tells each second; nothing is added to the command itself.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread

from advisor.core import processes
from advisor.core.devices import parse_devices
from advisor.receipt.command import VARIABLE

_QUERY = "name,memory.total,memory.used,utilization.gpu,power.draw"
_EVERY_S = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """Of all GPUs that the command had, from its start to its end.

    Attributes:
        busy_share: of the time in which some kernel ran.
        peak_bytes: of memory, on the fullest GPU.
        mean_w: that one GPU drew; None where the driver does not tell.
    """

    busy_share: float
    peak_bytes: int
    mean_w: float | None


@dataclass(slots=True)
class GpuSampler:
    """Sums over samples: a month of eight GPUs is as small as a second of one."""

    _num: int = 0
    _busy: float = 0.0
    _peak_bytes: int = 0
    _num_w: int = 0
    _watts: float = 0.0

    def add(self, lines: Iterable[bytes]) -> None:
        """Count what nvidia-smi tells, until it ends."""
        for line in lines:
            # The last field is a limit in the parser's words, and the present draw here.
            for device in parse_devices(line.decode(errors="replace")):
                if device.utilization is None or device.used_bytes is None:
                    continue
                self._num += 1
                self._busy += device.utilization
                self._peak_bytes = max(self._peak_bytes, device.used_bytes)
                if device.power_limit_w is not None:
                    self._num_w += 1
                    self._watts += device.power_limit_w

    @property
    def use(self) -> GpuUse | None:
        """What was seen so far; None where nothing was."""
        if not self._num:
            return None
        return GpuUse(
            busy_share=self._busy / self._num,
            peak_bytes=self._peak_bytes,
            mean_w=self._watts / self._num_w if self._num_w else None,
        )


@contextmanager
def sampling(environment: Mapping[str, str]) -> Iterator[GpuSampler]:
    """Sample the GPUs that a command with this environment gets; without a driver nothing is seen."""
    sampler = GpuSampler()
    visible = environment.get(VARIABLE)
    process = None if visible == "" else _started(visible)
    if process is None:
        yield sampler
        return
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    reader = Thread(target=sampler.add, args=(process.stdout,), daemon=True)
    reader.start()
    try:
        yield sampler
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()


def _started(visible: str | None) -> subprocess.Popen[bytes] | None:
    """In a session of its own: what is typed at the terminal is for the command."""
    command = ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits", f"--loop={_EVERY_S}"]
    if visible is not None:
        command.append(f"--id={visible}")
    with suppress(OSError):
        return processes.start(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return None
