"""Which kernel PyTorch's ``scaled_dot_product_attention`` takes on a GPU; no torch.

A trace that was recorded for one GPU names the kernel of that GPU; another may take another. On an A100 it
is FlashAttention 2, on a T4 the memory-efficient kernel, on an H100 cuDNN's.

Source: ``priority_order`` and ``can_use_*`` of PyTorch 2.13's
``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp`` (BSD-3-Clause), written down as rules. From 2.10 on
cuDNN's comes first on compute capability 9.0 and 10.0 (10.3 is taken for alike); before it did not, and such
GPUs ran FlashAttention 2.
A backend that the script itself switched off with ``sdpa_kernel`` is not known here.
"""

from __future__ import annotations

from enum import StrEnum

from advisor.core.values import GpuSpec
from advisor.operators.attention_call import AttentionCall
from advisor.operators.case import HALF

# Where cuDNN's kernel comes first; the backend's own limit for heads that train.
_CUDNN_FIRST = frozenset({(9, 0), (10, 0), (10, 3)})
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


def backend_of(call: AttentionCall, gpu: GpuSpec) -> Backend:
    """The first backend that can run the call, in PyTorch's order.

    FlashAttention 3 is none of them: a script activates it (``activate_flash_attention_impl``), so it counts
    where it was measured, and only on GPUs of compute capability 9.0.
    """
    capability = _capability(gpu)
    if call.ran_flash_3 and capability == (9, 0):
        return Backend.FLASH_3
    if capability in _CUDNN_FIRST and _cudnn_can(call):
        return Backend.CUDNN
    if capability >= (8, 0) and _flash_can(call, capability):
        return Backend.FLASH_2
    return Backend.EFFICIENT if _efficient_can(call, capability) else Backend.MATH


def _capability(gpu: GpuSpec) -> tuple[int, int]:
    """``"8.6"`` -> (8, 6); (0, 0) for what is no CUDA device."""
    major, _, minor = gpu.compute_capability.partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (0, 0)


def _cudnn_can(call: AttentionCall) -> bool:
    sizes = call.key_size, call.value_size
    return call.dtype in HALF and max(sizes) <= _CUDNN_MOST and not any(size % 8 for size in sizes)


def _flash_can(call: AttentionCall, capability: tuple[int, int]) -> bool:
    """Heads whose size is no multiple of 8 are padded before."""
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
