"""Sparse COO tensors on the pretended GPU: each is two dense ones, its indices and its values.

torch's own rules for tensors without memory know no sparse kernel and lose the entries: the gradient of an
embedding would be empty, so an optimizer would skip it, and a sparse matrix would be multiplied as if dense.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, cast

import torch

if TYPE_CHECKING:
    from torch._ops import OpOverload

    from ..dispatch import Args
    from .making import Maker

aten = torch.ops.aten
_IS_SPARSE = 9  # which argument of _embedding_bag_backward says so
_COMPRESSED = frozenset((torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc))
_COMPRESSING = frozenset(
    (
        aten._to_sparse_csr.default, aten._to_sparse_csc.default, aten._to_sparse_bsr.default,
        aten._to_sparse_bsc.default,
    )
)  # fmt: skip


class CompressedLayoutError(NotImplementedError):
    """The script wants a compressed sparse matrix on the GPU; torch's rules would take it for a dense one."""

    def __init__(self) -> None:
        super().__init__(
            "compressed sparse layouts (CSR, CSC, BSR, BSC) are not supported on the pretended GPU"
        )


def refuse_compressed(func: OpOverload, layout: object) -> None:
    """Stop at an operator that makes a compressed sparse tensor.

    Args:
        func: the operator.
        layout: that was asked for, None for no special one.

    Raises:
        CompressedLayoutError: it does.
    """
    if func in _COMPRESSING or layout in _COMPRESSED:
        raise CompressedLayoutError


def is_sparse(value: object) -> bool:
    """Whether it is a sparse COO tensor."""
    return isinstance(value, torch.Tensor) and value.layout is torch.sparse_coo


def rule_of(func: OpOverload, args: Args) -> Callable[..., object] | None:
    """What makes the result of an operator on sparse tensors, None where torch's own rule does."""
    if func is aten._embedding_bag_backward.default:
        return _embedding_bag_backward if args[_IS_SPARSE] else None
    rule = _RULES.get(func)
    return rule if rule is not None and any(map(is_sparse, args)) else None


def on_gpu(mode: Maker, source: torch.Tensor, copy: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """A sparse tensor of the CPU on the pretended GPU.

    Args:
        mode: makes the tensor.
        source: the CPU's.
        copy: brings a dense tensor to the GPU.
    """
    is_coalesced = source.is_coalesced()
    return _made(mode, copy(source._indices()), copy(source._values()), source.shape, is_coalesced)


def _made(
    mode: Maker,
    indices: torch.Tensor,
    entries: torch.Tensor,
    shape: Sequence[int],
    is_coalesced: bool = False,
) -> torch.Tensor:
    make = aten._sparse_coo_tensor_with_dims_and_tensors.default
    dims = (indices.shape[0], entries.dim() - 1)
    form = {"dtype": entries.dtype, "layout": torch.sparse_coo, "device": indices.device}
    args = (*dims, list(shape), indices, entries)
    made = mode.pretend(make, (), args, {**form, "is_coalesced": is_coalesced})
    return cast("torch.Tensor", made)


def _like(mode: Maker, tensor: torch.Tensor) -> torch.Tensor:
    return mode.empty(tensor.shape, tensor.dtype)


def _clone(mode: Maker, source: torch.Tensor, *_: object) -> torch.Tensor:
    parts = _like(mode, source._indices()), _like(mode, source._values())
    return _made(mode, *parts, source.shape, source.is_coalesced())


def _map(mode: Maker, source: torch.Tensor, *_: object) -> torch.Tensor:
    """The same entries with other values."""
    return _made(mode, source._indices(), _like(mode, source._values()), source.shape, source.is_coalesced())


def _coalesce(mode: Maker, source: torch.Tensor) -> torch.Tensor:
    """Entries at the same place become one, of which there are no more than places."""
    indices, entries = source._indices(), source._values()
    mode.assumptions["entries of a sparse tensor are at different places"] = None
    count = min(indices.shape[1], prod(source.shape[: indices.shape[0]]))
    kept = mode.empty((indices.shape[0], count), indices.dtype)
    return _made(mode, kept, mode.empty((count, *entries.shape[1:]), entries.dtype), source.shape, True)


def _transposed(mode: Maker, source: torch.Tensor, *_: object) -> torch.Tensor:
    return _made(mode, _like(mode, source._indices()), source._values(), tuple(reversed(source.shape)))


def _add(mode: Maker, left: torch.Tensor, right: torch.Tensor, *_: object) -> torch.Tensor:
    """Entries of both; onto a dense tensor all of it."""
    if not (is_sparse(left) and is_sparse(right)):
        return _like(mode, left if is_sparse(right) else right)
    count = left._nnz() + right._nnz()
    indices, entries = left._indices(), left._values()
    more = mode.empty((indices.shape[0], count), indices.dtype)
    return _made(mode, more, mode.empty((count, *entries.shape[1:]), entries.dtype), left.shape)


def _add_in_place(mode: Maker, left: torch.Tensor, *_: object) -> torch.Tensor:  # noqa: ARG001
    return left


def _masked(mode: Maker, source: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    entries = mode.empty(mask._values().shape, source.dtype)
    return _made(mode, mask._indices(), entries, source.shape, mask.is_coalesced())


def _product(mode: Maker, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return mode.empty((left.shape[0], right.shape[1]), left.dtype)


def _product_with_addend(
    mode: Maker, addend: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *_: object
) -> torch.Tensor:
    return mode.empty((left.shape[0], right.shape[1]), addend.dtype)


def _to_dense(mode: Maker, source: torch.Tensor, *_: object) -> torch.Tensor:
    return mode.empty(source.shape, source.dtype)


def _embedding_bag_backward(
    mode: Maker, gradient: torch.Tensor, indices: torch.Tensor, *others: object
) -> torch.Tensor:
    """A row for each look-up."""
    num_weights, width = cast("int", others[4]), gradient.shape[1]
    rows = mode.empty((indices.numel(), width), gradient.dtype)
    return _made(mode, indices.reshape(1, -1), rows, (num_weights, width))


_RULES: dict[OpOverload, Callable[..., object]] = {
    aten.clone.default: _clone,
    aten._coalesce.default: _coalesce,
    aten.t.default: _transposed,
    aten.transpose.int: _transposed,
    aten.neg.default: _map,
    aten.mul.Tensor: _map,
    aten.mul.Scalar: _map,
    aten.div.Tensor: _map,
    aten.div.Scalar: _map,
    aten.add.Tensor: _add,
    aten.sub.Tensor: _add,
    aten.add_.Tensor: _add_in_place,
    aten.sub_.Tensor: _add_in_place,
    aten.sparse_mask.default: _masked,
    aten.mm.default: _product,
    aten._sparse_addmm.default: _product_with_addend,
    aten.addmm.default: _product_with_addend,
    aten._to_dense.default: _to_dense,
}
