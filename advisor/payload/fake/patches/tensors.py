"""Tensors on the fake GPU: how they are made, moved and read."""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._device
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.modules.lazy import LazyModuleMixin

from ...composite import Args, Kwargs
from ...replacing import Original, replace, wrap, wrapped
from ...session import Session
from ..gpu import plain_device
from ..sparse import CompressedLayoutError
from ..untouched import clone_storage, read, touch
from ..values import of as known_values
from .cuda_device import become

_CUDA = torch.device("cuda", 0)
_FROM_SHAPE = (
    "arange", "empty", "empty_like", "empty_strided", "eye", "full", "full_like", "linspace", "ones",
    "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
    "zeros", "zeros_like",
)  # fmt: skip
_FROM_DATA = ("tensor", "as_tensor", "asarray")
_COMPRESSED = (
    "sparse_compressed_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor",
    "sparse_bsc_tensor",
)  # fmt: skip


def install_factories(session: Session) -> None:
    """``torch.tensor(..., device="cuda")``, ``device=0`` and CUDA generators on a build without CUDA.

    ``torch.tensor``, ``torch.sparse_coo_tensor`` and their kin copy data to the device in C++, which finds no
    CUDA; so they are built on the CPU and moved. An integer device asks C++ for the accelerator of this
    build, which has none. Where the script itself says ``meta``, it means it: elsewhere that is how C++ sees
    our CUDA tensors.

    Wrap the factories, ``Tensor.new_tensor`` and ``torch.Generator``.
    """
    # `with torch.device(...)` keeps a set of the factories it serves: of the real ones, please.
    torch.utils._device._device_constructors()
    for name in _FROM_SHAPE:
        _replace(name, functools.partial(_with_plain_device, session))
    for name in _FROM_DATA:
        _replace(name, _by_way_of_cpu)
    _replace("sparse_coo_tensor", _of_parts)
    for name in _COMPRESSED:
        _replace(name, _refused_on_cuda)
    replace(torch.Tensor, new_tensor=_new_tensor)
    replace(torch, Generator=_Generator)


def _replace(name: str, ours: Callable[..., object]) -> None:
    original = getattr(torch, name)
    replacement = wrapped(original, ours)
    setattr(torch, name, replacement)
    # TorchScript would compile a Python function; it is to see the operator that it knows.
    torch.jit._builtins._register_builtin(replacement, torch.jit._builtins._find_builtin(original))


def _with_plain_device(session: Session, original: Original, *args: object, **kwargs: object) -> object:
    device: Any = kwargs.get("device")
    if isinstance(device, int):
        kwargs["device"] = plain_device(device)
    elif torch.device(_default_device() if device is None else device).type == "meta":
        with session.pretending.keep_meta():
            return original(*args, **kwargs)
    return original(*args, **kwargs)


def _by_way_of_cpu(original: Original, data: object, *args: object, **kwargs: Any) -> object:
    device = plain_device(kwargs.pop("device", None))
    if device is None:
        device = data.device if isinstance(data, torch.Tensor) else _default_device()
    if torch.device(device).type != "cuda":
        return original(data, *args, device=device, **kwargs)
    requires_grad = kwargs.pop("requires_grad", False)
    if isinstance(data, torch.Tensor) and data.is_cuda:
        made = data.to(_CUDA, **kwargs)
        # torch.tensor copies, and leaves the graph.
        made = made.detach().clone() if original.__name__ == "tensor" else made
    else:
        made = original(data, *args, device="cpu", **kwargs).to(_CUDA)
    return made.requires_grad_() if requires_grad else made


def _refused_on_cuda(original: Original, *parts: object, **kwargs: Any) -> object:
    if plain_device(kwargs.get("device")) == _CUDA:
        raise CompressedLayoutError
    return original(*parts, **kwargs)


