"""Which kernel fused attention takes on a GPU, and its seconds; no torch.

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

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise
from math import ceil, prod

from advisor.core.gpus import catalog_path
from advisor.core.values import GpuSpec, Op, TensorSpec
from advisor.operators.case import HALF
from advisor.operators.family import base_name

# PyTorch's names of its kernels begin with it, forward and backward.
_FUSED = "_scaled_dot_product_"
# How kernels of FlashAttention 3 are called: instructions of compute capability 9.0 by the class's name.
_FLASH_3_KERNEL = ("flashattn", "sm90")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCall:
    """Sizes of query [B, H, Q, D], key [B, G, K, D] and value [B, G, K, V]."""

    batch_heads: int
    """B x H; several of them share a head of the key."""
    queries: int
    """Q."""
    keys: int
    """K."""
    key_size: int
    """D."""
    value_size: int
    """V."""
    dtype: str
    has_mask: bool
    """A tensor says which scores count."""
    is_causal: bool
    """The kernel hides keys after the query, without a mask."""
    is_backward: bool
    """Gradients of all three."""
    is_trained: bool
    """Its backward follows, as far as the call shows."""
    has_dropout: bool
    """Of the scores."""
    ran_flash_3: bool
    """It was measured, and ran FlashAttention 3."""
    num_bytes: int
    """Each tensor once."""
    allowed: tuple[str, ...] | None = None
    """Backends that the script allows, by PyTorch's names of their switches; None if all."""
    prefers: bool = False
    """Whether PyTorch tries them in this order."""


def attention_call(op: Op) -> AttentionCall | None:
    """What a trace holds of a call; None where its tensors are not [B, H, length, size], or are empty."""
    name = base_name(op.name)
    is_backward = name.endswith("_backward")
    tensors = op.inputs[1:] if is_backward else op.inputs
    if not name.startswith(_FUSED) or len(tensors) < 3:
        return None
    names = op.attributes.get("backends")
    query, key, value = tensors[:3]
    if any(len(tensor.shape) != 4 or not prod(tensor.shape) for tensor in (query, key, value)):
        return None
    return AttentionCall(
        batch_heads=query.shape[0] * query.shape[1],
        queries=query.shape[2],
        keys=key.shape[2],
        key_size=query.shape[3],
        value_size=value.shape[3],
        dtype=query.dtype,
        has_mask=_has_mask(tensors[3:], query, value, is_backward=is_backward),
        is_causal=op.attributes.get("is_causal") is True,
        is_backward=is_backward,
        is_trained=is_backward or op.attributes.get("compute_log_sumexp") is not False,
        has_dropout=bool(op.attributes.get("dropout_p")),
        ran_flash_3=any(
            all(part in kernel.name.lower() for part in _FLASH_3_KERNEL) for kernel in op.kernels
        ),
        num_bytes=op.bytes,
        allowed=tuple(name for name in names if isinstance(name, str)) if isinstance(names, tuple) else None,
        prefers=op.attributes.get("prefers_backends") is True,
    )


def _has_mask(
    others: Sequence[TensorSpec], query: TensorSpec, value: TensorSpec, *, is_backward: bool
) -> bool:
    """Whether one of the others has the scores' sizes; a backward pass is given the output, too."""
    (queries, _), (keys, size) = query.shape[-2:], value.shape[-2:]
    alike = sum(len(tensor.shape) > 1 and tensor.shape[-2:] == (queries, keys) for tensor in others)
    return alike > (is_backward and keys == size)


# Which kernel PyTorch's ``scaled_dot_product_attention`` takes on a GPU; no torch.
#
# A trace that was recorded for one GPU names the kernel of that GPU; another may take another. On an A100
# it is FlashAttention 2, on a T4 the memory-efficient kernel, on an H100 cuDNN's.
#
# Source: ``priority_order`` and ``can_use_*`` of PyTorch 2.13's
# ``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp`` (BSD-3-Clause), written down as rules. From 2.10
# on cuDNN's comes first on compute capability 9.0 and 10.0 (10.3 is taken for alike); before it did not,
# and such GPUs ran FlashAttention 2. What the script switches off by ``sdpa_kernel`` is never taken; where
# nothing is left, PyTorch raises.

# Where cuDNN's kernel comes first; the backend's own limit for heads that train.
_CUDNN_FIRST = frozenset({(9, 0), (10, 0), (10, 3)})
_CUDNN_LEAST, _CUDNN_LATEST = (8, 0), (12, 1)
_CUDNN_MOST = 128
_FLASH_MOST = 256
# Shared memory of these holds no backward pass of larger heads with dropout.
_SMALL_SHARED = frozenset({(8, 6), (8, 9), (12, 0), (12, 1)})
_SMALL_SHARED_MOST = 192


class AttentionBackend(StrEnum):
    """Kernels behind ``scaled_dot_product_attention``."""

    FLASH_2 = "flash_2"
    FLASH_3 = "flash_3"
    CUDNN = "cudnn"
    EFFICIENT = "efficient"
    MATH = "math"


_FLASH, _CUDNN = AttentionBackend.FLASH_2, AttentionBackend.CUDNN
_EFFICIENT, _MATH = AttentionBackend.EFFICIENT, AttentionBackend.MATH
# By the names of PyTorch's switches.
SWITCHES = {"flash": _FLASH, "cudnn": _CUDNN, "efficient": _EFFICIENT, "math": _MATH}
_USUAL_ORDER = (_FLASH, _EFFICIENT, _MATH, _CUDNN)
_CUDNN_ORDER = (_CUDNN, _FLASH, _EFFICIENT, _MATH)


