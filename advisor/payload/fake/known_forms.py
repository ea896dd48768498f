"""Results of operators that FakeTensorMode has worked out before for inputs of the same form.

A training script repeats itself: the same few hundred calls, in each micro-step and each evaluation batch.
FakeTensorMode keeps what it worked out, but describing the inputs to its cache and building a tensor from
it took two thirds of a profile's time. Here both take a few microseconds. What cannot be built exactly as
FakeTensorMode built it (the first time, both are compared) stays with FakeTensorMode.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, cast

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from ..composite import Args, Kwargs, Types
from ..recording.recorder import Description
from . import values
from .gpu import CUDA

# Numbers that change with each step, such as a learning rate, make forms that never come back.
_MOST_FORMS = 50_000
_PLAIN_VALUES = frozenset((
    bool, int, float, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format,
))  # fmt: skip
# Of others it is unknown what their results follow from.
_NAMESPACES = ("aten", "bitsandbytes")
# Their results follow from more than the form of their inputs.
_OTHER_TAGS = (
    torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape, torch.Tag.inplace_view,
)  # fmt: skip
# The patched ones of `torch` and `Tensor` have more to do.
_empty_strided = torch._C._VariableFunctions.empty_strided
_make_subclass = torch._C.TensorBase._make_subclass
_META = torch.device("meta")

Work = Callable[["OpOverload", "Types", "Args", "Kwargs"], object]
Form = tuple[object, ...]
_Places = defaultdict[int, list[int]]


class _Given(NamedTuple):
    """An input that is returned."""

    given: int


class _Made(NamedTuple):
    """A tensor of this form, in the storage of an input if one is given."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    offset: int
    given: int | None


class KnownCall:
    """What follows from the form of a call alone."""

    __slots__ = ("container", "described", "has_values", "is_described", "parts")

    def __init__(
        self, container: Callable[[list[object]], object] | None, parts: tuple[object, ...], *,
        has_values: bool,
    ) -> None:  # fmt: skip
        self.container = container
        """Of the results, None for one alone."""
        self.parts = parts
        self.has_values = has_values
        """The values of the results may be known; then they follow from more than the form."""
        self.described: Description | None = None
        """The recorder's description, None where it counts no such call or was not asked yet."""
        self.is_described = False


