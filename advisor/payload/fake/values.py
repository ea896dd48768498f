"""Values of CUDA tensors that follow from what the script put on the GPU.

Labels, lengths, masks and indices decide shapes and loop lengths: ``x[mask]``, ``lengths.max().item()``.
They come from the CPU, where they are real, so the operators on them are computed there, too. Parameters
stay unknown, and with them all that depends on them, but for indices that are chosen by it (see `choices`);
so does what is large.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, prod
from typing import cast

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_map

from ..composite import Args, Kwargs
from ..replacing import replace

# Which of several a script chooses by scores that are not computed, such as a router its experts.
#
# Each is taken to be chosen equally often: what trainings of routed models aim at, with a loss for it. So the
# sizes that follow from a choice, such as the tokens of an expert, add up to the real ones' total. And
# who generates text until it is long enough, or at its end, comes to an end.

aten = torch.ops.aten
HALF = "half of a mask is true"
ASSUMPTION = "what scores decide is chosen equally often"
# The place of the dimension among the arguments, None where it is the last.
_DIMENSION = {aten.topk.default: 2, aten.argmax.default: 1, aten.max.dim: 1, aten.multinomial.default: None}


def spread_choices(
    func: OpOverload, args: Args, kwargs: Kwargs, result: object
) -> tuple[torch.Tensor, torch.Tensor]:
    """The indices that an operator chose, and the same as a CPU tensor in which all are equally often."""
    chosen = cast("torch.Tensor", result[-1] if isinstance(result, (list, tuple)) else result)
    scores, place = cast("torch.Tensor", args[0]), _DIMENSION[func]
    given = args[place] if place is not None and place < len(args) else kwargs.get("dim")
    dim = -1 if given is None and func is not aten.argmax.default else cast("int | None", given)
    num_choices = scores.numel() if dim is None else scores.shape[dim] if scores.dim() else 1
    return chosen, _in_turn(chosen.shape, num_choices, dim if chosen.dim() == scores.dim() else None)


def _in_turn(shape: Sequence[int], num_choices: int, dim: int | None) -> torch.Tensor:
    """0, 1, 2, ... and from 0 again after the last choice, along the dimension: no row has one twice."""
    numbers = torch.arange(prod(shape), device="cpu").remainder(max(1, num_choices))
    if dim is None or not shape:
        return numbers.view(tuple(shape))
    rows = list(shape)
    chosen_of_row = rows.pop(dim)
    return numbers.view(*rows, chosen_of_row).movedim(-1, dim)


_MOST_INTEGERS, _MOST_FLOATS = 2**20, 2**13
_FROM_SHAPE = {
    "aten::arange", "aten::eye", "aten::full", "aten::full_like", "aten::new_full", "aten::new_ones",
    "aten::new_zeros", "aten::ones", "aten::ones_like", "aten::scalar_tensor", "aten::zeros",
    "aten::zeros_like",
}  # fmt: skip
# Scripts ask whether all is well far more often than whether all is lost.
ALL_IS_WELL = "values that are not computed pass checks: they are finite, and all() holds"
_IF_ALL_IS_WELL = {"aten::all": True, "aten::_is_all_true": True, "aten::isnan": False}
# What makes masks of such masks: torch.isfinite multiplies two.
_OF_MASKS = frozenset(("aten::mul", "aten::bitwise_and", "aten::bitwise_not", "aten::logical_not"))


def of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The tensor's value as a CPU tensor, None if it is not known (any more)."""
    entry = _entry(tensor)
    return None if entry is None else entry[0]


def remember(tensor: torch.Tensor, value: torch.Tensor, *, supposed: Sequence[str] = ()) -> None:
    """Keep the value until the tensor is written to, and the assumptions that it follows from."""
    if _is_small(tensor) and tensor.shape == value.shape:
        replace(tensor, _advisor_value=(value, _content(tensor), supposed))