def _of_parts(original: Original, indices: Any, values: Any = None, *size: Any, **kwargs: Any) -> object:
    device = plain_device(kwargs.pop("device", None))
    if device is None:
        device = values.device if isinstance(values, torch.Tensor) else _default_device()
    given = (indices,) if values is None else (indices, values)
    if torch.device(device).type != "cuda":
        return original(*given, *size, device=device, **kwargs)
    requires_grad = kwargs.pop("requires_grad", False)
    if any(isinstance(part, torch.Tensor) and part.is_cuda for part in given):
        values = torch.as_tensor(values, dtype=kwargs.get("dtype"), device=_CUDA)
        indices = torch.as_tensor(indices, device=_CUDA)
        shape = size[0] if size else kwargs.get("size") or _least_size(indices, values)
        # `with torch.device(...)` would add itself to a call of the factory.
        make = torch.ops.aten.sparse_coo_tensor.indices_size
        made = make(indices, values, shape, is_coalesced=kwargs.get("is_coalesced"))
    else:
        made = original(*given, *size, device="cpu", **kwargs).to(_CUDA)
    return made.requires_grad_() if requires_grad else made


def _least_size(indices: torch.Tensor, entries: torch.Tensor) -> list[int]:
    """The least that has a place for each entry. Raises NotImplementedError: the indices are unknown."""
    known = known_values(indices)
    if known is None:
        raise NotImplementedError("the size of a sparse tensor follows from indices that are not computed")
    return [*(known.amax(1) + 1).tolist(), *entries.shape[1:]]


def _default_device() -> torch.device | str:
    # Not torch.get_default_device, which calls torch.tensor.
    for mode in reversed(torch.overrides._get_current_function_mode_stack()):
        if isinstance(mode, torch.utils._device.DeviceContext):
            return mode.device
    return "cpu"


def _new_tensor(tensor: Any, data: object, *, dtype: Any = None, device: Any = None, **kwargs: Any) -> object:
    device = tensor.device if device is None else device
    return torch.tensor(data, dtype=dtype or tensor.dtype, device=device, **kwargs)


class _Generator(torch.Generator):
    """A generator of CPU numbers that says it is on the device asked for."""

    def __new__(cls, device: object = "cpu") -> Any:  # noqa: ARG004
        make: Callable[..., Any] = super().__new__
        return make(cls, "cpu")

    def __init__(self, device: object = "cpu") -> None:
        self._device = torch.device(plain_device(device))

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return self._device


def install_tensor_device(session: Session) -> None:
    """``Tensor.cuda``, ``Tensor.to`` and pinning on a build without CUDA.

    ``.cuda()`` asks C++ for a CUDA context and raises. ``.to("cuda")`` of a tensor that is there already
    would copy it, because C++ compares with the device it knows, which is meta.

    Replace the methods of Tensor.
    """

    def to(original: Original, tensor: torch.Tensor, *args: object, **kwargs: object) -> object:
        given, named = _with_plain_target(session, args, kwargs)
        if session.is_fake(tensor) and _is_there(tensor, given, named):
            return tensor
        return original(tensor, *given, **named)

    def cuda(
        tensor: Any, device: object = None, non_blocking: bool = False,
        memory_format: object = torch.preserve_format,
    ) -> object:  # fmt: skip
        plain_device(device)
        return tensor.to(_CUDA, non_blocking=non_blocking, memory_format=memory_format)

    replace(
        torch.Tensor,
        cuda=cuda,
        pin_memory=lambda tensor, device=None: tensor,  # noqa: ARG005
        is_pinned=lambda tensor, device=None: False,  # noqa: ARG005
    )

    def share(original: Original, tensor: torch.Tensor) -> object:
        return tensor if session.is_fake(tensor) else original(tensor)  # a GPU's memory is shared as it is

    wrap(torch.Tensor, "to", to)
    wrap(torch.Tensor, "share_memory_", share)


