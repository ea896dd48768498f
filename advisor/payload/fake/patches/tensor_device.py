"""``Tensor.cuda``, ``Tensor.to`` and pinning on a build without CUDA.

``.cuda()`` asks C++ for a CUDA context and raises. ``.to("cuda")`` of a tensor that is there already
would copy it, because C++ compares with the device it knows, which is meta.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .factories import plain_device

if TYPE_CHECKING:
    from advisor.payload.session import Session

_CUDA = torch.device("cuda", 0)


def install(session: Session) -> None:
    """Replace the methods of Tensor."""
    original = torch.Tensor.to

    def to(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _with_plain_target(session, args, kwargs)
        if session.is_fake(tensor) and _is_there(tensor, args, kwargs):
            return tensor
        return original(tensor, *args, **kwargs)

    def cuda(
        tensor: Any,
        device: Any = None,  # noqa: ARG001
        non_blocking: bool = False,
        memory_format: Any = torch.preserve_format,
    ) -> Any:
        return to(tensor, _CUDA, non_blocking=non_blocking, memory_format=memory_format)

    torch.Tensor.to = to
    torch.Tensor.cuda = cuda
    torch.Tensor.pin_memory = lambda tensor, device=None: tensor  # noqa: ARG005
    torch.Tensor.is_pinned = lambda tensor, device=None: False  # noqa: ARG005


def _with_plain_target(session: Session, args: Any, kwargs: Any) -> tuple[Any, Any]:
    if args:
        first, *rest = args
        is_model = session.is_fake(first)  # .to(other) takes the other's device and dtype
        args = (_CUDA, first.dtype, *rest) if is_model else (plain_device(first), *rest)
    if kwargs.get("device") is not None:
        kwargs = {**kwargs, "device": plain_device(kwargs["device"])}
    return args, kwargs


def _is_there(tensor: Any, args: Any, kwargs: Any) -> bool:
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
