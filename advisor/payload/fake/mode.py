"""The dispatch mode: CPU tensors run for real, whatever touches CUDA is only computed in shape."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from ..composite import Args, Kwargs, Types, is_composite, take_apart
from ..progress import Stopper
from ..recording.memory import MemoryTracker
from ..recording.recorder import Recorder
from . import rescue, sparse, untouched, values
from .collectives import Collectives
from .gpu import CUDA, check_index
from .known_forms import KnownCall, KnownForms

aten = torch.ops.aten
# In inference mode torch does not take aten::item apart.
_READS_VALUE = (
    aten._local_scalar_dense.default, aten.item.default, aten.equal.default, aten.is_nonzero.default,
)  # fmt: skip
_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter, FakeTensor)


class _CudaFakeMode(FakeTensorMode):
    """FakeTensorMode for a machine without a GPU."""

    # Asks torch.cuda.is_available, which says yes here.
    avoid_device_init = True

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self.known_forms = KnownForms(self, super().dispatch)

    def dispatch(
        self, func: OpOverload, types: Types, args: Args = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        return self.answer(func, types, args, cast("Kwargs | None", kwargs))[0]

    def answer(
        self, func: OpOverload, types: Types, args: Args = (), kwargs: Kwargs | None = None
    ) -> tuple[object, KnownCall | None]:
        """The operator's result on the pretended GPU, and what was known of such a call."""
        # Composite C++ code passes on the device of its input, which C++ sees as meta.
        kwargs = kwargs or {}
        device = _device_of(kwargs)
        if device is not None and device.type == "meta":
            kwargs = {**kwargs, "device": CUDA}
        return self.known_forms.answer(func, types, args, kwargs)


