"""Values of what collectives write: those of a group in which each rank holds what this one holds.

Torch's fake group copies what is gathered and leaves what is reduced, and tells nobody that it
wrote. Sizes and counts go this way, so wrong ones lead to wrong shapes.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map

from . import values

if TYPE_CHECKING:
    from torch._ops import OpOverload

    from ..dispatch import Args, Kwargs

# ReduceOp.AVG, MIN and MAX of equal values are those values.
_SUM = 0
_NAMES = {"sum": _SUM, "avg": 1, "min": 3, "max": 4}
_COMPUTED = (None, *_NAMES.values())


def run(func: OpOverload, args: Args, kwargs: Kwargs, num_ranks: int) -> object:
    """The operator on CPU tensors."""
    result = func(*args, **kwargs)
    written = args[0] if func.namespace == "c10d" else result
    if _operation(func, args, kwargs) == _SUM:
        for tensor in _tensors(written):
            if tensor.dtype is not torch.bool:
                tensor.data.mul_(num_ranks)
    return result


def follow(func: OpOverload, args: Args, kwargs: Kwargs, num_ranks: int) -> None:
    """Keep the values that a ``c10d`` operator gives its outputs where they are known, forget the others."""
    computed = None
    is_known = all(values.of(tensor) is not None for tensor in _tensors(args))
    if is_known and _operation(func, args, kwargs) in _COMPUTED:
        on_cpu = tree_map(_copied_value, args)
        with contextlib.suppress(Exception):
            run(func, on_cpu, kwargs, num_ranks)
            computed = _tensors(on_cpu[0])
    written = _tensors(args[0])
    values.forget(written)
    for tensor, value in zip(written, computed or (), strict=False):
        values.remember(tensor, value)


def _operation(func: OpOverload, args: Args, kwargs: Kwargs) -> int | None:
    names = [argument.name for argument in func._schema.arguments]
    operation: Any = {**dict(zip(names, args, strict=False)), **kwargs}.get("reduce_op")
    if isinstance(operation, str):
        return _NAMES.get(operation.lower(), -1)
    return None if operation is None else int(operation.op())


def _copied_value(leaf: object) -> object:
    known = values.of(leaf) if isinstance(leaf, FakeTensor) else None
    return leaf if known is None else known.clone()


def _tensors(nested: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(nested) if isinstance(leaf, torch.Tensor)]
