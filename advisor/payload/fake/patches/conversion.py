"""``module.to("cuda")`` keeps the identity of parameters.

A real parameter cannot become fake in place, so torch would make a new one: tied weights come apart and
an optimizer made before ``.to()`` keeps the old ones. Swapping the contents of the two tensors keeps
the identity, as CUDA does. The swap refuses tensors with weak references, which here nobody uses, and
takes away what the script noted on a parameter, such as ``weight.no_decay = True``.
``module.to(0)``, the way of distributed scripts, asks C++ for an accelerator that is not there.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ...replacing import replace
from .factories import plain_device

if TYPE_CHECKING:
    from advisor.payload.session import Session


class _NoWeakReferences:
    """The ``weakref`` module as the swap sees it."""

    @staticmethod
    def getweakrefs(tensor: torch.Tensor) -> list[object]:  # noqa: ARG004
        """None, whatever the tensor."""
        return []

    def __getattr__(self, name: str) -> object:
        return getattr(weakref, name)


def _may_have_been_trained(tensor: torch.Tensor) -> bool:
    can_be_trained = tensor.is_leaf and tensor.dtype.is_floating_point and not tensor.is_inference()
    return can_be_trained and not tensor.requires_grad


def install(session: Session) -> None:
    """Swap on conversion, and in ``parameter.data = fake``; know what an integer means."""
    torch.__future__.set_swap_module_params_on_conversion(True)
    original = torch.utils.swap_tensors
    names = {**original.__globals__, "weakref": _NoWeakReferences()}
    exchange = types.FunctionType(original.__code__, names, original.__name__, original.__defaults__)

    def swap(tensor: torch.Tensor, fresh: torch.Tensor) -> None:
        noted = {} if session.is_fake(tensor) else dict(vars(tensor))
        # Of one that was frozen after a backward pass the swap asks for a node that it no longer finds.
        is_frozen = _may_have_been_trained(tensor)
        if is_frozen:
            tensor.requires_grad_()
        exchange(tensor, fresh)
        if is_frozen:
            fresh.requires_grad_(False)
        vars(tensor).update({name: value for name, value in noted.items() if name not in vars(tensor)})

    torch.utils.swap_tensors = swap
    data: Any = torch._C.TensorBase.data

    def set_data(tensor: torch.Tensor, value: object) -> None:
        if session.is_fake(value) and not session.is_fake(tensor):
            fresh = value.detach().requires_grad_(tensor.requires_grad)
            is_parameter = isinstance(tensor, torch.nn.Parameter)
            swap(tensor, torch.nn.Parameter(fresh, tensor.requires_grad) if is_parameter else fresh)
        else:
            data.__set__(tensor, value)

    parse: Callable[..., object] = torch._C._nn._parse_to

    def parse_to(*args: object, **kwargs: object) -> object:
        return parse(*map(plain_device, args), **{name: plain_device(kwargs[name]) for name in kwargs})

    replace(torch._C._nn, _parse_to=parse_to)
    replace(torch.Tensor, data=property(lambda tensor: data.__get__(tensor), set_data))