def _with_plain_target(session: Session, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    if args:
        first, *rest = args
        # .to(other) takes the other's device and dtype.
        target = (_CUDA, first.dtype) if session.is_fake(first) else (plain_device(first),)
        args = (*target, *rest)
    if kwargs.get("device") is not None:
        kwargs = {**kwargs, "device": plain_device(kwargs["device"])}
    return args, kwargs


def _is_there(tensor: torch.Tensor, args: Args, kwargs: Kwargs) -> bool:
    # By position non_blocking comes before copy, whatever comes before them.
    flags = [value for value in args if isinstance(value, bool)]
    if kwargs.get("copy") or any(flags[1:]):
        return False
    if kwargs.get("memory_format") not in (None, torch.preserve_format):
        return False
    values = [*args, *kwargs.values()]
    devices = [torch.device(v) for v in values if isinstance(v, (str, torch.device))]
    dtypes = [value for value in values if isinstance(value, torch.dtype)]
    others = [value for value in values if isinstance(value, torch.Tensor)]
    devices += [other.device for other in others]
    dtypes += [other.dtype for other in others]
    return all(device.type == "cuda" for device in devices) and all(dtype is tensor.dtype for dtype in dtypes)


_METHODS = ("numpy", "tolist", "__repr__", "__format__", "__array__", "__dlpack__")
_GIVE_MEMORY = ("numpy", "__array__", "__dlpack__")


def install_tensor_values(session: Session) -> None:
    """Reading a whole CUDA tensor on the host gives zeros.

    ``.tolist()``, ``.numpy()`` and printing read memory that a fake tensor does not have. (Single values, as
    of ``.item()``, are answered by the dispatch mode.)

    Wrap the methods that read a tensor's memory.
    """
    for name in _METHODS:
        # FakeTensor has some of its own, which read element by element.
        for kind in (torch.Tensor, FakeTensor):
            if name in kind.__dict__ or kind is torch.Tensor:
                wrap(kind, name, functools.partial(_read, session, name))


def _read(
    session: Session, name: str, original: Original, tensor: torch.Tensor, *args: object, **kwargs: object
) -> object:
    if not session.is_fake(tensor):
        read((tensor,), session.mode.assumptions)
        if name in _GIVE_MEMORY:
            touch(tensor)
    if name == "__dlpack__" or not session.is_fake(tensor):
        return original(tensor, *args, **kwargs)
    if name in ("numpy", "__array__"):
        # The real one refuses, too: the script would fail on a GPU.
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy."
            " Use Tensor.cpu() to copy the tensor to host memory first."
        )
    # Read in one copy, as the real ones do.
    return getattr(tensor.detach().cpu(), name)(*args, **kwargs)


class _NoWeakReferences:
    """The ``weakref`` module as the swap sees it."""

    @staticmethod
    def getweakrefs(tensor: torch.Tensor) -> list[object]:  # noqa: ARG004
        return []

    def __getattr__(self, name: str) -> object:
        return getattr(weakref, name)