def supposed_of(inputs: object) -> list[str]:
    """The assumptions that what is known of these tensors follows from."""
    entries = (_entry(tensor) for tensor in _tensors(inputs))
    return list(dict.fromkeys(text for entry in entries if entry is not None for text in entry[2]))


def on_cpu(source: torch.Tensor, dtype: torch.dtype) -> torch.Tensor | None:
    """A copy of what is known of the tensor, or of a mask half of which is true; None of another one.

    A large mask that holds nothing is None, too, since zeros can take no memory.
    """
    known, supposed = of(source), supposed_of(source)
    if known is None and source.dtype is torch.bool and source.numel() > 1:
        known, supposed = _supposed_mask(source)
    if known is None:
        return None
    result = known.to(dtype, copy=True)
    if supposed:
        replace(result.untyped_storage(), _advisor_supposed=supposed)
    return result


def _supposed_mask(source: torch.Tensor) -> tuple[torch.Tensor | None, list[str]]:
    hoped = _hoped_of(source)
    if hoped is not None:
        return torch.ones(source.shape, dtype=torch.bool) if hoped else None, [ALL_IS_WELL]
    if source.numel() > _MOST_INTEGERS:
        return None, []
    pattern = torch.zeros(source.numel(), dtype=torch.bool)
    pattern[1::2] = True
    return pattern.view(source.shape), [HALF]


# The shape of what they give follows from values.
SHAPED_BY_VALUES = frozenset({aten.nonzero.default, aten.index.Tensor, aten.masked_select.default})


def supposed_on_cpu(inputs: object) -> list[str]:
    """The assumptions that tensors that were copied from the GPU follow from."""
    storages = (tensor.untyped_storage() for tensor in _tensors(inputs))
    return [text for storage in storages for text in getattr(storage, "_advisor_supposed", ())]


def _entry(tensor: torch.Tensor) -> tuple[torch.Tensor, object, Sequence[str]] | None:
    entry = cast("tuple[torch.Tensor, object, Sequence[str]] | None", getattr(tensor, "_advisor_value", None))
    return entry if entry is not None and _content(tensor) is entry[1] else None


def _content(tensor: torch.Tensor) -> object:
    """Stands for what the storage holds: another object after each write.

    Torch's own versions miss writes: ``.data`` has a version of its own, operators on lists and collectives
    count none up, and tensors of inference mode have none.
    """
    storage = tensor.untyped_storage()
    content: object = getattr(storage, "_advisor_content", None)
    if content is None:
        content = object()
        replace(storage, _advisor_content=content)
    return content


def remember_copy(tensor: torch.Tensor, source: torch.Tensor) -> None:
    """Keep what was copied from the CPU, unless it is a parameter."""
    if not source.requires_grad and _is_small(tensor):
        remember(tensor, source.detach().to(tensor.dtype, copy=True))


def compute(func: OpOverload, args: Args, kwargs: Kwargs) -> object:
    """The operator's result on the CPU, None if an input is unknown or written to."""
    is_factory = func._schema.name in _FROM_SHAPE
    if not is_factory and not _can_follow(func, args):
        return None
    try:
        with torch.no_grad():
            return func(*tree_map(_on_cpu, args), **tree_map(_on_cpu, kwargs))
    except Exception:  # noqa: BLE001 - the GPU may know what the CPU does not
        return None


def follow(func: OpOverload, args: Args, kwargs: Kwargs, result: object) -> None:
    """Find out the values of the operator's result and keep them."""
    name = func._schema.name
    if func._schema.is_mutable:
        forget_written(func, args, kwargs)
    tensors = list(_tensors(result))
    if func in _DIMENSION and not _can_follow(func, args):
        remember(*spread_choices(func, args, kwargs, result), supposed=(ASSUMPTION,))
        return
    if not _are_small(tensors):
        _hope(name, func, args, tensors)
        return
    if "empty" in name or (name in _FROM_SHAPE and tensors[0].dtype.is_floating_point):
        return
    computed = compute(func, args, kwargs)
    if computed is not None:
        known_by = supposed_of((args, tuple(kwargs.values())))
        for tensor, value in zip(tensors, _tensors(computed), strict=True):
            remember(tensor, value, supposed=known_by)
    elif (hoped := _if_all_is_well(name, args)) is not None:
        value = torch.full(tensors[0].shape, hoped, dtype=torch.bool)
        remember(tensors[0], value, supposed=(ALL_IS_WELL,))


