"""What the child writes of kernels, a line each."""

from __future__ import annotations

from typing import TypedDict, Union, final

from .recordings import Flags, Operator


class Precision(Flags):
    """What a kernel was measured in."""

    amp_dtype: str | None


class Device(TypedDict):
    """What measures."""

    name: str
    compute_capability: str | None
    versions: dict[str, str | None]


@final
class DeviceLine(TypedDict):
    """The first line of a measuring process."""

    device: Device


@final
class ReferenceLine(TypedDict):
    """The reference product was measured."""

    reference_s: float


@final
class SkippedLine(TypedDict):
    """A case could not be measured."""

    case: str
    reason: str


class Timing(TypedDict):
    """A kernel's time."""

    operator: Operator
    precision: Precision
    time_s: float
    spread: float
    num_samples: int


@final
class MeasuredLine(Timing):
    """A case was measured."""

    case: str


# Evaluated in the child's Python, which may not know the operator.
MeasuringLine = Union[DeviceLine, ReferenceLine, SkippedLine, MeasuredLine]
