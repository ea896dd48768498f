"""``torch.cuda.FloatTensor`` and its kin: constructors, ``.type()`` and the default tensor type.

Older scripts write ``Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor`` and then
``images.type(Tensor)`` or ``Tensor(numpy_array)``; a build without CUDA refuses to make such a tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session

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


def install(session: Session) -> None:  # noqa: ARG001
    """Replace the classes, ``Tensor.type`` and ``set_default_tensor_type``."""
    kinds = {}
    for name, dtype in _DTYPES.items():
        kind = _LegacyType(name, (), {"dtype": dtype, "__module__": "torch.cuda"})
        kinds["torch.cuda." + name] = kind
        setattr(torch.cuda, name, kind)
    original_type: Callable[..., object] = torch.Tensor.type
    original_default: Callable[..., None] = torch.set_default_tensor_type

    def type_(tensor: torch.Tensor, dtype: object = None, *args: object, **kwargs: object) -> object:
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

    replace(torch.Tensor, type=type_)
    torch.set_default_tensor_type = set_default_tensor_type
