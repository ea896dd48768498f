"""The operators of one span, equal calls counted together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from .signature import Signature

Shape = tuple[int, ...]
TensorKey = tuple[Shape, str, Any]  # shape, dtype, stride (None if sparse)
AttributeList = list[tuple[str, Any]]


class Recorder:
    """Takes each operator that would have run on the GPU.

    Attributes:
        phase: ``forward`` or ``optimizer``; backward is told by the autograd engine.
        num_calls: operators since the start of the script.
    """

    def __init__(self) -> None:
        self.phase = "forward"
        self.num_calls = 0
        self._signatures: dict[Any, Signature] = {}
        self._dtype_names: dict[Any, str] = {}
        self._counts: dict[Any, int] = {}
        self._backward_passes: set[int] = set()

    def start_span(self) -> None:
        """Forget the operators so far."""
        self._counts = {}
        self._backward_passes = set()

    @property
    def num_backward_passes(self) -> int:
        """How often the autograd engine ran in this span."""
        return len(self._backward_passes)

    def record(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Count one call, unless it is a view or an allocation."""
        signature = self._signatures.get(func)
        if signature is None:
            signature = self._signatures[func] = Signature(func)
        if not signature.runs_kernel:
            return
        inputs, written, attributes = self._split(signature, args, kwargs)
        outputs = [self._spec(tensor) for tensor in _tensors(result)] or written
        if inputs or outputs:
            self._count(signature.name, inputs, outputs, attributes)

    def record_copy(self, name: str, tensor: Any, dtype: Any) -> None:
        """Count a copy between host and device, ``advisor::h2d_copy`` or ``advisor::d2h_copy``."""
        source = self._spec(tensor)
        self._count(name, [source], [(source[0], self._dtype(dtype), source[2])], [])

    def operators(self) -> list[dict[str, Any]]:
        """The span's operators in the order in which each was first seen."""
        return [
            {
                "name": name,
                "phase": phase,
                "inputs": [_plain(spec) for spec in inputs],
                "outputs": [_plain(spec) for spec in outputs],
                "attributes": dict(attributes),
                "count": count,
            }
            for (name, phase, inputs, outputs, attributes), count in self._counts.items()
        ]

    def _split(
        self, signature: Signature, args: Any, kwargs: Any
    ) -> tuple[list[TensorKey], list[TensorKey], AttributeList]:
        inputs: list[TensorKey] = []
        written: list[TensorKey] = []
        attributes: AttributeList = []
        for index, (name, takes_tensors, is_written, is_attribute, default) in enumerate(signature.arguments):
            value = args[index] if index < len(args) else kwargs.get(name, default)
            if takes_tensors:
                specs = [self._spec(tensor) for tensor in _tensors(value)]
                inputs += specs
                if is_written:
                    written += specs
                if index == 0 and isinstance(value, (list, tuple)):
                    attributes.append(("num_tensors", len(value)))
            elif is_attribute:
                attributes.append((name, self._attribute(value)))
        return inputs, written, attributes

    def _count(
        self,
        name: str,
        inputs: list[TensorKey],
        outputs: list[TensorKey],
        attributes: AttributeList,
    ) -> None:
        key = (name, self._phase(name), tuple(inputs), tuple(outputs), tuple(attributes))
        self._counts[key] = self._counts.get(key, 0) + 1
        self.num_calls += 1

    def _phase(self, name: str) -> str:
        task = torch._C._current_graph_task_id()
        if task != -1:
            self._backward_passes.add(task)
            return "backward"
        # Lists of tensors are worked on by optimizers, gradient clipping and gradient scaling alone.
        if name.startswith(("aten::_foreach", "aten::_amp_", "aten::_fused")):
            return "optimizer"
        return self.phase

    def _spec(self, tensor: Any) -> TensorKey:
        stride = tuple(tensor.stride()) if tensor.layout is torch.strided else None
        return tuple(tensor.shape), self._dtype(tensor.dtype), stride

    def _dtype(self, dtype: Any) -> str:
        name = self._dtype_names.get(dtype)
        if name is None:
            name = self._dtype_names[dtype] = str(dtype).rpartition(".")[2]
        return name

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, float):
            # JSON has no infinity.
            return value if math.isfinite(value) else str(value)
        if isinstance(value, (bool, int, str)) or value is None:
            return value
        if isinstance(value, (list, tuple)):
            return tuple(self._attribute(item) for item in value)
        return self._dtype(value) if isinstance(value, torch.dtype) else str(value)


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        # Zero-dimensional CPU tensors travel as kernel arguments.
        if value.device.type != "cpu" or value.dim() > 0:
            yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _plain(spec: TensorKey) -> dict[str, Any]:
    return {"shape": spec[0], "dtype": spec[1], "stride": spec[2]}