def _if_all_is_well(name: str, args: Args) -> bool | None:
    """What an operator gives of unknown values that are finite; None where that does not follow."""
    # torch.isfinite compares with the tensor itself and with infinity.
    if name == "aten::eq" and args[1] is args[0]:
        return True
    if name == "aten::ne" and isinstance(args[1], float) and args[1] == inf:
        return True
    return _IF_ALL_IS_WELL.get(name)


def _hope(name: str, func: OpOverload, args: Args, results: list[torch.Tensor]) -> None:
    """Of a large mask whose elements are all the same if all is well, keep which: the whole takes memory."""
    if not _is_mask(results):
        return
    hoped = _if_all_is_well(name, args)
    if hoped is None and name in _OF_MASKS:
        parts = [_hoped_of(value) if isinstance(value, torch.Tensor) else None for value in args]
        known = [torch.tensor(part, device="cpu") for part in parts if part is not None]
        hoped = bool(func(*known)) if len(known) == len(parts) else None
    if hoped is not None:
        replace(results[0], _advisor_hoped=(hoped, _content(results[0])))


def _hoped_of(mask: torch.Tensor) -> bool | None:
    entry = cast("tuple[bool, object] | None", getattr(mask, "_advisor_hoped", None))
    return entry[0] if entry is not None and _content(mask) is entry[1] else None


def _is_mask(results: list[torch.Tensor]) -> bool:
    return len(results) == 1 and results[0].dtype is torch.bool and results[0].layout is torch.strided


def may_be_known(func: OpOverload, result: object) -> bool:
    """Whether ``follow`` has anything to do for a result of this form."""
    tensors = list(_tensors(result))
    return func._schema.is_mutable or func in _DIMENSION or _are_small(tensors) or _is_mask(tensors)


def forget_written(func: OpOverload, args: Args, kwargs: Kwargs) -> None:
    """Forget the values of all tensors that the operator writes to."""
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            forget(args[position] if position < len(args) else kwargs.get(argument.name))


def forget(written: object) -> None:
    """Forget the values of these tensors and of all that share their storages."""
    for tensor in _tensors(written):
        if isinstance(tensor, FakeTensor) and tensor.layout is torch.strided:
            replace(tensor.untyped_storage(), _advisor_content=object())


def _can_follow(func: OpOverload, args: Args) -> bool:
    fakes = [tensor for tensor in _tensors(args) if isinstance(tensor, FakeTensor)]
    if not fakes or any(of(tensor) is None for tensor in fakes):
        return False
    return not func._schema.is_mutable and torch.Tag.nondeterministic_seeded not in func.tags


def _on_cpu(value: object) -> object:
    if isinstance(value, FakeTensor):
        known = of(value)
        # Factories look at shape and dtype alone.
        return torch.zeros(value.shape, dtype=value.dtype) if known is None else known
    return torch.device("cpu") if isinstance(value, torch.device) else value


def _is_small(tensor: torch.Tensor) -> bool:
    is_dense = isinstance(tensor, FakeTensor) and tensor.layout is torch.strided
    # Large floating-point tensors are data; large integers are tokens, labels and masks.
    most = _MOST_FLOATS if tensor.dtype.is_floating_point else _MOST_INTEGERS
    return is_dense and tensor.numel() <= most


def _are_small(tensors: list[torch.Tensor]) -> bool:
    return bool(tensors) and all(_is_small(tensor) for tensor in tensors)


def _tensors(values: object) -> Iterator[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _tensors(value)
