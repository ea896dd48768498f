"""``Tensor.cuda``, ``Tensor.to`` and pinning on a build without CUDA.

``.cuda()`` asks C++ for a CUDA context and raises. ``.to("cuda")`` of a tensor that is there already
would copy it, because C++ compares with the device it knows, which is meta.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from ...replacing import replace
from .factories import plain_device

if TYPE_CHECKING:
    from advisor.payload.session import Session

    from ...dispatch import Args, Kwargs

_CUDA = torch.device("cuda", 0)


def install(session: Session) -> None:
    """Replace the methods of Tensor."""
    original: Callable[..., object] = torch.Tensor.to

    def to(tensor: torch.Tensor, *args: object, **kwargs: object) -> object:
        given, named = _with_plain_target(session, args, kwargs)
        if session.is_fake(tensor) and _is_there(tensor, given, named):
            return tensor
        return original(tensor, *given, **named)

    def cuda(
        tensor: torch.Tensor,
        device: object = None,  # noqa: ARG001
        non_blocking: bool = False,
        memory_format: object = torch.preserve_format,
    ) -> object:
        return to(tensor, _CUDA, non_blocking=non_blocking, memory_format=memory_format)

    replace(
        torch.Tensor,
        to=to,
        cuda=cuda,
        pin_memory=lambda tensor, device=None: tensor,  # noqa: ARG005
        is_pinned=lambda tensor, device=None: False,  # noqa: ARG005
    )


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