def install_conversion(session: Session) -> None:
    """``module.to("cuda")`` keeps the identity of parameters.

    A real parameter cannot become fake in place, so torch would make a new one: tied weights come apart and
    an optimizer made before ``.to()`` keeps the old ones. Swapping the contents of the two tensors keeps the
    identity, as CUDA does. The swap refuses tensors with weak references, which are unused here, and takes
    away what the script noted on a parameter, such as ``weight.no_decay = True``. ``module.to(0)``, the way
    of distributed scripts, asks C++ for an accelerator that is not there.

    Swap on conversion, and in ``parameter.data = fake``; know what an integer means.
    """
    torch.__future__.set_swap_module_params_on_conversion(True)
    original = torch.utils.swap_tensors
    names = {**original.__globals__, "weakref": _NoWeakReferences()}
    exchange = types.FunctionType(original.__code__, names, original.__name__, original.__defaults__)

    def swap(tensor: torch.Tensor, fresh: torch.Tensor) -> None:
        if tensor is fresh:
            return  # a quantised weight moves itself
        kind = type(tensor)
        noted = {} if session.is_fake(tensor) else dict(vars(tensor))
        # Of one that was frozen after a backward pass the swap asks for a node that it no longer finds.
        can_be_trained = tensor.is_leaf and tensor.dtype.is_floating_point and not tensor.is_inference()
        is_frozen = can_be_trained and not tensor.requires_grad
        if is_frozen:
            tensor.requires_grad_()
        exchange(tensor, fresh)
        if is_frozen:
            fresh.requires_grad_(False)
        vars(tensor).update({name: value for name, value in noted.items() if name not in vars(tensor)})
        if session.is_fake(tensor):
            become(tensor, kind)

    torch.utils.swap_tensors = swap
    data: Any = torch._C.TensorBase.data

    def set_data(tensor: torch.Tensor, value: object) -> None:
        if session.is_fake(value) and not session.is_fake(tensor):
            fresh = value.detach().requires_grad_(tensor.requires_grad)
            is_parameter = isinstance(tensor, torch.nn.Parameter)
            swap(tensor, torch.nn.Parameter(fresh, tensor.requires_grad) if is_parameter else fresh)
        else:
            data.__set__(tensor, value)

    def parse_to(parse: Original, *args: object, **kwargs: object) -> object:
        return parse(*map(plain_device, args), **{name: plain_device(kwargs[name]) for name in kwargs})

    wrap(torch._C._nn, "_parse_to", parse_to)
    replace(torch.Tensor, data=property(lambda tensor: data.__get__(tensor), set_data))


def install_lazy_modules(session: Session) -> None:  # noqa: ARG001 - all patches have one signature
    """Parameters of lazy modules (``nn.LazyLinear``), whose shape the first forward pass tells.

    Until then they are placeholders that no fake tensor can be: torch makes a subclass of a plain tensor for
    them, and the swap that moves a parameter to the pretended GPU would take it for one without elements. So
    the placeholder stays on the CPU and remembers where it would be, and what takes its place is made there.

    Wrap how placeholders are made, moved and replaced.
    """
    parameter: Any = torch.nn.parameter  # torch names some of these for no type checker
    for cls in (parameter.UninitializedParameter, parameter.UninitializedBuffer):
        wrap(cls, "__new__", _made_on_cpu)
    replace(LazyModuleMixin, _apply=_apply)
    original = parameter.UninitializedTensorMixin.materialize

    def materialize(self: Any, shape: Any, device: Any = None, dtype: object = None) -> None:
        device = self._advisor_device if device is None else device
        original(self, shape, "cpu", dtype)
        self.data = torch.empty(shape, device=device, dtype=self.dtype)

    copy = parameter.UninitializedParameter.__deepcopy__

    def deepcopy(self: Any, memo: object) -> object:
        copied = copy(self, memo)
        copied._advisor_device = self._advisor_device
        return copied

    parameter.UninitializedTensorMixin.materialize = materialize
    parameter.UninitializedParameter.__deepcopy__ = deepcopy


def _made_on_cpu(original: Original, *args: object, **kwargs: object) -> object:
    signature = inspect.signature(original)
    arguments = signature.bind(*args, **kwargs).arguments
    device = torch.empty(0, device=arguments.get("device")).device
    placeholder = original(**{**arguments, "device": "cpu"})
    replace(placeholder, _advisor_device=device)
    return placeholder


