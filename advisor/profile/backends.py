"""Which backend can be used here: a GPU that others work on gives wrong times."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.core.devices import Device, detect_device, detect_devices
from advisor.core.errors import GpuUnusableError, InputError
from advisor.core.units import format_bytes

BACKENDS = ("auto", "cuda", "fake", "cpu")


def check_backend(backend: str, environment: Mapping[str, str]) -> None:
    """Refuse an unknown backend, and CUDA on a GPU that is busy.

    Raises:
        InputError: there is no such backend.
        GpuUnusableError: the GPU that the script would get is busy.
    """
    if backend not in BACKENDS:
        raise InputError(f"unknown profiling backend {backend!r}: choose one of {', '.join(BACKENDS)}.")
    if backend in ("fake", "cpu"):
        return
    reason = why_first_is_busy(environment)
    if reason is not None:
        raise GpuUnusableError(
            f"{reason}.",
            "Wait until it is free, choose another with CUDA_VISIBLE_DEVICES, or profile without it:"
            " `profile.backend` fake.",
        )


def why_first_is_busy(environment: Mapping[str, str]) -> str | None:
    """In words what others do on the GPU that a script would get; None if it is free, or nobody knows."""
    device = first_device(environment)
    return None if device is None else why_busy(device)


def first_device(environment: Mapping[str, str]) -> Device | None:
    """The GPU that a script would get, as nvidia-smi tells; None where it tells nothing."""
    first = first_visible(environment)
    if not first.isdigit():
        return detect_device(first) if first else None
    devices, index = detect_devices(), int(first)
    return devices[index] if index < len(devices) else None


def visible_devices(backend: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variable that says which GPUs the script sees: one where it is measured, none on the CPU.

    >>> visible_devices("cuda", {"CUDA_VISIBLE_DEVICES": "3,1"})
    {'CUDA_VISIBLE_DEVICES': '3'}
    """
    if backend == "fake":
        return {}
    return {"CUDA_VISIBLE_DEVICES": "" if backend == "cpu" else first_visible(environment)}


def why_busy(device: Device) -> str | None:
    """In words what others do on the GPU; None if it is free, or nobody knows."""
    if device.is_working:
        return f"the {device.name} is busy ({device.utilization or 0:.0%} utilized)"
    if not device.is_occupied:
        return None
    used, total = format_bytes(device.used_bytes or 0), format_bytes(device.memory_bytes or 0)
    return f"others use {used} of the {total} of the {device.name}"


def first_visible(environment: Mapping[str, str]) -> str:
    """What CUDA takes for its device 0: nvidia-smi's index, or a name; empty where all are hidden."""
    return environment.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0].strip()
