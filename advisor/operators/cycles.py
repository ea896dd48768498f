"""Kernels that stream through memory: what an SM can do in a clock counts as much as the bytes.

    t = launch + pace * (passes * bytes / bandwidth
                         + (a * elements + b * slow elements + c * rows) / (SMs * clock)
                         + d * steps * waves / clock)

and never less than its bytes take at the data sheet's bandwidth.

Halved bytes do not halve the time of a GELU: an SM does about three elements a clock, whatever their size,
and bandwidth grew from 13 bytes a clock and SM of an A100 to 27 of a B200. The networks for these families
learned from FP32, where bytes bind. Some kernels wait for themselves: of a norm's backward pass a block sums
32 columns over all rows, one after the other, and narrow matrices leave most SMs idle.

Source: ``catalogs/streams.toml``, fitted by ``python -m research.training.fit_streams``;
research/docs/accuracy/streams.md.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.values import GpuSpec, Op
from advisor.operators.case import HALF
from advisor.operators.work import SORTED_BYTES

FILE = "streams.toml"
# Of an SM whose occupancy is not in the catalog.
_THREADS = 2048
COSTS = ("passes", "cycles_per_element", "cycles_per_slow_element", "cycles_per_row", "cycles_per_step")
"""What a kind of kernel costs, in the order of ``CallWork.unit_times_s``."""
Numbers = TypeVar("Numbers", float, NDArray[np.float64])


@dataclass(frozen=True, slots=True)
class CallWork(Generic[Numbers]):
    """What one call does, or each of many, the same on any GPU."""

    num_bytes: Numbers
    """That one pass moves."""
    elements: Numbers
    """That it works on."""
    slow_elements: Numbers
    """Of these, such as take a slower way: beyond a row's whole vectors, or beyond the cache."""
    rows: Numbers
    """That are normalised, each by itself."""
    steps: Numbers
    """That a block takes one after the other."""
    blocks: Numbers
    """That take them at once."""
    block_threads: Numbers
    """How many of an SM's threads a block needs."""

    def unit_times_s(self, gpu: GpuSpec, bytes_per_s: Numbers) -> tuple[Numbers, ...]:
        """Seconds of each of a kind's costs if it were 1, in the order of ``COSTS``."""
        threads = _THREADS if gpu.occupancy is None else gpu.occupancy.max_threads
        at_once = np.maximum(threads // self.block_threads, 1) * gpu.num_sms
        cycles_per_s = gpu.num_sms * gpu.boost_clock_hz
        return (
            self.num_bytes / bytes_per_s, self.elements / cycles_per_s, self.slow_elements / cycles_per_s,
            self.rows / cycles_per_s, self.steps * np.ceil(self.blocks / at_once) / gpu.boost_clock_hz,
        )  # fmt: skip

    def time_s(
        self, launch_s: float, gpu: GpuSpec, bytes_per_s: Numbers, costs: Iterable[Numbers], factor: Numbers
    ) -> Numbers:
        """Seconds of each call: the formula above; ``costs`` as ``StreamCost.costs`` orders them."""
        units_s = self.unit_times_s(gpu, bytes_per_s)
        in_all_s = sum(cost * unit_s for cost, unit_s in zip(costs, units_s, strict=True))
        least_s = self.num_bytes / gpu.memory_bytes_per_s
        times_s: Numbers = launch_s + np.maximum(least_s, factor * in_all_s)
        return times_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchitecturePace:
    """An architecture that was measured."""

    factor: float
    """By which its kernels take longer than the costs say."""
    sigma: float
    """Log-normal, of one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCost:
    """What one kind of kernel costs."""

    passes: float
    """How often its bytes count at the family's bandwidth."""
    cycles_per_element: float
    """Of one SM."""
    cycles_per_slow_element: float
    """More."""
    cycles_per_row: float
    """Of one SM."""
    cycles_per_step: float
    """Of all SMs."""
    unseen_sigma: float
    """Log-normal, on architectures that were not measured."""
    architectures: Mapping[str, ArchitecturePace]
    """Those that were."""

    @property
    def costs(self) -> tuple[float, ...]:
        """In the order of ``COSTS``."""
        return tuple(getattr(self, name) for name in COSTS)

    def pace_on(self, gpu: GpuSpec) -> ArchitecturePace:
        """How fast and how sure it is there."""
        return self.architectures.get(gpu.architecture) or ArchitecturePace(
            factor=1.0, sigma=self.unseen_sigma
        )


@cache
def stream_costs() -> Mapping[str, StreamCost]:
    """By kind, such as ``"layer norm forward"``. Raises CatalogError: the file is missing or broken."""
    path = catalog_path(FILE)
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CatalogError(f"cannot read {str(path)!r}: {error}. Reinstall gpu-advisor.") from error


def parsed(text: str) -> Mapping[str, StreamCost]:
    """The costs of a ``streams.toml``."""
    tables = tomllib.loads(text)
    return {
        kind: StreamCost(
            **table
            | {
                "architectures": {
                    name: ArchitecturePace(**pace) for name, pace in table["architectures"].items()
                }
            }
        )
        for kind, table in tables.items()
    }


def is_half(op: Op) -> bool:
    """Whether its first tensor has 16 bits."""
    return bool(op.inputs) and op.inputs[0].dtype in HALF


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedCall:
    """What one call streams, and what its kind costs."""

    cost: StreamCost
    work: CallWork[float]

    def time_s(self, launch_s: float, gpu: GpuSpec, bytes_per_s: float) -> float:
        """Seconds on a GPU."""
        factor = self.cost.pace_on(gpu).factor
        return self.work.time_s(launch_s, gpu, bytes_per_s, self.cost.costs, factor)


# How PyTorch's kernels share matrices among blocks: what of a call is slow, and what waits.
#
# Sources: ``ATen/native/cuda/PersistentSoftmax.cuh`` of PyTorch 2.13 for rows of up to 1,024 columns; for
# others the blocks that PyTorch launched, which NeuSight recorded with its kernels of softmax; for the rest
# the steps in which measured times grow (research/docs/accuracy/streams.md).

# A warp holds a row of softmax up to so many columns; longer ones take a block each, which keeps the row in
# shared memory as long as it fits.
SHORT_ROW = 1024
_SHARED_BYTES = 64 * 1024
LONG_ROWS, LONGEST_ROWS = ", long rows", ", longest rows"
# What a block reads at once for each thread: 16 bytes of 16-bit numbers.
_VECTOR = 8
_WARP, _BLOCK = 32, 1024
# Two passes over a row: the second finds it in the SM's L1 cache while its 16 rows of 12 KB fit.
_CACHED_COLUMNS = 6144
# Blocks of batch norms have so many threads, and keep so much of a channel between two passes: on an H100
# 128 KiB are read once and 196 KiB twice.
_CHANNEL_BLOCK, _HELD_BYTES = 512, 128 * 1024
CHANNEL_NORM, LONG_CHANNELS, CHANNELS_LAST = "channel norm ", ", long channels", ", channels last"
# Tensors that are read, all but the last, and written.
_TENSORS_OF_PASS = {"forward": 2, "backward": 3}
# The blocks of gradients of weights take this many columns each, and keep an SM busy one at a time.
_STRIP, _WHOLE_SM = 32, 2048


def row_work(kind: str, rows: int, columns: int, num_bytes: int) -> CallWork[float]:
    """The work of a norm or softmax, whose kind ``row_kind`` tells.

    Args:
        kind: of ``streams.toml``.
        rows: that are normalised, each by itself.
        num_bytes: read and written at least.
    """
    slow = steps = blocks = 0
    threads = _BLOCK
    if kind.endswith(LONG_ROWS):
        slow = columns % (_VECTOR * _softmax_threads(columns))
        if "forward" in kind:
            steps, blocks = 1, rows
    elif "norm" in kind:
        slow = max(0, columns - _CACHED_COLUMNS)
        if "backward" in kind:
            steps, blocks, threads = rows, -(-columns // _STRIP), _WHOLE_SM
    plain, slow = plain_work(rows * columns, num_bytes), rows * slow
    return replace(plain, slow_elements=slow, rows=rows, steps=steps, blocks=blocks, block_threads=threads)


def row_kind(kind: str, columns: int, item_bytes: int = 2) -> str:
    """The kind of ``streams.toml``: softmax has other kernels for long rows and for vocabularies."""
    if "softmax" not in kind or columns <= SHORT_ROW:
        return kind
    return kind + (LONG_ROWS if columns * item_bytes <= _SHARED_BYTES else LONGEST_ROWS)


def channel_kind(direction: str, elements: int, item_bytes: int, *, is_last: bool = False) -> str:
    """The kind of ``streams.toml`` of a batch norm; ``direction`` is ``forward`` or ``backward``."""
    if is_last:
        return CHANNEL_NORM + direction + CHANNELS_LAST
    held_bytes = elements * item_bytes * (_TENSORS_OF_PASS[direction] - 1)
    return CHANNEL_NORM + direction + (LONG_CHANNELS if held_bytes > _HELD_BYTES else "")


def channel_work(kind: str, channels: int, elements: int, item_bytes: int) -> CallWork[float]:
    """The work of a batch norm of cuDNN.

    With channels first, a block takes a channel (its kernels are named 1C11), so that with fewer channels
    than SMs most of a large GPU waits.
    """
    tensors = _TENSORS_OF_PASS["backward" if "backward" in kind else "forward"]
    if kind.endswith(CHANNELS_LAST):
        return plain_work(channels * elements, tensors * item_bytes * channels * elements)
    if kind.endswith(LONG_CHANNELS):
        # What is read is read again.
        tensors += tensors - 1
    plain = plain_work(channels * elements, tensors * item_bytes * channels * elements)
    return replace(plain, rows=channels, steps=elements, blocks=channels, block_threads=_CHANNEL_BLOCK)


def plain_work(elements: int, num_bytes: int) -> CallWork[float]:
    """The work of a kernel that takes element by element."""
    return CallWork(num_bytes, elements, slow_elements=0, rows=0, steps=0, blocks=0, block_threads=_BLOCK)


_MEASURED_PICKS = 16384


def scatter_work(picks: int, table: int, width: int, num_bytes: int) -> CallWork[float]:
    """The work of adding up gradients of ``picks`` rows in a table of so many, each row once at most.

    All measured rows have 16,384 picks, whose sort is a chain of short kernels. Beyond, a pick costs what a
    radix sort moves.
    """
    beyond = max(picks - _MEASURED_PICKS, 0)
    plain = plain_work(picks * width, num_bytes + SORTED_BYTES * beyond)
    return replace(plain, rows=picks - beyond, slow_elements=min(picks, table) * width)


def _softmax_threads(columns: int) -> int:
    """Of the block that takes a row: a power of two, at least half of the row's vectors."""
    most = min(columns // _VECTOR, _BLOCK)
    threads = 1
    while threads < most // 2:
        threads *= 2
    return max(threads, _WARP)
