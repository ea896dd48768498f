"""Communication between processes: counted, and answered as if all ranks held what this one holds.

The dispatch mode sees every way to communicate (``dist.all_reduce``, the buckets of DistributedDataParallel,
the gathers of FSDP2, redistributed DTensors) as one of torch's few collective operators.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map

from ..composite import Args, Kwargs, Maker, Types
from ..protocol import Communication
from . import values
from .patches.cuda_device import is_on_main_stream

# Values of what collectives write: those of a group in which each rank holds what this one holds.
#
# Torch's fake group copies what is gathered and leaves what is reduced, and does not announce that it
# wrote. Sizes and counts go this way, so wrong ones lead to wrong shapes.

# ReduceOp.AVG, MIN and MAX of equal values are those values.
_SUM = 0
_NAMES = {"sum": _SUM, "avg": 1, "min": 3, "max": 4}
_COMPUTED = (None, *_NAMES.values())


def run_equal_ranks(func: OpOverload, args: Args, kwargs: Kwargs, num_ranks: int) -> object:
    """The operator on CPU tensors."""
    result = func(*args, **kwargs)
    written = args[0] if func.namespace == "c10d" else result
    if _operation(func, args, kwargs) == _SUM:
        for tensor in _tensors(written):
            if tensor.dtype is not torch.bool:
                tensor.data.mul_(num_ranks)
    return result


def follow_equal_ranks(func: OpOverload, args: Args, kwargs: Kwargs, num_ranks: int) -> None:
    """Keep the values that a ``c10d`` operator gives its outputs where they are known, forget the others."""
    computed = None
    is_known = all(values.of(tensor) is not None for tensor in _tensors(args))
    if is_known and _operation(func, args, kwargs) in _COMPUTED:
        on_cpu = tree_map(_copied_value, args)
        with contextlib.suppress(Exception):
            run_equal_ranks(func, on_cpu, kwargs, num_ranks)
            computed = _tensors(on_cpu[0])
    written = _tensors(args[0])
    values.forget(written)
    for tensor, value in zip(written, computed or (), strict=False):
        values.remember(tensor, value)


def _operation(func: OpOverload, args: Args, kwargs: Kwargs) -> int | None:
    operation = _named(func, args, kwargs).get("reduce_op")
    if isinstance(operation, str):
        return _NAMES.get(operation.lower(), -1)
    return None if operation is None else int(operation.op())


def _copied_value(leaf: object) -> object:
    known = values.of(leaf) if isinstance(leaf, FakeTensor) else None
    return leaf if known is None else known.clone()


_NAMESPACES = ("c10d", "_c10d_functional", "_c10d_functional_autograd", "_dtensor")
# Each stands in the names of its operators, underscores aside; "reduce" is a part of two others.
_KINDS = (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter",
    "send", "recv",
)  # fmt: skip

_MOST = 0.5  # of the bytes: norms and flags are waited for as well


class Collectives:
    """Runs collective operators of the script and counts those of the current span."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int, int], int] = {}
        self._awaited_bytes = self._reduced_bytes = 0
        self._owned: dict[OpOverload, bool] = {}

    def start_span(self) -> None:
        self._counts = {}
        self._awaited_bytes = self._reduced_bytes = 0

    @property
    def awaits_reductions(self) -> bool:
        """Whether the span's all-reduces were waited for, rather than left to go on beside other work."""
        return self._awaited_bytes > _MOST * self._reduced_bytes

    def entries(self) -> list[Communication]:
        """One entry for each kind, size and group size, in the order in which each was first seen."""
        return [
            {"kind": kind, "num_bytes": num_bytes, "world_size": world_size, "count": count}
            for (kind, num_bytes, world_size), count in self._counts.items()
        ]

    def owns(self, func: OpOverload) -> bool:
        owned = self._owned.get(func)
        if owned is None:
            owned = self._owned[func] = func.namespace in _NAMESPACES
        return owned

    def run(self, mode: Maker, func: OpOverload, types: Types, args: Args, kwargs: Kwargs) -> object:
        """The operator's result in shape; known values become what a group of equal ranks would give."""
        tensors = _tensors((args, kwargs))
        is_real = not any(tensor.device.type == "cuda" for tensor in tensors)
        if func.namespace == "c10d":
            act = run_equal_ranks if is_real else follow_equal_ranks
            act(func, args, kwargs, _group_size(func, args, kwargs))
            result = _done(func, args[0])
        elif is_real:
            num_ranks = 1 if _kind(func) is None else _group_size(func, args, kwargs)
            result = run_equal_ranks(func, args, kwargs, num_ranks)
        else:
            result = mode.pretend(func, types, args, kwargs)
        self._count(func, args, kwargs, [*tensors, *_tensors(result)])
        return result

    def _count(self, func: OpOverload, args: Args, kwargs: Kwargs, tensors: list[torch.Tensor]) -> None:
        kind = _kind(func)
        if kind is None:
            return
        # A gather's output and a scatter's input hold the whole, the other side one rank's share.
        given = (*args, *kwargs.values())
        largest = max((_num_bytes(value) for value in given), default=0)
        largest = max(largest, _num_bytes(tensors[len(_tensors((args, kwargs))) :]))
        if kind == "all_reduce" and func.namespace == "c10d":
            self._reduced_bytes += largest
            is_async = _named(func, args, kwargs).get("async_op", True)
            self._awaited_bytes += 0 if is_async or not is_on_main_stream() else largest
        key = (kind, largest, _group_size(func, args, kwargs))
        self._counts[key] = self._counts.get(key, 0) + 1


def _kind(func: OpOverload) -> str | None:
    name = func._schema.name.rpartition("::")[2].replace("_", "")
    return next((kind for kind in _KINDS if kind.replace("_", "") in name), None)


def _done(func: OpOverload, output: object) -> object:
    """What a c10d operator returns: its outputs and a finished Work, whose future holds them."""
    if not func._schema.returns:
        return None
    # FakeWork's future holds nothing, which DistributedDataParallel and its hooks refuse.
    future: torch.futures.Future[object] = torch.futures.Future()
    future.set_result(list(output) if isinstance(output, (list, tuple)) else [output])
    distributed: Any = torch._C._distributed_c10d
    work = distributed._create_work_from_future(future).boxed()
    return work if len(func._schema.returns) == 1 else (output, work)


def _named(func: OpOverload, args: Args, kwargs: Kwargs) -> dict[str, Any]:
    names = [argument.name for argument in func._schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _group_size(func: OpOverload, args: Args, kwargs: Kwargs) -> int:
    distributed: Any = torch._C._distributed_c10d
    named = _named(func, args, kwargs)
    if "process_group" in named:
        return int(distributed.ProcessGroup.unbox(named["process_group"]).size())
    return int(distributed._resolve_process_group(named["group_name"]).size())


def _tensors(value: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _num_bytes(value: object) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in _tensors(value))
