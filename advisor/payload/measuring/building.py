"""Calls and their tensors from the descriptions of ``advisor/operators/case.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Union

import torch
from torch._ops import OpOverload

from .. import protocol
from ..protocol import Case

Operator = Union[OpOverload, Callable[..., object]]
# Values of a normal distribution: hardware draws less power, and so runs faster, on zeros.
_SEED = 0
COPIES = ("advisor::h2d_copy", "advisor::d2h_copy")


class NoSuchOperatorError(Exception):
    """This torch has no operator of that name."""


class Build:
    """One set of tensors for a case; calls that are prepared are made at once.

    Args:
        case: as the parent wrote it.
        device: where its tensors lie.

    Attributes:
        operator: what to call; its arguments are ``args`` and ``kwargs``.
        num_bytes: of the tensors that were made from a description.

    Raises:
        NoSuchOperatorError: torch lacks an operator.
    """

    def __init__(self, case: Case, device: str) -> None:
        self._device = device
        self._named: dict[str, object] = {}
        self.num_bytes = 0
        for call in case["prepare"]:
            operator, args, kwargs = self._call(call)
            result = operator(*args, **kwargs)
            results = result if isinstance(result, (tuple, list)) else (result,)
            self._named.update(zip(call["results"], results, strict=False))
        self.operator, self.args, self.kwargs = self._call(case["call"])

    def run(self) -> object:
        """The call."""
        return self.operator(*self.args, **self.kwargs)

    def _call(self, call: protocol.Call) -> tuple[Operator, list[object], dict[str, object]]:
        args = [self._value(value) for value in call["arguments"]]
        kwargs = {name: self._value(value) for name, value in call["keywords"].items()}
        return operator_of(call["operator"]), args, kwargs

    def _value(self, spec: object) -> object:
        if isinstance(spec, list):
            return [self._value(item) for item in spec]
        if not isinstance(spec, dict):
            return spec
        ((kind, described),) = spec.items()
        if kind == "tensor":
            return self._tensor(**described)
        return self._named[described] if kind == "result" else getattr(torch, described)

    def _tensor(
        self,
        shape: list[int],
        dtype: str,
        name: str | None = None,
        stride: list[int] | None = None,
        below: int | None = None,
        on_host: bool = False,
    ) -> object:
        if name in self._named:
            return self._named[name]
        kind = getattr(torch, dtype)
        if stride is None:
            made = torch.empty(shape, dtype=kind, device="cpu" if on_host else self._device)
        else:
            made = torch.empty_strided(shape, stride, dtype=kind, device=self._device)
        if on_host and self._device == "cuda":
            made = made.pin_memory()
        _fill(made, below)
        self.num_bytes += made.numel() * made.element_size()
        if name is not None:
            self._named[name] = made
        return made


def operator_of(name: str) -> Operator:
    """The operator of a name such as ``aten::add.Tensor``, or a copy between host and device.

    Raises:
        NoSuchOperatorError: this torch has none.
    """
    if name in COPIES:
        return _copy
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    try:
        operator: OpOverload = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    except AttributeError as error:
        raise NoSuchOperatorError(f"torch {torch.__version__} has no {name}") from error
    return operator


def _copy(source: torch.Tensor, target: torch.Tensor) -> object:
    return target.copy_(source, non_blocking=True)


def _fill(tensor: torch.Tensor, below: int | None) -> None:
    if below is not None:
        tensor.random_(0, below)
    elif tensor.dtype is torch.bool:
        tensor.bernoulli_(0.8)
    else:
        tensor.normal_()


def seed() -> None:
    """Make the values of all tensors to come the same in each run."""
    torch.manual_seed(_SEED)