class KnownForms:
    """Answers calls of known form, and learns from the others."""

    def __init__(self, mode: FakeTensorMode, work: Work) -> None:
        self.is_used = False
        """False sends all calls to ``work``; ``shortcuts`` of the job switches it on."""
        self._mode = mode
        self._work = work
        self._calls: dict[Form, KnownCall] = {}
        self._follows_form: dict[OpOverload, bool] = {}
        # As FakeTensor does: some C++ code asks where the memory is and needs no answer.
        self._guard_memory = (
            torch._C._set_warn_deprecated_on_mutable_data_ptr
            if mode._allow_unsafe_data_ptr_access
            else torch._C._set_throw_on_mutable_data_ptr
        )
        self._plain = dict(vars(FakeTensor(mode, torch.empty(0, device="meta"), CUDA)))

    def answer(
        self, func: OpOverload, types: Types, args: Args, kwargs: Kwargs
    ) -> tuple[object, KnownCall | None]:
        """The operator's result, and what was known of the call, None for a new one."""
        tensors: list[FakeTensor] = []
        form = self._form(func, args, kwargs, tensors)
        if form is None:
            return self._work(func, types, args, kwargs), None
        known = self._calls.get(form)
        if known is not None:
            made = [self._part(part, tensors) for part in known.parts]
            return (made[0] if known.container is None else known.container(made)), known
        result = self._work(func, types, args, kwargs)
        # An operator that changed the form of its inputs does more than we could do in its place.
        if len(self._calls) < _MOST_FORMS and self._form(func, args, kwargs, []) == form:
            is_many = type(result) is list or type(result) is tuple
            results = cast("Sequence[object]", result) if is_many else (result,)
            # At which places a tensor is, by its id, and those that share a storage, by its address.
            places: _Places = defaultdict(list)
            for index, tensor in enumerate(tensors):
                places[id(tensor)].append(index)
                places[tensor.untyped_storage()._cdata].append(index)
            parts = tuple(self._learnt(value, tensors, places) for value in results)
            if all(part is not NotImplemented for part in parts):
                has_values = values.may_be_known(func, result)
                self._calls[form] = KnownCall(type(result) if is_many else None, parts, has_values=has_values)
        return result, None

    def _form(self, func: OpOverload, args: Args, kwargs: Kwargs, tensors: list[FakeTensor]) -> Form | None:
        """All that the result follows from, and the tensors among the inputs; None if there is more."""
        follows = self._follows_form.get(func)
        if follows is None:
            follows = self._follows_form[func] = _follows_form(func)
        if not (follows and self.is_used):
            return None
        form: list[object] = [func, torch.get_default_dtype(), torch.is_inference_mode_enabled()]
        if not self._describe(args, form, tensors):
            return None
        for name, value in kwargs.items():
            form.append(name)
            if not self._describe((value,), form, tensors):
                return None
        return tuple(form)

    def _describe(self, inputs: Iterable[object], form: list[object], tensors: list[FakeTensor]) -> bool:
        for value in inputs:
            kind = type(value)
            if type(value) is FakeTensor:
                if not self._is_plain(value):
                    return False
                tensors.append(value)
                form += (
                    value.shape, value.stride(), value.dtype, value.storage_offset(),
                    value.requires_grad, value.is_inference(),
                )  # fmt: skip
            elif kind in _PLAIN_VALUES:
                form += (kind, value)  # 1 equals 1.0 and True
            elif type(value) is list or type(value) is tuple:
                form += (kind, len(value))
                if not self._describe(value, form, tensors):
                    return False
            else:
                return False
        return True

    def _is_plain(self, tensor: FakeTensor) -> bool:
        # A comparison of devices is slow, and FakeTensor makes a new one of each.
        is_ours = tensor.fake_mode is self._mode and tensor.constant is None
        is_dense = tensor.layout is torch.strided and not (tensor.is_conj() or tensor.is_neg())
        return is_ours and is_dense and tensor._fake_device.type == "cuda" and not tensor.is_quantized

    def _part(self, part: object, tensors: list[FakeTensor]) -> object:
        if isinstance(part, _Made):
            return self._make(part, tensors)
        return tensors[part.given] if isinstance(part, _Given) else part

    def _make(self, form: _Made, tensors: list[FakeTensor]) -> FakeTensor:
        shape, stride, dtype, offset, given = form
        with torch._C._DisableTorchDispatch():
            plain = _empty_strided(shape, stride, dtype=dtype, device=_META)
            if given is not None:
                plain.set_(tensors[given].untyped_storage(), offset, shape, stride)
            # On the C++ side the tensor stays on meta, see patches/subclass.py.
            made = _make_subclass(
                FakeTensor, plain, False, dispatch_device=False, device_for_backend_keys=CUDA
            )
            self._guard_memory(made)
        vars(made).update(self._plain)
        return made

    def _learnt(self, value: object, tensors: list[FakeTensor], places: _Places) -> object:
        if value is None or type(value) is int:
            return value
        if type(value) is not FakeTensor or not self._is_plain(value):
            return NotImplemented
        given = places[id(value)]
        if given:
            return _Given(given[0]) if len(given) == 1 else NotImplemented
        shared = places[value.untyped_storage()._cdata]
        if len(shared) > 1:
            return NotImplemented
        shape, stride = tuple(value.shape), value.stride()
        part = _Made(shape, stride, value.dtype, int(value.storage_offset()), shared[0] if shared else None)
        is_exact = vars(value) == self._plain and _facts(self._make(part, tensors)) == _facts(value)
        return part if is_exact else NotImplemented


def _follows_form(func: OpOverload) -> bool:
    if getattr(func, "namespace", None) not in _NAMESPACES or any(tag in func.tags for tag in _OTHER_TAGS):
        return False
    # Others answer questions, of which some are about more than the form.
    return all("Tensor" in str(returned.type) or str(returned.type) in ("int", "SymInt")
               for returned in func._schema.returns)  # fmt: skip


def _facts(tensor: torch.Tensor) -> tuple[object, ...]:
    return (
        tensor.shape, tensor.stride(), tensor.dtype, tensor.storage_offset(), tensor.requires_grad,
        tensor.is_inference(), tensor.untyped_storage().nbytes(), torch._C._dispatch_key_set(tensor),
    )  # fmt: skip
