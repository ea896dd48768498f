"""Sparse COO tensors on the pretended GPU: each is two dense ones, its indices and its values.

torch's own rules for tensors without memory know no sparse kernel and lose the entries: the gradient of an
embedding would be empty, so an optimizer would skip it, and a sparse matrix would be multiplied as if dense.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import cast

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves

from ..composite import Args, Kwargs, Maker

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
    """Stop at an operator that makes a compressed sparse tensor. Raises CompressedLayoutError."""
    if func in _COMPRESSING or layout in _COMPRESSED:
        raise CompressedLayoutError


def is_sparse(value: object) -> bool:
    """Whether it is a sparse COO tensor."""
    return isinstance(value, torch.Tensor) and value.layout is torch.sparse_coo


# Brings a dense tensor to the other side.
_Copy = Callable[[torch.Tensor, "Kwargs"], torch.Tensor]


def refuse(func: OpOverload, *values: object) -> None:
    """Code that knows dense tensors only would lose the entries of these.

    Raises NotImplementedError: one of the operator's operands or results is sparse.
    """
    if any(map(is_sparse, tree_leaves(values))):
        name = func._schema.name
        raise NotImplementedError(f"what {name} does with sparse tensors on a GPU is not known") from None


def rule_of(func: OpOverload, args: Args, kwargs: Kwargs) -> Callable[..., object] | None:
    """What makes the result of an operator on sparse tensors, None where torch's own rule does."""
    if func is aten._embedding_bag_backward.default:
        return _embedding_bag_backward if args[_IS_SPARSE] else None
    if not any(map(is_sparse, args)):
        return None
    if func is aten._to_copy.default:
        return partial(_cast, cast("torch.dtype | None", kwargs.get("dtype")))
    rule = _RULES.get(func)
    if rule is None and torch.Tag.pointwise in func.tags and is_sparse(args[0]):
        return (lambda _, source, *__: source) if func._schema.is_mutable else _map
    return rule


def on_gpu(mode: Maker, source: torch.Tensor, dtype: torch.dtype, copy: _Copy) -> torch.Tensor:
    """A sparse tensor of the CPU on the pretended GPU, its entries in this dtype."""
    parts = copy(source._indices(), {}), copy(source._values(), {"dtype": dtype})
    return _made(mode, *parts, source.shape, source.is_coalesced())


def on_cpu(source: torch.Tensor, dtype: torch.dtype, copy: _Copy) -> torch.Tensor:
    """A sparse tensor of the pretended GPU on the CPU, which is not to merge unknown entries."""
    parts = copy(source._indices(), {}), copy(source._values(), {"dtype": dtype})
    return torch.sparse_coo_tensor(*parts, source.shape, is_coalesced=True, check_invariants=False)


def _made(
    mode: Maker, indices: torch.Tensor, entries: torch.Tensor, shape: Sequence[int],
    is_coalesced: bool = False,
) -> torch.Tensor:  # fmt: skip
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
    return _cast(source.dtype, mode, source)


def _scaled(mode: Maker, left: torch.Tensor, right: object) -> torch.Tensor:
    """A factor may stand on either side."""
    return _map(mode, left if is_sparse(left) else cast("torch.Tensor", right))


def _cast(dtype: torch.dtype | None, mode: Maker, source: torch.Tensor) -> torch.Tensor:
    entries = mode.empty(source._values().shape, dtype or source.dtype)
    return _made(mode, source._indices(), entries, source.shape, source.is_coalesced())


def _detach(mode: Maker, source: torch.Tensor) -> torch.Tensor:
    return _made(mode, source._indices(), source._values(), source.shape, source.is_coalesced())


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
    if not (is_sparse(left) and is_sparse(right)):
        return _like(mode, left if is_sparse(right) else right)
    count = left._nnz() + right._nnz()
    indices, entries = left._indices(), left._values()
    more = mode.empty((indices.shape[0], count), indices.dtype)
    return _made(mode, more, mode.empty((count, *entries.shape[1:]), entries.dtype), left.shape)


def _add_in_place(mode: Maker, left: torch.Tensor, right: torch.Tensor, *_: object) -> torch.Tensor:
    if is_sparse(left):
        mode.pretend(aten.copy_sparse_to_sparse_.default, (), (left, _add(mode, left, right)), {})
    return left


def _masked(mode: Maker, source: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    entries = mode.empty(mask._values().shape, source.dtype)
    return _made(mode, mask._indices(), entries, source.shape, mask.is_coalesced())


def _product(mode: Maker, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    if is_sparse(left) and is_sparse(right):
        refuse(aten.mm.default, left)  # how many entries come of it depends on where they are
    return mode.empty((*left.shape[:-1], *right.shape[1:]), left.dtype)


def _embedding_bag_backward(
    mode: Maker, gradient: torch.Tensor, indices: torch.Tensor, *others: object
) -> torch.Tensor:
    num_weights, width = cast("int", others[4]), gradient.shape[1]
    rows = mode.empty((indices.numel(), width), gradient.dtype)
    return _made(mode, indices.reshape(1, -1), rows, (num_weights, width))


_RULES: dict[OpOverload, Callable[..., object]] = {
    aten.clone.default: _clone,
    aten._coalesce.default: _coalesce,
    aten.t.default: _transposed,
    aten.transpose.int: _transposed,
    aten.detach.default: _detach,
    aten.mul.Tensor: _scaled,
    aten.add.Tensor: _add,
    aten.sub.Tensor: _add,
    aten.add_.Tensor: _add_in_place,
    aten.sub_.Tensor: _add_in_place,
    aten.sparse_mask.default: _masked,
    aten.mm.default: _product,
    aten.mv.default: _product,
    **dict.fromkeys(
        (aten._sparse_addmm.default, aten.addmm.default),
        lambda mode, addend, left, right, *_: mode.empty((left.shape[0], right.shape[1]), addend.dtype),
    ),
    **dict.fromkeys(
        (aten.norm.Scalar, aten.norm.ScalarOpt_dim), lambda mode, source, *_: mode.empty((), source.dtype)
    ),
    aten._to_dense.default: lambda mode, source, *_: mode.empty(source.shape, source.dtype),
}
