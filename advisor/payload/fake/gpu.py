"""The GPU that the script believes it has."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

import torch

from ..protocol import Gpu, Notice, Warned, notice
from ..script import is_library


@dataclass(frozen=True)
class PretendedGpu:
    """Facts that ``torch.cuda`` reports."""

    name: str
    major: int
    minor: int
    num_sms: int
    memory_bytes: int

    @classmethod
    def from_job(cls, facts: Gpu) -> PretendedGpu:
        major, minor = facts["compute_capability"].split(".")
        return cls(
            name=facts["name"], major=int(major), minor=int(minor), num_sms=facts["num_sms"],
            memory_bytes=facts["memory_bytes"],
        )  # fmt: skip


# Which device a script means; each process has one GPU.

CUDA = torch.device("cuda", 0)


class SecondGpuError(RuntimeError):
    """The process uses another GPU beside its own."""

    def __init__(self, index: int) -> None:
        super().__init__(f"it uses a second GPU in one process, cuda:{index}")


def plain_device(device: object) -> Any:
    """The process's GPU for any way to name it; an integer is a CUDA index.

    Raises SecondGpuError: another GPU is meant.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        check_index(device)
        return CUDA
    if isinstance(device, (str, torch.device)):
        named = torch.device(device)
        if named.type == "cuda":
            check_index(named.index)
            return CUDA
    return device


def check_index(index: int | None) -> None:
    """Find out whether this is the process's GPU. Raises SecondGpuError: it is not."""
    if index is not None and index > 0:
        raise SecondGpuError(index)


# The processes that the script believes to be one of.

# What torchrun tells each process that it starts; the numbers of ranks and GPUs are the world's.
_TORCHRUN = {
    "RANK": "0", "LOCAL_RANK": "0", "GROUP_RANK": "0", "ROLE_RANK": "0", "ROLE_NAME": "default",
    "WORLD_SIZE": "{size}", "LOCAL_WORLD_SIZE": "{local}", "GROUP_WORLD_SIZE": "{nodes}",
    "ROLE_WORLD_SIZE": "{size}", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
    "TORCHELASTIC_RUN_ID": "advisor", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
}  # fmt: skip
_MOST_GPUS_PER_NODE = 8


class PretendedWorld:
    """Rank 0 of as many processes as the user asked for, one GPU each.

    Attributes:
        is_sharded: this rank holds a part of some parameter, be it the only one.
        is_counted: the script's own code asked how many GPUs there are.
    """

    def __init__(self, asked: int | None = None) -> None:
        self.asked = asked
        """``--world``; None if the user said nothing."""
        self.used: int | None = None
        """Processes of the group that the script made; None before."""
        self.is_sharded = self.is_counted = False

    @property
    def gpus_per_node(self) -> int:
        """GPUs this node pretends to have: nodes are equal and have 8 at most."""
        size = self.asked or 1
        return max(count for count in range(1, _MOST_GPUS_PER_NODE + 1) if size % count == 0)

    def count_gpus(self) -> int:
        """The answer to anyone who asks how many GPUs there are."""
        self.is_counted |= not is_library(sys._getframe(1).f_code.co_filename)
        return self.gpus_per_node

    def set_environment(self) -> None:
        """Say what torchrun would; nothing of an outer torchrun where the user asked for no world."""
        for name in _TORCHRUN:
            os.environ.pop(name, None)
        if self.asked is not None:
            local = self.gpus_per_node
            numbers = {"size": self.asked, "local": local, "nodes": self.asked // local}
            os.environ.update({name: value.format(**numbers) for name, value in _TORCHRUN.items()})

    def size_of_group(self, given: int) -> int:
        """Processes of the group that the script makes, from its own argument where it has one."""
        size = given if given > 0 else int(os.environ.get("WORLD_SIZE", self.asked or 1))
        self.used = size
        return size

    def is_asked_by(self, error: KeyError) -> bool:
        """Whether the script stopped because torchrun's environment is not there."""
        return self.asked is None and bool(error.args) and error.args[0] in _TORCHRUN

    def warnings(self) -> list[Notice]:
        """What the user should know about the number of processes."""
        if self.used is None and self.asked is not None:
            return [notice(Warned.WORLD, of="unused", world_size=self.asked)]
        if self.used is not None and self.asked is not None and self.used != self.asked:
            return [notice(Warned.WORLD, of="script", num_ranks=self.used, world_size=self.asked)]
        if self.used == 1:
            return [notice(Warned.WORLD, of="one")]
        return []
