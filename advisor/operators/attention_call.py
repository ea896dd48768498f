"""One call of fused attention: what decides its kernel and that kernel's time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from advisor.core.values import Op, TensorSpec
from advisor.operators.family import base_name

# PyTorch's names of its kernels begin with it, forward and backward.
_FUSED = "_scaled_dot_product_"
# How kernels of FlashAttention 3 are called: instructions of compute capability 9.0 by the class's name.
_FLASH_3_KERNEL = "flashattn"
_SM90 = "sm90"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCall:
    """Sizes of query [B, H, Q, D], key [B, G, K, D] and value [B, G, K, V].

    Attributes:
        batch_heads: B x H; several of them share a head of the key.
        queries: Q.
        keys: K.
        key_size: D.
        value_size: V.
        has_mask: a tensor says which scores count.
        is_causal: the kernel hides keys after the query, without a mask.
        is_backward: gradients of all three.
        is_trained: its backward follows, as far as the call tells.
        has_dropout: of the scores.
        ran_flash_3: it was measured, and ran FlashAttention 3.
        num_bytes: each tensor once.
        allowed: backends that the script allows, by PyTorch's names of their switches; None if all.
        prefers: whether PyTorch tries them in this order.
    """

    batch_heads: int
    queries: int
    keys: int
    key_size: int
    value_size: int
    dtype: str
    has_mask: bool
    is_causal: bool
    is_backward: bool
    is_trained: bool
    has_dropout: bool
    ran_flash_3: bool
    num_bytes: int
    allowed: tuple[str, ...] | None = None
    prefers: bool = False


def attention_call(op: Op) -> AttentionCall | None:
    """What a trace holds of a call; None where its tensors are not [B, H, length, size], or are empty."""
    name = base_name(op.name)
    is_backward = name.endswith("_backward")
    tensors = op.inputs[1:] if is_backward else op.inputs
    if not name.startswith(_FUSED) or len(tensors) < 3:
        return None
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
        ran_flash_3=any(_is_flash_3(kernel.name) for kernel in op.kernels),
        num_bytes=op.bytes,
        allowed=_allowed(op),
        prefers=op.attributes.get("prefers_backends") is True,
    )


def _allowed(op: Op) -> tuple[str, ...] | None:
    names = op.attributes.get("backends")
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, tuple) else None


def _has_mask(
    others: Sequence[TensorSpec], query: TensorSpec, value: TensorSpec, *, is_backward: bool
) -> bool:
    """Whether one of the others has the scores' sizes; a backward pass is given the output, too."""
    (queries, _), (keys, size) = query.shape[-2:], value.shape[-2:]
    alike = sum(len(tensor.shape) > 1 and tensor.shape[-2:] == (queries, keys) for tensor in others)
    return alike > (is_backward and keys == size)


def _is_flash_3(kernel_name: str) -> bool:
    name = kernel_name.lower()
    return _FLASH_3_KERNEL in name and _SM90 in name
