"""Seconds of fused attention: tiles of scores, and thread blocks that share the SMs.

A thread block takes 128 rows of scores (of the backward pass: 128 columns) and walks over the other side in
tiles of 128. So a head costs whole tiles, a started wave of blocks costs a whole one, and under a causal
mask a block walks only as far as it sees:

    t = tiles of the busiest SM * (FLOPs of a tile / (e * rate of an SM)) + traffic * bytes / bandwidth

with ``e`` by the head size padded to 32. The rate is the data sheet's for kernels that use a GPU's own
instructions. FlashAttention 2 uses Ampere's (``mma.sync``), which do at most 2,048 FLOPs a clock and SM on
all later GPUs, too: so it reaches the same share of that on an A100, an H200 and a B200, and there 0.7,
0.35 and 0.2 of the data sheet's.

Sources: Dao, "FlashAttention-2", ICLR 2024 (blocks and their order); ``catalogs/attention.toml`` (constants,
fitted by ``python -m research.training.fit_attention``).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import ceil
from typing import TypedDict, Unpack

from advisor.core.gpus import catalog_path
from advisor.core.values import GpuSpec
from advisor.operators.attention_backends import Backend
from advisor.operators.attention_call import AttentionCall

TILE = 128
# Kernels exist for heads of these multiples; others are padded.
HEAD_STEP = 32
# FLOPs of mma.sync in 16 bits, a clock and SM: GA100's tensor cores, and an upper bound since.
MMA_SYNC_FLOPS = 2048
# Products with the query's or key's and with the value's head size.
_FORWARD_PRODUCTS, _BACKWARD_PRODUCTS = (1, 1), (3, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionKernel:
    """What one kernel reaches, forward or backward.

    Attributes:
        efficiency: share of the rate in long sequences, by padded head size.
        uneven: what is left of it where the head size is no multiple of 32.
        start_tiles: what a block costs beside its tiles, in tiles.
        tail: the part of the longest block by which causal blocks end unevenly.
        traffic: how often the tensors' bytes pass where nothing else goes on.
        is_mma_sync: it uses Ampere's instructions on any GPU.
        sigma: log-normal, on architectures that were measured.
        sigma_unseen: on others.
        architectures: those that were measured.
        measured_sizes: padded head sizes that were; the efficiency of others is a guess between them.
    """

    efficiency: Mapping[int, float]
    uneven: float
    start_tiles: float
    tail: float
    traffic: float
    is_mma_sync: bool
    sigma: float
    sigma_unseen: float
    architectures: frozenset[str]
    measured_sizes: frozenset[int]


def rate_flops_per_s(kernel: AttentionKernel, gpu: GpuSpec, dtype_rate: str) -> float:
    """What the instructions of a kernel could do on a GPU at most."""
    peak = gpu.tensor_flops_per_s[dtype_rate]
    return min(peak, MMA_SYNC_FLOPS * gpu.num_sms * gpu.boost_clock_hz) if kernel.is_mma_sync else peak


def seconds(call: AttentionCall, kernel: AttentionKernel, gpu: GpuSpec, flops_per_s: float) -> float:
    """Of one call without its launch.

    Args:
        call: its sizes.
        kernel: that runs it.
        gpu: its SMs and bandwidth.
        flops_per_s: of ``rate_flops_per_s``.
    """
    products = _BACKWARD_PRODUCTS if call.is_backward else _FORWARD_PRODUCTS
    width = products[0] * padded(call.key_size) + products[1] * padded(call.value_size)
    reached = efficiency_of(kernel, call, width / sum(products)) * flops_per_s / gpu.num_sms
    tile_s = 2 * TILE**2 * width / reached
    memory_s = kernel.traffic * call.num_bytes / gpu.memory_bytes_per_s
    return busiest_tiles(call, kernel, gpu.num_sms) * tile_s + memory_s


def busiest_tiles(call: AttentionCall, kernel: AttentionKernel, num_sms: int) -> float:
    """Tiles that the busiest SM takes one after the other, starts of blocks included."""
    rows, columns = ceil(call.queries / TILE), ceil(call.keys / TILE)
    blocks, length = (columns, rows) if call.is_backward else (rows, columns)
    num_blocks = call.batch_heads * blocks
    # A block that is not full loads and prepares fewer rows. Sequences that short were not measured.
    start_tiles = kernel.start_tiles * min(
        padded(call.keys if call.is_backward else call.queries) / TILE, 1.0
    )
    longest = length + start_tiles
    whole = ceil(num_blocks / num_sms) * longest
    if not call.is_causal:
        return whole
    seen = call.batch_heads * seen_tiles(rows, columns) + num_blocks * start_tiles
    return min(whole, max(longest, seen / num_sms + kernel.tail * longest))


def seen_tiles(rows: int, columns: int) -> int:
    """Tiles of a head that a causal mask leaves at least a part of.

    >>> seen_tiles(3, 3), seen_tiles(3, 9), seen_tiles(9, 3)
    (6, 6, 24)
    """
    square = min(rows, columns)
    return square * (square + 1) // 2 + (rows - square) * columns


def padded(size: int) -> int:
    """The head size that a kernel works with.

    >>> padded(80)
    96
    """
    return -(-size // HEAD_STEP) * HEAD_STEP


def efficiency_of(kernel: AttentionKernel, call: AttentionCall, width: float) -> float:
    """By head size, on straight lines between those that were measured."""
    uneven = kernel.uneven if call.key_size % HEAD_STEP else 1.0
    table = sorted(kernel.efficiency.items())
    for (low, before), (high, after) in pairwise(table):
        if width <= high:
            share = max(width - low, 0.0) / (high - low)
            return uneven * (before + share * (after - before))
    return uneven * table[-1][1]


@cache
def kernels() -> Mapping[tuple[Backend, bool], AttentionKernel]:
    """Those of ``catalogs/attention.toml``, by backend and whether it is the backward pass.

    Raises:
        CatalogError: the file is missing.
    """
    document = tomllib.loads(catalog_path("attention.toml").read_text(encoding="utf-8"))
    return {
        (Backend(backend), direction == "backward"): _kernel(**table)
        for backend, directions in document["kernel"].items()
        for direction, table in directions.items()
    }


class _Constants(TypedDict):
    uneven: float
    start_tiles: float
    tail: float
    traffic: float
    is_mma_sync: bool
    sigma: float
    sigma_unseen: float


def _kernel(
    *,
    efficiency: Mapping[str, float],
    architectures: Sequence[str],
    measured_sizes: Sequence[int],
    **constants: Unpack[_Constants],
) -> AttentionKernel:
    """A table of the file, whose keys are texts."""
    return AttentionKernel(
        efficiency={int(size): share for size, share in efficiency.items()},
        architectures=frozenset(architectures),
        measured_sizes=frozenset(measured_sizes),
        **constants,
    )
