"""Shapes, FLOPs and bytes of profiled operators, as far as a profile tells them.

Profiles record inputs, not outputs. But each autograd node carries the sequence number of the forward
operator it belongs to, and its input is the gradient of that operator's output, which has its shape.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from advisor.core.values import TensorSpec
from advisor.kineto.events import HostEvent
from advisor.operators.registry import cost_of
from advisor.operators.work import tensor_bytes

_DTYPES = {
    "float": "float32", "double": "float64", "c10::half": "float16", "c10::bfloat16": "bfloat16",
    "long int": "int64", "long": "int64", "int": "int32", "short": "int16", "short int": "int16",
    "signed char": "int8", "unsigned char": "uint8", "bool": "bool",
}  # fmt: skip
_MOST_DIMENSIONS = 64
_MOST_SIZE = 2**63
Tensors = tuple[TensorSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Autograd:
    """What ties backward to forward.

    Attributes:
        forward: by sequence number, the forward operator that made the node.
        nodes: by thread, autograd nodes in order of time.
        output: by sequence number, the shape of the forward operator's first output.
    """

    forward: Mapping[int, HostEvent]
    nodes: Mapping[str, Sequence[HostEvent]]
    output: Mapping[int, TensorSpec]

    @classmethod
    def of(cls, operators: Sequence[HostEvent]) -> Autograd:
        """Sort a recording's operators into forward ones and nodes."""
        forward: dict[int, HostEvent] = {}
        nodes: dict[str, list[HostEvent]] = {}
        output: dict[int, TensorSpec] = {}
        for operator in operators:
            sequence = _sequence(operator)
            if sequence is None:
                continue
            if (operator.args.get("fwd thread id") or 0) > 0:
                nodes.setdefault(operator.thread, []).append(operator)
                for tensor in tensors_of(operator)[:1]:
                    output.setdefault(sequence, tensor)
            else:
                # The outermost comes first; the innermost one launches the kernels.
                forward[sequence] = operator
        return cls(forward=forward, nodes=nodes, output=output)

    def node_of(self, operator: HostEvent) -> HostEvent | None:
        """The autograd node that encloses an operator of the backward pass."""
        nodes = self.nodes.get(operator.thread, ())
        place = bisect.bisect_right(nodes, operator.begin_s, key=lambda node: node.begin_s)
        enclosing = (n for n in reversed(nodes[max(place - 4, 0) : place]) if n.end_s >= operator.end_s)
        return next(enclosing, None)


def tensors_of(operator: HostEvent) -> Tensors:
    """Tensor inputs; scalars and lists of numbers are left out. Without dtypes, float32."""
    dims = operator.args.get("input dims", [])
    types = operator.args.get("input type", [])
    tensors = []
    for i, shape in enumerate(dims):
        type_name = str(types[i]).lower() if i < len(types) else ""
        dtype = "float32" if not types else _DTYPES.get(type_name, "")
        if _is_shape(shape) and dtype:
            tensors.append(TensorSpec(shape=tuple(shape), dtype=dtype))
    return tuple(tensors)


def _is_shape(value: object) -> TypeGuard[list[int]]:
    """Of a tensor that PyTorch could have; products of absurd sizes would take for ever."""
    return (
        isinstance(value, list)
        and 0 < len(value) <= _MOST_DIMENSIONS
        and all(isinstance(size, int) and 0 <= size < _MOST_SIZE for size in value)
    )


def cost_of_call(operator: HostEvent | None, inputs: Tensors, autograd: Autograd) -> tuple[Tensors, int, int]:
    """Outputs, FLOPs and bytes of one call; 0 where they cannot be known."""
    if operator is None or not inputs:
        return (), 0, 0
    name = operator.name.partition("::")[2].partition(".")[0]
    if "convolution" in name:
        return _convolution(operator, name, inputs, autograd)
    outputs = _outputs(operator, name, inputs, autograd)
    try:
        cost = cost_of(operator.name, inputs, outputs, {})
    except (IndexError, KeyError, ValueError, AssertionError):
        # An operator of an older PyTorch with the same name and other arguments.
        return outputs, 0, sum(map(tensor_bytes, (*inputs, *outputs)))
    return outputs, cost.flops, cost.bytes


def _outputs(operator: HostEvent, name: str, inputs: Tensors, autograd: Autograd) -> Tensors:
    if name.endswith("_"):
        return inputs[:1]
    if name in ("mm", "addmm", "bmm", "baddbmm") and len(inputs) >= 2:
        left, right = inputs[-2:]
        return (TensorSpec(shape=(*left.shape[:-1], right.shape[-1]), dtype=left.dtype),)
    sequence = _sequence(operator)
    if sequence is not None and sequence in autograd.output:
        return (autograd.output[sequence],)
    if name in ("sum", "mean", "nll_loss_forward", "nll_loss_nd"):
        return ()
    return (max(inputs, key=lambda tensor: math.prod(tensor.shape)),)


def _convolution(
    operator: HostEvent, name: str, inputs: Tensors, autograd: Autograd
) -> tuple[Tensors, int, int]:
    """A gradient of a convolution costs as much as the convolution itself; ``_backward`` makes both."""
    if "backward" not in name:
        sequence = _sequence(operator)
        result = autograd.output.get(sequence) if sequence is not None else None
        outputs = (result,) if result else ()
        return outputs, _multiply_adds(result, inputs), sum(map(tensor_bytes, (*inputs, *outputs)))
    node = autograd.node_of(operator)
    sequence = _sequence(node) if node else None
    forward = autograd.forward.get(sequence) if sequence is not None else None
    source = tensors_of(forward)[:2] if forward else ()
    gradient = autograd.output.get(sequence) if sequence is not None else None
    both = 2 if name == "convolution_backward" else 1
    flops = both * _multiply_adds(gradient, source)
    # One of the forward's inputs is not read here: its gradient is written instead.
    return (), flops, sum(map(tensor_bytes, source)) + (tensor_bytes(gradient) if gradient else 0)


def _multiply_adds(result: TensorSpec | None, inputs: Tensors) -> int:
    if result is None or len(inputs) < 2 or len(inputs[1].shape) < 3:
        return 0
    return 2 * math.prod(result.shape) * math.prod(inputs[1].shape[1:])


def _sequence(operator: HostEvent) -> int | None:
    value = operator.args.get("sequence number")
    return value if value is not None and value >= 0 else None
