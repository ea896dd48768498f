"""Parameters of lazy modules (``nn.LazyLinear``), whose shape the first forward pass tells.

Until then they are placeholders that no fake tensor can be: torch makes a subclass of a plain tensor for
them, and the swap that moves a parameter to the pretended GPU would take it for one without elements. So
the placeholder stays on the CPU and remembers where it would be, and what takes its place is made there.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.modules.lazy import LazyModuleMixin

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:  # noqa: ARG001 - all patches have one signature
    """Wrap how placeholders are made, moved and replaced."""
    parameter: Any = torch.nn.parameter  # torch names some of these for no type checker
    for cls in (parameter.UninitializedParameter, parameter.UninitializedBuffer):
        cls.__new__ = _made_on_cpu(cls.__new__)
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


def _made_on_cpu(original: Callable[..., object]) -> Callable[..., object]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def new(*args: object, **kwargs: object) -> object:
        arguments = signature.bind(*args, **kwargs).arguments
        device = torch.empty(0, device=arguments.get("device")).device
        placeholder = original(**{**arguments, "device": "cpu"})
        replace(placeholder, _advisor_device=device)
        return placeholder

    return new


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
