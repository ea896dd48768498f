"""Kernels in 16 bits that stream through memory: what an SM can do in a clock counts as much as the bytes.

    t = launch + passes * bytes / bandwidth + (a * elements + b * rows) / (SMs * clock)

Halved bytes do not halve the time of a GELU: an SM does about three elements a clock, whatever their size,
and bandwidth grew from 13 bytes a clock and SM of an A100 to 27 of a B200. The networks for these families
learned from FP32, where bytes bind.

Source: ``catalogs/streams.toml``, fitted by ``python -m training.fit_streams``; docs/accuracy/streams.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.values import GpuSpec, Op
from advisor.operators.case import HALF

FILE = "streams.toml"
Numbers = TypeVar("Numbers", float, NDArray[np.float64])


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCost:
    """What one kind of kernel costs in 16 bits.

    Attributes:
        passes: how often its bytes count at the family's bandwidth.
        cycles_per_element: of one SM.
        cycles_per_row: of one SM, for each row that is normalised.
        sigma: log-normal, on architectures that were measured.
        unseen_sigma: on others.
        architectures: those that were measured.
    """

    passes: float
    cycles_per_element: float
    cycles_per_row: float
    sigma: float
    unseen_sigma: float
    architectures: frozenset[str]

    def sigma_on(self, gpu: GpuSpec) -> float:
        """How sure its time is there."""
        return self.sigma if gpu.architecture in self.architectures else self.unseen_sigma


@cache
def stream_costs() -> Mapping[str, StreamCost]:
    """By kind, such as ``"layer norm forward"``.

    Raises:
        CatalogError: the file is missing or broken.
    """
    path = catalog_path(FILE)
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CatalogError(f"cannot read {str(path)!r}: {error}. Reinstall gpu-advisor.") from error


def parsed(text: str) -> Mapping[str, StreamCost]:
    """The costs of a ``streams.toml``."""
    tables = tomllib.loads(text)
    return {
        kind: StreamCost(**{**table, "architectures": frozenset(table["architectures"])})
        for kind, table in tables.items()
    }


def is_half(op: Op) -> bool:
    """Whether its first tensor has 16 bits."""
    return bool(op.inputs) and op.inputs[0].dtype in HALF


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What one call streams on any GPU.

    Attributes:
        cost: of its kind.
        moved_bytes: with each pass over them.
        cycles: of one SM.
    """

    cost: StreamCost
    moved_bytes: float
    cycles: float


def stream_of(op: Op, kind: str, *, elements: int, rows: int = 0) -> Stream:
    """A call in 16 bits.

    Args:
        op: the call; its bytes count.
        kind: of ``stream_costs``.
        elements: that it works on.
        rows: that are normalised, each by itself.
    """
    cost = stream_costs()[kind]
    return Stream(
        cost=cost,
        moved_bytes=cost.passes * op.bytes,
        cycles=cost.cycles_per_element * elements + cost.cycles_per_row * rows,
    )


def stream_time_s(
    launch_s: float, moved_bytes: Numbers, cycles: Numbers, gpu: GpuSpec, bytes_per_s: Numbers
) -> Numbers:
    """Seconds of one stream or of many: the formula above."""
    return launch_s + moved_bytes / bytes_per_s + cycles / (gpu.num_sms * gpu.boost_clock_hz)
