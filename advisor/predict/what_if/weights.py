"""Which tensors of a trace are parameters, made of them alone, or their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from advisor.core.values import Flow, Op, Phase, Role, TensorSpec
from advisor.operators.work import folded_shape, numel

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What of some calls of an operator is as large as a parameter because it is one or stands for one.

    Attributes:
        inputs: of each operand, whether it does.
        outputs: of each result.
    """

    inputs: tuple[bool, ...]
    outputs: tuple[bool, ...]


def with_weights(ops: Iterable[Op], by_shape: Callable[[TensorSpec], bool]) -> Iterator[tuple[Op, Weights]]:
    """Each operator, once for each way in which its calls use weights.

    Args:
        ops: of an iteration.
        by_shape: whether a tensor looks like a parameter, where its flow does not tell.
    """
    walk = _Walk(by_shape=by_shape)
    for op in ops:
        ways: dict[Weights, list[Flow]] = {}
        for flow in op.flows:
            ways.setdefault(walk.weights(op, flow), []).append(flow)
        for weights, flows in ways.items():
            yield replace(op, flows=tuple(flows), count=sum(flow.count for flow in flows)), weights
        if not op.flows:
            yield (
                op,
                Weights(inputs=tuple(map(by_shape, op.inputs)), outputs=tuple(map(by_shape, op.outputs))),
            )


def num_parameters(flows: Iterable[Flow]) -> int:
    """How many parameters calls of an operator read at each place that takes one, those before them apart."""
    own = list(flows)
    places = max((sum(source == Role.PARAMETER for source in flow.sources) for flow in own), default=0)
    return round(sum(flow.new_parameters for flow in own) / max(1, places))


@dataclass(slots=True, kw_only=True)
class _Walk:
    """Follows the operators in the order they were recorded.

    Attributes:
        read: of each flow, the weights that it reads.
        made: of each flow that makes weights or their gradients, how many elements these have.
        gradients: flows that make gradients of weights.
    """

    by_shape: Callable[[TensorSpec], bool]
    read: dict[int, list[TensorSpec]] = field(default_factory=dict)
    made: dict[int, set[int]] = field(default_factory=dict)
    gradients: set[int] = field(default_factory=lambda: {int(Role.GRADIENT)})

    def weights(self, op: Op, flow: Flow) -> Weights:
        inputs = tuple(map(self._is_weight, op.inputs, flow.sources))
        read = [tensor for tensor, is_weight in zip(op.inputs, inputs, strict=True) if is_weight]
        outputs = tuple(map(self._makes_weight(op, flow, read), op.outputs))
        self.read.setdefault(flow.id, read)
        if any(outputs):
            sizes = {numel(tensor) for tensor, is_own in zip(op.outputs, outputs, strict=True) if is_own}
            self.made.setdefault(flow.id, set()).update(sizes)
            if op.phase is Phase.BACKWARD:
                self.gradients.add(flow.id)
        return Weights(inputs=inputs, outputs=outputs)

    def _is_weight(self, tensor: TensorSpec, source: int) -> bool:
        if source == Role.OUTSIDE:
            return self.by_shape(tensor)
        return source in (Role.PARAMETER, Role.GRADIENT) or numel(tensor) in self.made.get(source, ())

    def _makes_weight(self, op: Op, flow: Flow, read: list[TensorSpec]) -> Callable[[TensorSpec], bool]:
        """Of a result; what is made of weights alone stands for one."""
        if op.phase is Phase.FORWARD and flow.sources:
            is_of_weights = len(read) == len(op.inputs)
            return lambda _: is_of_weights
        own = self._gradients_of(op, flow, read) if flow.sources else None
        if own is None:
            return self.by_shape
        shapes = set(map(folded_shape, own))
        return lambda tensor: folded_shape(tensor) in shapes

    def _gradients_of(self, op: Op, flow: Flow, read: list[TensorSpec]) -> list[TensorSpec] | None:
        """The weights whose gradients a backward call may give: those it adds up, or the forward call's.

        None if that is not known.
        """
        pairs = zip(op.inputs, flow.sources, strict=True)
        if any(source in self.gradients and self._is_weight(tensor, source) for tensor, source in pairs):
            return read
        if flow.forward is None:
            return None
        # One result of a call that reads a weight is the gradient of what that was multiplied by.
        is_of_other = flow.is_of_view or (read and len(op.outputs) == 1)
        return [] if is_of_other else self.read.get(flow.forward, [])
