"""Which kernel PyTorch's ``scaled_dot_product_attention`` takes on a GPU; no torch.

A trace that was recorded for one GPU names the kernel of that GPU; another may take another. On an A100 it
is FlashAttention 2, on a T4 the memory-efficient kernel, on an H100 cuDNN's.

Source: ``priority_order`` and ``can_use_*`` of PyTorch 2.13's
``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp`` (BSD-3-Clause), written down as rules. From 2.10 on
cuDNN's comes first on compute capability 9.0 and 10.0 (10.3 is taken for alike); before it did not, and such
GPUs ran FlashAttention 2.
What the script switches off by ``sdpa_kernel`` is never taken; where nothing is left, PyTorch raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from advisor.core.values import GpuSpec
from advisor.operators.attention_call import AttentionCall
from advisor.operators.case import HALF

# Where cuDNN's kernel comes first; the backend's own limit for heads that train.
_CUDNN_FIRST = frozenset({(9, 0), (10, 0), (10, 3)})
_CUDNN_LEAST, _CUDNN_LATEST = (8, 0), (12, 1)
_CUDNN_MOST = 128
_FLASH_MOST = 256
# Shared memory of these holds no backward pass of larger heads with dropout.
_SMALL_SHARED = frozenset({(8, 6), (8, 9), (12, 0), (12, 1)})
_SMALL_SHARED_MOST = 192


class Backend(StrEnum):
    """Kernels behind ``scaled_dot_product_attention``."""

    FLASH_2 = "flash_2"
    FLASH_3 = "flash_3"
    CUDNN = "cudnn"
    EFFICIENT = "efficient"
    MATH = "math"


# By the names of PyTorch's switches.
SWITCHES = {
    "flash": Backend.FLASH_2,
    "cudnn": Backend.CUDNN,
    "efficient": Backend.EFFICIENT,
    "math": Backend.MATH,
}
_USUAL_ORDER = (Backend.FLASH_2, Backend.EFFICIENT, Backend.MATH, Backend.CUDNN)
_CUDNN_ORDER = (Backend.CUDNN, Backend.FLASH_2, Backend.EFFICIENT, Backend.MATH)


def backend_of(call: AttentionCall, gpu: GpuSpec) -> Backend:
    """The first backend that can run the call, in PyTorch's order, of those that the script allows.

    Where none of them can, it is PyTorch's own choice: what the GPU could do if the script let it.
    FlashAttention 3 is none of them: a script activates it (``activate_flash_attention_impl``), so it counts
    where it was measured, and only on GPUs of compute capability 9.0.
    """
    capability = _capability(gpu)
    order = _order(call, capability)
    if call.ran_flash_3 and capability == (9, 0) and Backend.FLASH_2 in order:
        return Backend.FLASH_3
    return next(each for each in (*order, *_usual_order(capability)) if _CAN[each](call, capability))


def is_refused(call: AttentionCall, gpu: GpuSpec) -> bool:
    """Whether no backend that the script allows can run the call, so that PyTorch raises."""
    capability = _capability(gpu)
    return not any(_CAN[backend](call, capability) for backend in _order(call, capability))


def _order(call: AttentionCall, capability: tuple[int, int]) -> Sequence[Backend]:
    usual = _usual_order(capability)
    if call.allowed is None:
        return usual
    allowed = [SWITCHES[name] for name in call.allowed if name in SWITCHES]
    return allowed if call.prefers else [backend for backend in usual if backend in allowed]


def _usual_order(capability: tuple[int, int]) -> Sequence[Backend]:
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
    if capability < (8, 0):
        return False
    if call.dtype not in HALF or call.has_mask or call.key_size != call.value_size:
        return False
    if call.is_causal and call.queries != call.keys:
        return False
    is_large = call.key_size > _SMALL_SHARED_MOST
    if is_large and capability in _SMALL_SHARED and call.is_trained and call.has_dropout:
        return False
    return call.key_size <= _FLASH_MOST


def _efficient_can(call: AttentionCall, capability: tuple[int, int]) -> bool:
    if capability < (5, 0) or call.dtype == "float64":
        return False
    return call.dtype != "bfloat16" or capability >= (8, 0)


def _math_can(call: AttentionCall, capability: tuple[int, int]) -> bool:  # noqa: ARG001
    return True


_CAN: Mapping[Backend, Callable[[AttentionCall, tuple[int, int]], bool]] = {
    Backend.FLASH_2: _flash_can,
    Backend.CUDNN: _cudnn_can,
    Backend.EFFICIENT: _efficient_can,
    Backend.MATH: _math_can,
}
