"""Tensors of main memory that nothing was written to: zeros that take no room.

Most scripts make a model on the CPU, cast it, copy it or load weights into it, and only then move it to the
GPU, where values do not matter. Written out, the weights of 7 billion parameters are 28 GB. So large empty
tensors are pages of an untouched mapping, and an operator that gives zeros for them gives such a
tensor again. The first real write makes one an ordinary tensor. Into weights neither random numbers nor
those of a file are written, nor what arithmetic makes of them: nothing that is recorded follows from them. If
the script reads one of these all the same, the zeros are an assumption that the trace states.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import cast

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor

from ..composite import Args, Kwargs
from ..replacing import replace

# A private mapping is read without taking memory, and promises none that a machine may not have.
_FLAGS = ("MAP_PRIVATE", "MAP_ANONYMOUS", "MAP_NORESERVE")
# Below it, ordinary zeros are faster and can be resized.
_SMALL_BYTES = 2**20
# What is right as zeros, the same of a parameter, and what the script would have written something to.
_ZEROS, _WEIGHT, _UNWRITTEN = "zeros", "weight", "unwritten"
_ASSUMPTION = "large weights in main memory, which the script reads, are zeros"

aten = torch.ops.aten
_LIKE = frozenset((aten.empty_like.default, aten.zeros_like.default))
_NEW = frozenset((aten.new_empty.default, aten.new_zeros.default, aten.new_empty_strided.default))
_OF_SHAPE = _LIKE | _NEW | {aten.empty.memory_format, aten.empty_strided.default, aten.zeros.default}
_COPIES = frozenset((aten._to_copy.default, aten.clone.default, aten.cat.default))
_ASK_DEVICE = _OF_SHAPE | {aten._to_copy.default}
# In place of zeros, they leave zeros: some by numbers, some by tensors of zeros.
_BY_NUMBERS = frozenset(
    ("aten::zero_", "aten::_foreach_zero_", "aten::mul_", "aten::_foreach_mul_", "aten::div_")
)
_BY_ZEROS = frozenset((
    "aten::copy_", "aten::_foreach_copy_", "aten::add_", "aten::sub_", "aten::lerp_", "aten::_foreach_add_",
    "aten::_foreach_sub_", "aten::_foreach_lerp_", "aten::mul_", "aten::_foreach_mul_",
))  # fmt: skip


def zeros(
    shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype, kind: str = _ZEROS
) -> torch.Tensor:
    """Zeros of this form: pages of a fresh mapping if they are many."""
    num_elements = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    mapping = None
    if math.prod(shape) * dtype.itemsize > _SMALL_BYTES or kind == _UNWRITTEN:
        # More than this machine can address: torch then says so in its own words.
        with suppress(OSError, OverflowError, ValueError):
            num_bytes = num_elements * dtype.itemsize
            # Windows has no such flags, and others not all of them.
            flags = sum(getattr(mmap, name, 0) for name in _FLAGS)
            mapping = mmap.mmap(-1, num_bytes, flags=flags) if flags else mmap.mmap(-1, num_bytes)
    if mapping is None:
        return torch.empty_strided(shape, stride, dtype=dtype).zero_()
    pages = torch.frombuffer(mapping, dtype=torch.uint8)
    replace(pages.untyped_storage(), _advisor_untouched=kind)
    return pages.view(dtype).as_strided(shape, stride)


def _kind(tensor: torch.Tensor) -> str | None:
    """What the tensor's storage is, None if someone wrote to it."""
    if tensor.layout is not torch.strided:
        return None
    return cast("str | None", getattr(tensor.untyped_storage(), "_advisor_untouched", None))


def become_weight(tensor: torch.Tensor) -> None:
    """A parameter was made of the tensor."""
    if tensor.nbytes > _SMALL_BYTES and _kind(tensor) == _ZEROS:
        replace(tensor.untyped_storage(), _advisor_untouched=_WEIGHT)


def leave_unwritten(tensor: torch.Tensor) -> bool:
    """Whether values that were to be written may stay away: where nothing else was written."""
    is_untouched = _kind(tensor) is not None
    if is_untouched:
        replace(tensor.untyped_storage(), _advisor_untouched=_UNWRITTEN)
    return is_untouched


def touch(tensor: torch.Tensor) -> None:
    """Someone may write to the tensor from now on."""
    if _kind(tensor) is not None:
        replace(tensor.untyped_storage(), _advisor_untouched=None)