class HybridMode(TorchDispatchMode):
    """Sends each operator to the CPU or to the fake GPU, and tells the recorder and the tracker."""

    def __init__(
        self, recorder: Recorder, memory: MemoryTracker, stopper: Stopper, collectives: Collectives
    ) -> None:
        TorchDispatchMode.__init__(self)
        self.recorder = recorder
        self.memory = memory
        self.stopper = stopper
        self.collectives = collectives
        self.fake_mode = _CudaFakeMode()
        self._meta = threading.local()
        self._lock = threading.RLock()
        self.unknown_operators: dict[str, str] = {}
        self.assumptions: dict[str, None] = {}
        self.has_made_up = False  # the script read a value that was never computed

    def for_thread(self) -> HybridMode:
        """The same mode for another thread; each keeps account of entering and leaving."""
        twin = copy.copy(self)
        TorchDispatchMode.__init__(twin)
        return twin

    def __torch_dispatch__(
        self, func: OpOverload, types: Types, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        self.stopper.check()
        kwargs = kwargs or {}
        if any(map(desugars_itself, types)):
            return NotImplemented  # DTensor and the like come back as plain tensors
        if self.collectives.owns(func):
            return self.collectives.run(self, func, types, args, kwargs)
        has_fake = _has_fake(args) or (bool(kwargs) and _has_fake(tuple(kwargs.values())))
        device = _device_of(kwargs)
        kind = None if device is None else device.type
        if device is not None and kind == "cuda":
            check_index(device.index)
        if kind == "cuda" or (kind == "meta" and not self._keeps_meta()):
            # Composite C++ code says meta for our CUDA tensors.
            device = CUDA
            kwargs = {**kwargs, "device": CUDA}
        if not has_fake and device != CUDA:
            self.recorder.making.add_operator()
            return _real(func, args, kwargs, self.assumptions)
        try:
            # FakeTensorMode and the recorder keep account of one thread; loaders of weights have several.
            with self._lock:
                if func not in _READS_VALUE and is_composite(func):
                    return take_apart(self, func, args, kwargs)
                if has_fake:
                    return self._fake(func, types, args, kwargs, device)
                return self._create(func, types, args, kwargs)
        finally:
            self.recorder.making.resume()

    @contextlib.contextmanager
    def keep_meta(self) -> Iterator[None]:
        """The script asks for the meta device itself: its tensors take no memory on the GPU."""
        before, self._meta.is_kept = self._keeps_meta(), True
        try:
            yield
        finally:
            self._meta.is_kept = before

    def _keeps_meta(self) -> bool:
        # The modes of all threads share it, and each thread has a value of its own in it.
        return getattr(self._meta, "is_kept", False)

    def _create(self, func: OpOverload, types: Types, args: Args, kwargs: Kwargs) -> object:
        sparse.refuse_compressed(func, kwargs.get("layout"))
        if func is aten._to_copy.default:
            return self._to_gpu(cast("torch.Tensor", args[0]), kwargs)
        return self._compute(func, types, args, kwargs)

    def _to_gpu(self, source: torch.Tensor, kwargs: Kwargs) -> torch.Tensor:
        if sparse.is_sparse(source):
            return sparse.on_gpu(self, source, _dtype_of(kwargs, source), self._to_gpu)
        self.recorder.making.copied()
        # The converter of FakeTensorMode would keep a weak reference to the real tensor, and
        # Module.to could then not swap the parameter: so make a tensor from the shape alone.
        dtype = _dtype_of(kwargs, source)
        memory_format = cast("torch.memory_format | None", kwargs.get("memory_format"))
        like = torch.empty_like(source, memory_format=memory_format, device="meta")
        result = self.empty(like.shape, dtype, like.stride())
        values.remember_copy(result, source)
        self.recorder.record_copy("advisor::h2d_copy", source, dtype)
        return result

    def _fake(
        self, func: OpOverload, types: Types, args: Args, kwargs: Kwargs, device: torch.device | None
    ) -> object:
        if func in _READS_VALUE:
            return self._read(func, args, kwargs)
        sparse.refuse_compressed(func, kwargs.get("layout"))
        if device is not None and device.type == "cpu":
            return self._to_cpu(cast("torch.Tensor", args[0]), kwargs)
        if func is aten.copy_.default:
            target, source = cast("tuple[torch.Tensor, torch.Tensor]", args[:2])
            if not isinstance(target, FakeTensor):
                self.recorder.record_copy("advisor::d2h_copy", source, target.dtype)
                known = values.of(source)
                return target if known is None else target.copy_(known)
            if not isinstance(source, FakeTensor):
                self.recorder.making.copied()
                self.recorder.record_copy("advisor::h2d_copy", source, target.dtype)
                values.forget_written(func, args, kwargs)
                return target
        return self._compute(func, types, args, kwargs)

    def _read(self, func: OpOverload, args: Args, kwargs: Kwargs) -> object:
        tensor = cast("torch.Tensor", args[0])
        self.recorder.record_read(tensor)
        computed = values.compute(func, args, kwargs)
        self.has_made_up |= computed is None or bool(values.supposed_of(args))
        return _made_up_value(func, tensor) if computed is None else computed

    def _to_cpu(self, source: torch.Tensor, kwargs: Kwargs) -> torch.Tensor:
        if sparse.is_sparse(source):
            return sparse.on_cpu(source, _dtype_of(kwargs, source), self._to_cpu)
        dtype = _dtype_of(kwargs, source)
        self.recorder.record_copy("advisor::d2h_copy", source, dtype)
        known = values.on_cpu(source, dtype)
        if known is not None:
            return known
        # A whole model may come, of which nothing is looked at.
        return untouched.zeros(source.shape, torch.empty(source.shape, device="meta").stride(), dtype)

    def _compute(self, func: OpOverload, types: Types, args: Args, kwargs: Kwargs) -> object:
        if "generator" in kwargs:
            # A CPU generator stands in for CUDA's; shapes do not depend on it.
            kwargs = {**kwargs, "generator": None}
        shape_rule = rescue.SHAPE_RULES.get(func) or sparse.rule_of(func, args, kwargs)
        known = None
        try:
            if shape_rule is not None:
                result = shape_rule(self, *args)
            else:
                result, known = self.fake_mode.answer(func, types, args, kwargs)
        except rescue.HANDLED as error:
            result = rescue.result_of(func, args, kwargs, error, self)
        if known is None or known.has_values:
            values.follow(func, args, kwargs, result)
        self.track(result)
        self._record(func, args, kwargs, result, known)
        return result

    def _record(
        self, func: OpOverload, args: Args, kwargs: Kwargs, result: object, known: KnownCall | None
    ) -> None:
        if known is None:
            self.recorder.record(func, args, kwargs, result)
            return
        if not known.is_described:
            known.described = self.recorder.describe(func, args, kwargs, result)
            known.is_described = True
        self.recorder.count(known.described, args, kwargs, result)

    def track(self, result: object) -> None:
        if isinstance(result, FakeTensor):
            if result.fake_device.type == "cuda" and result.layout is torch.strided:
                self.memory.track(result)
        elif isinstance(result, (list, tuple)):
            for item in result:
                self.track(item)

    def empty(
        self, shape: Sequence[int], dtype: torch.dtype, stride: Sequence[int] | None = None
    ) -> torch.Tensor:
        operator = aten.empty.memory_format if stride is None else aten.empty_strided.default
        sizes = [list(shape)] if stride is None else [list(shape), list(stride)]
        made = self.fake_mode.dispatch(operator, (), sizes, {"dtype": dtype, "device": CUDA})
        result = cast("torch.Tensor", made)
        self.memory.track(result)
        return result

    def pretend(self, func: OpOverload, types: Types, args: Args, kwargs: Kwargs) -> object:
        """The operator's result by torch's own rule, its memory counted."""
        result = self.fake_mode.dispatch(func, types, args, kwargs)
        self.track(result)
        return result


def desugars_itself(kind: type) -> bool:
    """Whether a tensor subclass takes operators apart itself before plain tensors see them."""
    # A subclass may have it from another one.
    if kind in _PLAIN_TYPES or not issubclass(kind, torch.Tensor) or issubclass(kind, FakeTensor):
        return False
    return kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


def _device_of(kwargs: Kwargs) -> torch.device | None:
    device = cast("torch.device | str | None", kwargs.get("device"))
    return None if device is None else torch.device(device)


def _dtype_of(kwargs: Kwargs, source: torch.Tensor) -> torch.dtype:
    return cast("torch.dtype | None", kwargs.get("dtype")) or source.dtype


def _has_fake(values: Iterable[object]) -> bool:
    for value in values:
        if isinstance(value, FakeTensor):
            return True
        if isinstance(value, (list, tuple)) and _has_fake(value):
            return True
    return False


def _real(func: OpOverload, args: Args, kwargs: Kwargs, assumptions: dict[str, None]) -> object:
    # Pinned memory needs a CUDA context; an ordinary tensor serves as well here.
    if func is aten._pin_memory.default:
        return args[0]
    if func is aten.is_pinned.default:
        return False
    if kwargs.get("pin_memory"):
        kwargs = {**kwargs, "pin_memory": False}
    if func in values.SHAPED_BY_VALUES:
        assumptions.update(dict.fromkeys(values.supposed_on_cpu(args)))
    result = untouched.answer(func, args, kwargs, assumptions)
    if result is None:
        return func(*args, **kwargs)
    return None if result == () else result


def _made_up_value(func: OpOverload, tensor: torch.Tensor) -> object:
    if func in (aten.equal.default, aten.is_nonzero.default) or tensor.dtype is torch.bool:
        return False
    if tensor.dtype.is_complex:
        return 0.5 + 0j
    # Neither 0 nor 1: losses are divided by and taken logarithms of.
    return 0.5 if tensor.dtype.is_floating_point else 0
