"""Scaled dot-product attention by the kernel that CUDA would choose.

C++ chooses by the device it knows, which is meta, and takes the plain mathematics: that stores the
attention matrix and doubles the memory of a GPT. On CUDA: flash attention for FP16 and BF16 without a
mask, else the memory-efficient kernel. Where the script allows neither but forbids the mathematics as well,
or cuDNN's kernel comes before it, the memory-efficient one stands in: all fused kernels take as much memory.
Which one another GPU takes follows from what the script allows (``recording/attention_choice.py``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from ...replacing import replace
from .autocast import to_autocast

if TYPE_CHECKING:
    from advisor.payload.session import Session

aten = torch.ops.aten
_HALF = (torch.float16, torch.bfloat16)
_CUDNN_FIRST_MAJORS = (9, 10)
_CUDNN_MOST = 128


def install(session: Session) -> None:
    """Wrap ``torch.nn.functional.scaled_dot_product_attention``."""
    functional = torch.nn.functional
    original: Callable[..., object] = functional.scaled_dot_product_attention

    @functools.wraps(original)
    def attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> object:
        if not _is_on_gpu(session, query) or query.dim() != 4:
            return original(
                query,
                key,
                value,
                attn_mask,
                dropout_p,
                is_causal,
                scale=scale,
                enable_gqa=enable_gqa,
            )
        query, key, value = to_autocast(query, key, value)
        if attn_mask is None and _flash_can(session, query, key, value):
            # It reads a head of the keys for several of the query; the other kernels want copies.
            return aten._scaled_dot_product_flash_attention(
                query, key, value, dropout_p, is_causal, False, scale=scale
            )[0]
        if enable_gqa:
            key, value = _repeat_heads(query, key), _repeat_heads(query, value)
        if _fused_can(session, query, value):
            return _efficient(query, key, value, attn_mask, dropout_p, is_causal, scale)
        # The plain mathematics, which C++ takes for ours anyway.
        return original(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)

    replace(functional, scaled_dot_product_attention=attention)


def _is_on_gpu(session: Session, tensor: torch.Tensor) -> bool:
    # C++ asks a DTensor for its device, too, and its mathematics would mix plain tensors with it.
    return session.is_fake(getattr(tensor, "_local_tensor", tensor))


def _repeat_heads(query: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    repeats = query.size(-3) // tensor.size(-3)
    return tensor if repeats == 1 else tensor.repeat_interleave(repeats, -3)


def _flash_can(session: Session, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    head = query.size(-1)
    return (
        session.gpu.major >= 8
        and torch.backends.cuda.flash_sdp_enabled()
        and query.dtype in _HALF
        and head == key.size(-1) == value.size(-1)
        and head <= 256
        and head % 8 == 0
    )


def _fused_can(session: Session, query: torch.Tensor, value: torch.Tensor) -> bool:
    if query.dtype is torch.float64:
        return False
    cuda = torch.backends.cuda
    if cuda.mem_efficient_sdp_enabled() or not cuda.math_sdp_enabled():
        return True
    sizes = query.size(-1), value.size(-1)
    return (
        session.gpu.major in _CUDNN_FIRST_MAJORS
        and cuda.cudnn_sdp_enabled()
        and query.dtype in _HALF
        and max(sizes) <= _CUDNN_MOST
        and not any(size % 8 for size in sizes)
    )


def _efficient(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> object:
    if mask is not None:
        mask = _additive(mask, query.dtype)
        mask = mask.expand(*query.shape[:3], key.size(2))
    keeps_sums = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, mask, keeps_sums, dropout_p, is_causal, scale=scale
    )[0]


def _additive(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if mask.dtype is not torch.bool:
        return mask.to(dtype)
    zeros = torch.zeros_like(mask, dtype=dtype)
    return zeros.masked_fill(mask.logical_not(), float("-inf"))
