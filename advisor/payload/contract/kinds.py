"""Names and limits that jobs, progress and results share."""

from __future__ import annotations

import sys
from typing import Annotated, Literal, NamedTuple

if sys.version_info >= (3, 11):
    from enum import StrEnum as StrEnum
else:
    from enum import Enum

    class StrEnum(str, Enum):
        """Texts that are members of an enumeration."""

        __str__ = str.__str__


class Length(NamedTuple):
    """How long a text or a list may be."""

    least: int
    most: int


Name = Annotated[str, Length(0, 1000)]
Shape = Annotated[list[int], Length(0, 100)]
OperatorPhase = Literal["forward", "backward", "optimizer"]
Origin = Literal["script", "pretended"]


class Status(StrEnum):
    """How a child ended."""

    OK = "ok"
    CRASHED = "crashed"
    NO_ITERATION = "no_iteration"
    NO_GPU_WORK = "no_gpu_work"
    NO_CUDA = "no_cuda"
    NEEDS_TORCHRUN = "needs_torchrun"
    MISSING_MODULE = "missing_module"
    NOT_PYTHON = "not_python"
    SYNTAX_ERROR = "syntax_error"
    NO_TORCH = "no_torch"
    BROKEN_TORCH = "broken_torch"
    OLD_TORCH = "old_torch"
    STRANGE_TORCH = "strange_torch"
    LOST_DEVICE = "lost_device"
    FULL_DEVICE = "full_device"
