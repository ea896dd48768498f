"""What a pass holds for its backward half, moment by moment, read off the operators of that half.

Autograd keeps what a backward operator reads beside its gradient, in the precision that it reads. Which
tensor that is follows from what made it, else from its size and dtype.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from advisor.core.values import Op, Phase, TensorSpec
from advisor.operators.embedding import EMBEDDING
from advisor.operators.family import base_name
from advisor.operators.registry import family_of
from advisor.operators.work import item_bytes, numel, tensor_bytes
from advisor.predict.what_if.saved import FULL_BYTES, Read, Saved, Shape, is_of
from advisor.predict.what_if.saved_by_flows import SavedByFlows
from advisor.predict.what_if.saved_by_shapes import SavedByShapes

# Layers are followed one by one up to so many; more make no difference.
_MOST_ROUNDS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Bytes of activations; weights in another precision than the optimizer's are among them.

    Attributes:
        forward_bytes: when the forward pass ends.
        most_bytes: the most, with gradients of activations on their way back.
        peak_bytes: of them when they and the gradients of parameters together are most.
        gradient_bytes: those gradients, then.
    """

    forward_bytes: float
    most_bytes: float
    peak_bytes: float
    gradient_bytes: float


def parameter_shapes(ops: Iterable[Op]) -> frozenset[Shape]:
    """What the optimizer steps over, whichever way round a matrix is used."""
    return frozenset(
        tuple(sorted(tensor.shape)) for op in ops if op.phase is Phase.OPTIMIZER for tensor in op.inputs
    )


def held(ops: Sequence[Op], accumulation: int, all_gradient_bytes: int) -> Held:
    """Follow one pass.

    Args:
        ops: of an iteration; casts may stand anywhere in their phase.
        accumulation: passes of that iteration.
        all_gradient_bytes: of parameters; one that two layers share gets two gradients.
    """
    parameters = parameter_shapes(ops)
    saved: Saved[Any] = (
        SavedByFlows(ops, accumulation)
        if any(op.flows for op in ops)
        else SavedByShapes(ops, parameters, accumulation)
    )
    calls = [
        _Call.of(op, op.count / accumulation, parameters, saved)
        for op in ops
        if op.phase is Phase.BACKWARD and base_name(op.name) != "_to_copy"
    ]
    stock = _Stock.of(calls, saved)
    forward_bytes = most_bytes = peak_bytes = stock.num_bytes
    gradient_bytes = gradients_then = 0.0
    for call, count in _in_turn(calls):
        there_bytes = stock.num_bytes + call.passing_bytes
        most_bytes = max(most_bytes, there_bytes)
        with_own_bytes = min(all_gradient_bytes, gradient_bytes + call.gradient_bytes)
        if there_bytes + with_own_bytes > peak_bytes + gradients_then:
            peak_bytes, gradients_then = there_bytes, with_own_bytes
        gradient_bytes += count * call.gradient_bytes
        stock.take(call.reads, count)
    return Held(
        forward_bytes=forward_bytes,
        most_bytes=most_bytes,
        peak_bytes=peak_bytes,
        gradient_bytes=gradients_then,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A backward operator.

    Attributes:
        passing_bytes: gradients of activations that it takes and gives, and of parameters in lower precision.
        gradient_bytes: of parameters, as the optimizer gets them.
    """

    count: float
    reads: tuple[Read[Any], ...]
    passing_bytes: int
    gradient_bytes: int

    @classmethod
    def of(cls, op: Op, count: float, parameters: frozenset[Shape], saved: Saved[Any]) -> _Call:
        own = [tensor for tensor in op.outputs if _is_gradient(op, tensor, parameters)]
        lowered = [tensor for tensor in own if item_bytes(tensor.dtype) < FULL_BYTES]
        taken = op.inputs[:1] if not base_name(op.name).endswith("_") else ()
        others = [tensor for tensor in op.outputs if tensor not in own]
        return cls(
            count=count,
            reads=tuple(saved.reads(op)),
            passing_bytes=sum(map(tensor_bytes, (*taken, *others, *lowered))),
            gradient_bytes=sum(FULL_BYTES * numel(tensor) for tensor in own),
        )


def _is_gradient(op: Op, tensor: TensorSpec, parameters: frozenset[Shape]) -> bool:
    """Activations may have a parameter's shape, but not where only parameters have gradients like that."""
    family = family_of(op)
    may_be = family.compute.tensor_cores or family is EMBEDDING or len(tensor.shape) < 2
    return may_be and is_of(parameters, tensor)


@dataclass(slots=True, kw_only=True)
class _Stock:
    """Tensors that wait for readers; one of several readers frees nothing before the last.

    Attributes:
        tensors: of a kind, when the forward pass ends.
        readers: of a kind that are still to come.
        sizes: bytes of one.
    """

    tensors: dict[Hashable, float]
    readers: dict[Hashable, float]
    sizes: dict[Hashable, int]
    num_bytes: float = field(init=False)

    def __post_init__(self) -> None:
        self.num_bytes = sum(self._bytes(kind) for kind in self.readers)

    @classmethod
    def of(cls, calls: Iterable[_Call], saved: Saved[Any]) -> _Stock:
        readers: dict[Hashable, float] = {}
        sizes: dict[Hashable, int] = {}
        for call in calls:
            for read in call.reads:
                readers[read.kind] = readers.get(read.kind, 0.0) + read.weight * call.count
                sizes[read.kind] = read.num_bytes
        tensors = {kind: saved.num_tensors(kind) for kind in readers}
        return cls(tensors=tensors, readers=readers, sizes=sizes)

    def _bytes(self, kind: Hashable) -> float:
        return min(self.tensors[kind], max(self.readers[kind], 0.0)) * self.sizes[kind]

    def take(self, reads: Iterable[Read[Any]], count: float) -> None:
        for read in reads:
            before_bytes = self._bytes(read.kind)
            self.readers[read.kind] -= read.weight * count
            self.num_bytes += self._bytes(read.kind) - before_bytes


def _in_turn(calls: Iterable[_Call]) -> Iterator[tuple[_Call, float]]:
    """Equal calls are one entry of a trace, where the first was: layers that repeat take turns again."""
    for _, entries in groupby(calls, key=lambda call: call.count > 1):
        run = list(entries)
        rounds = min(_MOST_ROUNDS, max(1, round(min(call.count for call in run))))
        for _ in range(rounds):
            yield from ((call, call.count / rounds) for call in run)
