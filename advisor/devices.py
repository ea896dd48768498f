"""The GPUs of this machine, as nvidia-smi tells; no CUDA context is made."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

QUERY = "name,memory.total,memory.used,utilization.gpu"
TIMEOUT_S = 10.0
MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One card: its name as the driver says it, and how busy it is (None where it does not say)."""

    name: str
    memory_bytes: int | None
    used_bytes: int | None
    utilization: float | None


def detect_devices() -> tuple[Device, ...]:
    """All cards of this machine; empty without a driver or when it does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    command = [program, f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return parse_devices(answer.stdout)


def parse_devices(text: str) -> tuple[Device, ...]:
    """Devices of nvidia-smi's CSV; "[N/A]" and the like become None.

    >>> parse_devices("NVIDIA A10G, 23028, 0, [N/A]")[0].utilization is None
    True
    """
    devices = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(QUERY.split(",")):
            continue
        total, used, busy = (_number(field) for field in fields[1:])
        devices.append(
            Device(
                name=fields[0],
                memory_bytes=None if total is None else round(total * MIB),
                used_bytes=None if used is None else round(used * MIB),
                utilization=None if busy is None else busy / 100,
            )
        )
    return tuple(devices)


def _number(field: str) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None
