"""``torch.tensor(..., device="cuda")``, ``device=0`` and CUDA generators on a build without CUDA.

``torch.tensor``, ``torch.sparse_coo_tensor`` and their kin copy data to the device in C++, which finds no
CUDA; so they are built on the CPU and moved. An integer device asks C++ for the accelerator of this build,
which has none. Where the script itself says ``meta``, it means it: elsewhere that is how C++ sees our CUDA
tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._device

from ...replacing import replace
from ..sparse import CompressedLayoutError
from ..values import of as known_values

if TYPE_CHECKING:
    from advisor.payload.session import Session

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


def install(session: Session) -> None:
    """Wrap the factories, ``Tensor.new_tensor`` and ``torch.Generator``."""
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


def _replace(name: str, wrap: Callable[[Callable[..., Any]], Callable[..., object]]) -> None:
    original = getattr(torch, name)
    replacement = wrap(original)
    setattr(torch, name, replacement)
    # TorchScript would compile a Python function; it is to see the operator that it knows.
    torch.jit._builtins._register_builtin(replacement, torch.jit._builtins._find_builtin(original))


def plain_device(device: object) -> Any:
    """Any CUDA device is the only one there is; an integer is a CUDA index."""
    if isinstance(device, int) and not isinstance(device, bool):
        return _CUDA
    if isinstance(device, (str, torch.device)) and torch.device(device).type == "cuda":
        return _CUDA
    return device


def _with_plain_device(session: Session, original: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(original)
    def factory(*args: object, **kwargs: object) -> object:
        device: Any = kwargs.get("device")
        if isinstance(device, int):
            kwargs["device"] = _CUDA
        elif torch.device(_default_device() if device is None else device).type == "meta":
            with session.pretending.keep_meta():
                return original(*args, **kwargs)
        return original(*args, **kwargs)

    return factory


def _by_way_of_cpu(original: Callable[..., Any]) -> Callable[..., object]:
    @functools.wraps(original)
    def factory(data: object, *args: object, **kwargs: Any) -> object:
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

    return factory


def _refused_on_cuda(original: Callable[..., Any]) -> Callable[..., object]:
    @functools.wraps(original)
    def factory(*parts: object, **kwargs: Any) -> object:
        if plain_device(kwargs.get("device")) == _CUDA:
            raise CompressedLayoutError
        return original(*parts, **kwargs)

    return factory


def _of_parts(original: Callable[..., Any]) -> Callable[..., object]:
    """A sparse tensor is where its values are, and its indices follow."""

    @functools.wraps(original)
    def factory(indices: Any, values: Any = None, *size: Any, **kwargs: Any) -> object:
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

    return factory


def _least_size(indices: torch.Tensor, entries: torch.Tensor) -> list[int]:
    """The least that has a place for each entry.

    Raises:
        NotImplementedError: nobody knows the indices.
    """
    known = known_values(indices)
    if known is None:
        raise NotImplementedError("the size of a sparse tensor follows from indices that nobody computes")
    return [*(known.amax(1) + 1).tolist(), *entries.shape[1:]]


def _default_device() -> torch.device | str:
    # Not torch.get_default_device, which calls torch.tensor.
    for mode in reversed(torch.overrides._get_current_function_mode_stack()):
        if isinstance(mode, torch.utils._device.DeviceContext):
            return mode.device
    return "cpu"


def _new_tensor(
    tensor: torch.Tensor,
    data: object,
    *,
    dtype: torch.dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
) -> object:
    return torch.tensor(
        data,
        dtype=dtype or tensor.dtype,
        device=tensor.device if device is None else device,
        requires_grad=requires_grad,
    )


class _Generator(torch.Generator):
    """A generator of CPU numbers that says it is on the device asked for."""

    def __new__(cls, device: object = "cpu") -> Any:  # noqa: ARG004
        make: Callable[..., Any] = super().__new__
        return make(cls, "cpu")

    def __init__(self, device: object = "cpu") -> None:
        self._device = torch.device(plain_device(device))

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The device that was asked for."""
        return self._device
