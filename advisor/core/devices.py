"""The GPUs of this machine, as nvidia-smi reports them; no CUDA context is made."""

import subprocess
from dataclasses import dataclass

from advisor.core import processes
from advisor.core.findings import Finding
from advisor.core.findings.about_options import GpuInUse

QUERY = "name,memory.total,memory.used,utilization.gpu,power.limit"
STATE_QUERY = "driver_version,clocks.sm,clocks.max.sm,power.limit"
TIMEOUT_S = 10.0
MIB = 2**20
# A desktop's own windows take a few per cent.
BUSY_UTILIZATION = 0.15
BUSY_MEMORY_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One card by its driver: its name, how busy it is, what it may draw; None where it is silent."""

    name: str
    memory_bytes: int | None
    used_bytes: int | None
    utilization: float | None
    power_limit_w: float | None = None

    @property
    def is_working(self) -> bool:
        """Whether its SMs are busy with what others run."""
        return self.utilization is not None and self.utilization > BUSY_UTILIZATION

    @property
    def is_occupied(self) -> bool:
        """Whether others hold much of its memory."""
        if self.used_bytes is None or not self.memory_bytes:
            return False
        return self.used_bytes > BUSY_MEMORY_SHARE * self.memory_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """What a card's times depend on besides its model; None where nvidia-smi does not say."""

    driver: str | None
    sm_clock_hz: float | None
    max_sm_clock_hz: float | None
    power_limit_w: float | None


def why_in_use(index: int, device: Device) -> Finding | None:
    """What others do on a card; None if it is free or unknown."""
    if device.is_working:
        return GpuInUse(gpu_index=index, busy_share=device.utilization)
    if device.is_occupied:
        return GpuInUse(gpu_index=index, used_bytes=device.used_bytes, memory_bytes=device.memory_bytes)
    return None


def detect_devices() -> tuple[Device, ...]:
    """All cards of this machine; empty without a driver or when it does not answer."""
    return parse_devices(_ask(QUERY))


def detect_device(which: str) -> Device | None:
    """One card of this machine, or a part of one; None where nvidia-smi knows none of that name.

    Args:
        which: its name (``GPU-8932f937-d72c-4106-c12f-20bd9faed9f6``, ``MIG-...``), or its index.
    """
    devices = parse_devices(_ask(QUERY, f"--id={which}"))
    return devices[0] if devices else None


def device_state(which: str) -> DeviceState:
    """Driver, clocks and power limit of one card; all None without a driver.

    Args:
        which: its index or its name (``GPU-8932f937``), as in ``CUDA_VISIBLE_DEVICES``.
    """
    fields = [field.strip() for field in _ask(STATE_QUERY, f"--id={which}").strip().split(",")]
    if len(fields) != len(STATE_QUERY.split(",")):
        return DeviceState(driver=None, sm_clock_hz=None, max_sm_clock_hz=None, power_limit_w=None)
    clock_mhz, max_clock_mhz, power_limit_w = map(number, fields[1:])
    return DeviceState(
        driver=fields[0],
        sm_clock_hz=None if clock_mhz is None else clock_mhz * 1e6,
        max_sm_clock_hz=None if max_clock_mhz is None else max_clock_mhz * 1e6,
        power_limit_w=power_limit_w,
    )


def _ask(query: str, *options: str) -> str:
    """What nvidia-smi answers; nothing where it is missing or fails."""
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits", *options]
    try:
        answer = processes.run(command, timeout_s=TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return ""
    return "" if answer.returncode else answer.stdout.decode(errors="replace")


def parse_devices(text: str) -> tuple[Device, ...]:
    """Devices of nvidia-smi's CSV; "[N/A]" and the like become None.

    >>> parse_devices("NVIDIA A10G, 23028, 0, [N/A], 300.00")[0].utilization is None
    True
    """
    devices = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(QUERY.split(",")):
            continue
        total, used, busy, power_limit_w = map(number, fields[1:])
        devices.append(
            Device(
                name=fields[0],
                memory_bytes=None if total is None else round(total * MIB),
                used_bytes=None if used is None else round(used * MIB),
                utilization=None if busy is None else busy / 100,
                power_limit_w=power_limit_w,
            )
        )
    return tuple(devices)


def number(field: str) -> float | None:
    """A field of nvidia-smi's CSV; "[N/A]" and the like become None."""
    try:
        return float(field)
    except ValueError:
        return None
