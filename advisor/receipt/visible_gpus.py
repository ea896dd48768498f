"""The GPUs that a command gets: those of this machine, or what ``CUDA_VISIBLE_DEVICES`` leaves of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.core.devices import Device
from advisor.core.errors import UnknownGpuError
from advisor.core.gpus import resolve_gpu

VARIABLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpusSeen:
    """What a command gets of a machine's GPUs; all of its GPUs count as of one kind.

    Attributes:
        name: in our catalog, or as the driver says it.
    """

    name: str
    num_visible: int
    num_all: int


def gpus_seen(devices: Sequence[Device], environment: Mapping[str, str]) -> GpusSeen | None:
    """What a command gets; None where it gets none, or nobody knows of any.

    >>> card = Device(name="NVIDIA L4", memory_bytes=None, used_bytes=None, utilization=None)
    >>> gpus_seen([card] * 8, {VARIABLE: "0,1"})
    GpusSeen(name='L4', num_visible=2, num_all=8)
    """
    which = environment.get(VARIABLE)
    visible = list(devices) if which is None else _chosen(devices, which)
    if not visible:
        return None
    return GpusSeen(name=_name(visible[0].name), num_visible=len(visible), num_all=len(devices))


def _chosen(devices: Sequence[Device], which: str) -> list[Device]:
    """As CUDA reads it: a wrong index ends the list. A name, such as a UUID, counts as the first card."""
    chosen = []
    for entry in filter(None, map(str.strip, which.split(","))):
        if not devices:
            break
        if entry.lstrip("-").isdigit():
            if not 0 <= int(entry) < len(devices):
                break
            chosen.append(devices[int(entry)])
        else:
            chosen.append(devices[0])
    return chosen


def _name(driver_name: str) -> str:
    try:
        return resolve_gpu(driver_name).name
    except UnknownGpuError:
        return driver_name
