"""Clock, watts and temperature of the GPU by time, in a process of its own; it changes no setting."""

from __future__ import annotations

import ctypes
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from .lines import Lines

_EVERY_S = 0.05
# Of NVML's fields: watts of this moment, not the mean of the last second.
_POWER_INSTANT = 186
_QUERY = "clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_throttle_reasons.active,utilization.gpu"
_NAMES = ("sm_mhz", "memory_mhz", "power_w", "temperature_c", "reasons", "busy")


def watch(lines: Lines, backend: str, tiny: bool, folder: Path) -> None:
    """Write what the GPU says of itself until the time is over, or this process is ended."""
    if backend != "cuda":
        lines.write(reason="a CPU has no clock to watch here")
        return
    try:
        look = _by_nvml()
    except Exception as error:  # noqa: BLE001 - no nvidia-ml-py, or a driver that it does not know
        lines.write(reason=f"nvidia-smi instead of NVML: {type(error).__name__}: {error}")
        look = _by_nvidia_smi
    while time.time() < lines.until_s:
        begin_s = time.time()
        lines.write(**look())
        time.sleep(max(0.0, _EVERY_S - (time.time() - begin_s)))


def _by_nvml() -> Callable[[], Mapping[str, object]]:
    import pynvml  # type: ignore[import-not-found]

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    def reasons() -> int:
        name = "nvmlDeviceGetCurrentClocksEventReasons"
        ask = getattr(pynvml, name, None) or pynvml.nvmlDeviceGetCurrentClocksThrottleReasons
        return int(ask(handle))

    def instant_w() -> float:
        (value,) = pynvml.nvmlDeviceGetFieldValues(handle, [_POWER_INSTANT])
        if value.nvmlReturn != 0:
            raise RuntimeError(f"NVML has no instant power ({value.nvmlReturn})")
        return 1e-3 * float(value.value.uiVal)

    asks: dict[str, Callable[[], float]] = {
        "sm_mhz": lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
        "memory_mhz": lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
        "power_w": lambda: 1e-3 * pynvml.nvmlDeviceGetPowerUsage(handle),
        "instant_w": instant_w,
        "energy_j": lambda: 1e-3 * pynvml.nvmlDeviceGetTotalEnergyConsumption(handle),
        "temperature_c": lambda: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
        "reasons": reasons,
        "busy": lambda: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu,
    }
    known = {name: ask for name, ask in asks.items() if _answers(ask)}
    if "sm_mhz" not in known:
        raise RuntimeError("NVML does not tell the clock")
    return lambda: {name: ask() for name, ask in known.items()}


def _answers(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except Exception:  # noqa: BLE001 - boards lack sensors, in all ways
        return False
    return True


def _by_nvidia_smi() -> Mapping[str, object]:
    asked = ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits", "--id=0"]
    told = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True).stdout
    return parsed(told)


def parsed(told: str) -> Mapping[str, object]:
    """What nvidia-smi's line says; what it does not support is left out.

    >>> parsed("1980, 2619, 512.3, 45, 0x0000000000000004, 99")["reasons"]
    4
    """
    values: dict[str, object] = {}
    for name, text in zip(_NAMES, told.strip().split(","), strict=False):
        text = text.strip()
        try:
            values[name] = int(text, 16) if text.startswith("0x") else float(text)
        except ValueError:
            continue
    return values


def end_with_parent() -> None:
    """Ask Linux to end this process with the one that started it."""
    ctypes.CDLL(None).prctl(1, 15)