def backend_of(call: AttentionCall, gpu: GpuSpec) -> AttentionBackend:
    """The first backend that can run the call, in PyTorch's order, of those that the script allows.

    Where none of them can, it is PyTorch's own choice: what the GPU could do if the script let it.
    FlashAttention 3 is none of them: a script activates it (``activate_flash_attention_impl``), so it counts
    where it was measured, and only on GPUs of compute capability 9.0.
    """
    capability = _capability(gpu)
    order = _order(call, capability)
    if call.ran_flash_3 and capability == (9, 0) and AttentionBackend.FLASH_2 in order:
        return AttentionBackend.FLASH_3
    return next(each for each in (*order, *_usual_order(capability)) if _CAN[each](call, capability))


def is_refused(call: AttentionCall, gpu: GpuSpec) -> bool:
    """Whether no backend that the script allows can run the call, so that PyTorch raises."""
    capability = _capability(gpu)
    return not any(_CAN[backend](call, capability) for backend in _order(call, capability))


def _order(call: AttentionCall, capability: tuple[int, int]) -> Sequence[AttentionBackend]:
    usual = _usual_order(capability)
    if call.allowed is None:
        return usual
    allowed = [SWITCHES[name] for name in call.allowed if name in SWITCHES]
    return allowed if call.prefers else [backend for backend in usual if backend in allowed]


def _usual_order(capability: tuple[int, int]) -> Sequence[AttentionBackend]:
    return _CUDNN_ORDER if capability in _CUDNN_FIRST else _USUAL_ORDER


def _capability(gpu: GpuSpec) -> tuple[int, int]:
    """``"8.6"`` -> (8, 6); (0, 0) for what is no CUDA device."""
    major, _, minor = gpu.compute_capability.partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (0, 0)


def _cudnn_can(call: AttentionCall, capability: tuple[int, int]) -> bool:
    sizes = call.key_size, call.value_size
    if not _CUDNN_LEAST <= capability <= _CUDNN_LATEST:
        return False
    return call.dtype in HALF and max(sizes) <= _CUDNN_MOST and not any(size % 8 for size in sizes)


def _flash_can(call: AttentionCall, capability: tuple[int, int]) -> bool:
    """Heads whose size is no multiple of 8 are padded before."""
    is_short_of_memory = call.key_size > _SMALL_SHARED_MOST and capability in _SMALL_SHARED
    return (
        capability >= (8, 0)
        and call.dtype in HALF
        and not call.has_mask
        and call.key_size == call.value_size <= _FLASH_MOST
        and not (call.is_causal and call.queries != call.keys)
        and not (is_short_of_memory and call.is_trained and call.has_dropout)
    )


def _efficient_can(call: AttentionCall, capability: tuple[int, int]) -> bool:
    if capability < (5, 0) or call.dtype == "float64":
        return False
    return call.dtype != "bfloat16" or capability >= (8, 0)


_CAN: Mapping[AttentionBackend, Callable[[AttentionCall, tuple[int, int]], bool]] = {
    _FLASH: _flash_can, _CUDNN: _cudnn_can, _EFFICIENT: _efficient_can, _MATH: lambda *_: True,
}  # fmt: skip


TILE = 128
# Kernels exist for heads of these multiples; others are padded.
HEAD_STEP = 32
# FLOPs of mma.sync in 16 bits, a clock and SM: GA100's tensor cores, and an upper bound since.
MMA_SYNC_FLOPS = 2048
# Products with the query's or key's and with the value's head size.
_FORWARD_PRODUCTS, _BACKWARD_PRODUCTS = (1, 1), (3, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionKernel:
    """What one kernel reaches, forward or backward."""

    efficiency: Mapping[int, float]
    """Share of the rate in long sequences, by padded head size."""
    uneven: float
    """What is left of it where the head size is no multiple of 32."""
    start_tiles: float
    """What a block costs beside its tiles, in tiles."""
    tail: float
    """The part of the longest block by which causal blocks end unevenly."""
    traffic: float
    """How often the tensors' bytes pass where nothing else goes on."""
    is_mma_sync: bool
    """It uses Ampere's instructions on any GPU."""
    sigma: float
    """Log-normal, on architectures that were measured."""
    sigma_unseen: float
    """On others."""
    architectures: frozenset[str]
    """Those that were measured."""
    measured_sizes: frozenset[int]
    """Padded head sizes that were; the efficiency of others is a guess between them."""


def rate_flops_per_s(kernel: AttentionKernel, gpu: GpuSpec, dtype_rate: str) -> float:
    """What the instructions of a kernel could do on a GPU at most."""
    peak = gpu.tensor_flops_per_s[dtype_rate]
    return min(peak, MMA_SYNC_FLOPS * gpu.num_sms * gpu.boost_clock_hz) if kernel.is_mma_sync else peak


def seconds(call: AttentionCall, kernel: AttentionKernel, gpu: GpuSpec, flops_per_s: float) -> float:
    """Of one call without its launch; ``flops_per_s`` is of ``rate_flops_per_s``, not of the data sheet."""
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
def kernels() -> Mapping[tuple[AttentionBackend, bool], AttentionKernel]:
    """Those of ``catalogs/attention.toml``, by backend and whether it is the backward pass.

    Raises CatalogError: the file is missing.
    """
    document = tomllib.loads(catalog_path("attention.toml").read_text(encoding="utf-8"))
    return {
        (AttentionBackend(backend), direction == "backward"): AttentionKernel(
            **table
            | {
                "efficiency": {int(size): share for size, share in table["efficiency"].items()},
                "architectures": frozenset(table["architectures"]),
                "measured_sizes": frozenset(table["measured_sizes"]),
            }
        )
        for backend, directions in document["kernel"].items()
        for direction, table in directions.items()
    }