def read(tensors: Iterable[torch.Tensor], assumptions: dict[str, None]) -> None:
    """The script reads the tensors: state what it finds instead of what it would have written."""
    if any(_kind(tensor) == _UNWRITTEN for tensor in tensors):
        assumptions[_ASSUMPTION] = None


def clone_storage(storage: torch.UntypedStorage) -> torch.UntypedStorage | None:
    """A copy that takes no room, None where the storage has values."""
    kind = getattr(storage, "_advisor_untouched", None)
    if kind is None:
        return None
    return zeros((storage.nbytes(),), (1,), torch.uint8, kind).untyped_storage()


def answer(func: OpOverload, args: Args, kwargs: Kwargs, assumptions: dict[str, None]) -> object:
    """The result of an operator on main memory that touches nothing; None if it has to run."""
    result = (_written if func._schema.is_mutable else _made)(func, args, kwargs)
    if result is None and not _is_view(func):
        read(_tensors((args, tuple(kwargs.values()))), assumptions)
        if func._schema.is_mutable:
            for tensor in _targets(func, args, kwargs):
                touch(tensor)
    return result


def _is_view(func: OpOverload) -> bool:
    infos = [argument.alias_info for argument in func._schema.returns]
    return any(info is not None and not info.is_write for info in infos)


def _made(func: OpOverload, args: Args, kwargs: Kwargs) -> torch.Tensor | None:
    if func in _OF_SHAPE:
        given = args[func in _NEW]
        size = given.shape if isinstance(given, torch.Tensor) else cast("Sequence[int]", given)
        # The dtype is not known yet; it has 16 bytes at most.
        return _like(func, args, kwargs, _ZEROS) if math.prod(size) * 16 > _SMALL_BYTES else None
    if func in _COPIES:
        kinds = {_kind(tensor) for tensor in _tensors(args)}
        kind = _UNWRITTEN if kinds == {_WEIGHT, _UNWRITTEN} else kinds.pop() if len(kinds) == 1 else None
        return None if kind is None else _like(func, args, kwargs, kind)
    return None


def _like(func: OpOverload, args: Args, kwargs: Kwargs, kind: str) -> torch.Tensor | None:
    """Zeros of the form of the operator's result; None if that is small or somewhere else."""
    device = kwargs.get("device") or next((tensor.device for tensor in _tensors(args)), "cpu")
    if torch.device(cast("str", device)).type != "cpu":
        return None
    if func in _ASK_DEVICE:
        kwargs = {**kwargs, "device": "meta"}
    form = func(*map(_on_meta, args), **kwargs)
    # A small copy of what was not written is read when someone reads the copy.
    is_small = form.nbytes <= _SMALL_BYTES and (kind != _UNWRITTEN or form.nbytes == 0)
    if form.layout is not torch.strided or is_small:
        return None
    return zeros(form.shape, form.stride(), form.dtype, kind)


def _on_meta(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return [_on_meta(item) for item in value] if isinstance(value, (list, tuple)) else value


def _written(func: OpOverload, args: Args, kwargs: Kwargs) -> object:
    written = list(_targets(func, args, kwargs))
    kinds = {_kind(tensor) for tensor in written}
    if kinds == {None}:
        return None
    name, given = func._schema.name, list(_tensors((args, tuple(kwargs.values()))))
    is_alone = len(given) == len(written)
    keeps = name in (_BY_NUMBERS if is_alone else _BY_ZEROS) and all(map(_kind, given))
    are_unwritten = _UNWRITTEN in map(_kind, given)
    if name == "aten::fill_":
        keeps = is_alone and args[1] == 0
    elif not keeps and kinds <= {_WEIGHT, _UNWRITTEN} and name.endswith("_"):
        keeps = are_unwritten = is_alone or name.endswith("copy_")
    if keeps:
        for tensor in written if are_unwritten else ():
            leave_unwritten(tensor)
        return args[0] if func._schema.returns else ()
    return None


def _targets(func: OpOverload, args: Args, kwargs: Kwargs) -> Iterator[torch.Tensor]:
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[position] if position < len(args) else kwargs.get(argument.name)
            yield from _tensors(given)


def _tensors(values: object) -> Iterator[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        if not isinstance(values, FakeTensor):
            yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _tensors(value)