def _apply(self: Any, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> object:
    """``Module._apply`` without the placeholders, which only learn where they would be."""
    hidden = []
    for tensors in (self._parameters, self._buffers):
        for name, tensor in tensors.items():
            if torch.nn.parameter.is_lazy(tensor):
                _move(tensor, fn)
                hidden.append((tensors, name, tensor))
    for tensors, name, _ in hidden:
        tensors[name] = None
    try:
        return super(LazyModuleMixin, self)._apply(fn, recurse)
    finally:
        for tensors, name, tensor in hidden:
            tensors[name] = tensor


def _move(placeholder: Any, fn: Callable[[torch.Tensor], torch.Tensor]) -> None:
    moved = fn(torch.empty(0, device=placeholder._advisor_device, dtype=placeholder.data.dtype))
    placeholder._advisor_device = moved.device
    placeholder.data = torch.empty(0, device="cpu", dtype=moved.dtype)


def install_storage(session: Session) -> None:
    """Storages that change their size in place are counted.

    FSDP frees a gathered layer by ``storage.resize_(0)`` and brings it back by another resize; seen only as
    tensors that live on, every layer of the model would count as gathered all the time.

    A copy of weights that nothing was written to takes no room either.

    Wrap ``UntypedStorage.resize_`` and ``clone``.
    """

    def resize(original: Original, storage: torch.UntypedStorage, size: int) -> object:
        result = original(storage, size)
        session.memory.resize(storage)
        return result

    def clone(original: Original, storage: torch.UntypedStorage) -> object:
        return clone_storage(storage) or original(storage)

    wrap(torch.UntypedStorage, "resize_", resize)
    wrap(torch.UntypedStorage, "clone", clone)


_DTYPES = {
    "FloatTensor": torch.float32, "DoubleTensor": torch.float64, "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16, "LongTensor": torch.int64, "IntTensor": torch.int32,
    "ShortTensor": torch.int16, "CharTensor": torch.int8, "ByteTensor": torch.uint8,
    "BoolTensor": torch.bool,
}  # fmt: skip


class _LegacyType(type):
    """A class whose instances are the CUDA tensors of one dtype."""

    dtype: torch.dtype

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, torch.Tensor) and value.is_cuda and value.dtype is cls.dtype

    def __call__(cls, *arguments: Any) -> object:
        if not arguments or all(isinstance(argument, int) for argument in arguments):
            return torch.empty(arguments or (0,), dtype=cls.dtype, device="cuda")
        (data,) = arguments
        if isinstance(data, torch.Size):
            return torch.empty(data, dtype=cls.dtype, device="cuda")
        return torch.as_tensor(data, dtype=cls.dtype).to("cuda")


def install_legacy_types(session: Session) -> None:  # noqa: ARG001
    """``torch.cuda.FloatTensor`` and its kin: constructors, ``.type()`` and the default tensor type.

    Older scripts write ``Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor`` and then
    ``images.type(Tensor)`` or ``Tensor(numpy_array)``; a build without CUDA refuses to make such a tensor.

    Replace the classes, ``Tensor.type`` and ``set_default_tensor_type``.
    """
    kinds = {}
    for name, dtype in _DTYPES.items():
        kind = _LegacyType(name, (), {"dtype": dtype, "__module__": "torch.cuda"})
        kinds["torch.cuda." + name] = kind
        setattr(torch.cuda, name, kind)
    original_default: Callable[..., None] = torch.set_default_tensor_type

    def type_(
        original_type: Original, tensor: torch.Tensor, dtype: object = None, *args: object, **kwargs: object
    ) -> object:
        kind = kinds.get(dtype, dtype) if isinstance(dtype, str) else dtype
        if isinstance(kind, _LegacyType):
            return tensor.to("cuda", kind.dtype)
        return original_type(tensor, *(() if dtype is None else (dtype,)), *args, **kwargs)

    def set_default_tensor_type(kind: Any) -> None:
        kind = kinds.get(kind, kind) if isinstance(kind, str) else kind
        if isinstance(kind, _LegacyType):
            torch.set_default_dtype(kind.dtype)
            torch.set_default_device("cuda")
        else:
            original_default(kind)

    wrap(torch.Tensor, "type", type_)
    torch.set_default_tensor_type = set_default_tensor_type
