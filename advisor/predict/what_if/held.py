"""What a pass holds for its backward half, moment by moment, read off the operators of that half.

Autograd keeps what a backward operator reads beside its gradient. How often a tensor is read, and in which
precision, stands in the trace; which tensor it is does not, so tensors are told apart by size and dtype.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import groupby
from typing import NamedTuple

from advisor.core.values import Op, Phase, TensorSpec
from advisor.operators.convolution import CONVOLUTION
from advisor.operators.embedding import EMBEDDING
from advisor.operators.family import base_name, names
from advisor.operators.gemm import GEMM
from advisor.operators.registry import family_of
from advisor.operators.work import item_bytes, tensor_bytes

Shape = tuple[int, ...]
_FULL_BYTES = 4
# They read their own result, which the next product may read as well.
_OF_RESULTS = names(
    """threshold_backward _softmax_backward_data _log_softmax_backward_data sigmoid_backward
    tanh_backward"""
)
FACTORS = names("mul div")
_SUMS = names("add add_")
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


class _By(Enum):
    """Who reads a tensor: one by its producer, one by its consumers, or one that nobody else reads."""

    PRODUCER = auto()
    CONSUMER = auto()
    ITSELF = auto()


class _Kind(NamedTuple):
    """Tensors that are alike."""

    num_elements: int
    dtype: str
    is_parameter: bool


class _Read(NamedTuple):
    """Of one call: what it reads, and in how many of such calls."""

    kind: _Kind
    num_bytes: int
    by: _By
    weight: float


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
    calls = [
        _Call.of(op, op.count / accumulation, parameters)
        for op in ops
        if op.phase is Phase.BACKWARD and base_name(op.name) != "_to_copy"
    ]
    stock = _Stock.of(calls, _sums(ops, accumulation), _casts(ops, parameters, accumulation))
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
    reads: tuple[_Read, ...]
    passing_bytes: int
    gradient_bytes: int

    @classmethod
    def of(cls, op: Op, count: float, parameters: frozenset[Shape]) -> _Call:
        own = [tensor for tensor in op.outputs if _is_gradient(op, tensor, parameters)]
        lowered = [tensor for tensor in own if item_bytes(tensor.dtype) < _FULL_BYTES]
        taken = op.inputs[:1] if not base_name(op.name).endswith("_") else ()
        others = [tensor for tensor in op.outputs if tensor not in own]
        return cls(
            count=count,
            reads=tuple(_reads(op, parameters)),
            passing_bytes=sum(map(tensor_bytes, (*taken, *others, *lowered))),
            gradient_bytes=sum(_FULL_BYTES * _numel(tensor) for tensor in own),
        )


def _reads(op: Op, parameters: frozenset[Shape]) -> Iterator[_Read]:
    """Operands beside the gradient; parameters only where they are copies in lower precision."""
    name, family = base_name(op.name), family_of(op)
    if not (family is GEMM or name in FACTORS or "backward" in name):
        return
    # Both halves of a product of activations are read, each by the gradient of the other.
    is_either = name == "bmm"
    for tensor in op.inputs if is_either else op.inputs[1:]:
        has_weights = family.compute.tensor_cores or name in FACTORS or len(tensor.shape) < 2
        is_parameter = has_weights and _is_of(parameters, tensor)
        if is_parameter and item_bytes(tensor.dtype) >= _FULL_BYTES:
            continue
        kind = _Kind(_numel(tensor), tensor.dtype, is_parameter)
        yield _Read(kind, tensor_bytes(tensor), _reader(op), 0.5 if is_either else 1.0)


def _reader(op: Op) -> _By:
    name = base_name(op.name)
    if name in _OF_RESULTS:
        return _By.PRODUCER
    is_consumer = family_of(op) in (GEMM, CONVOLUTION) or "pool" in name or name.startswith("nll_loss")
    return _By.CONSUMER if is_consumer else _By.ITSELF


def _is_gradient(op: Op, tensor: TensorSpec, parameters: frozenset[Shape]) -> bool:
    """Activations may have a parameter's shape, but not where only parameters have gradients like that."""
    family = family_of(op)
    may_be = family.compute.tensor_cores or family is EMBEDDING or len(tensor.shape) < 2
    return may_be and _is_of(parameters, tensor)


def _sums(ops: Iterable[Op], accumulation: int) -> Counter[int]:
    """By elements, how many consumers share their operand with another.

    Gradients are summed where a tensor has several consumers; sums of the forward pass are residuals, of
    which one branch reads nothing.
    """
    signs = {Phase.BACKWARD: 1, Phase.FORWARD: -1}
    sums: Counter[int] = Counter()
    for op in ops:
        if op.phase in signs and base_name(op.name) in _SUMS and _is_of_two(op):
            sums[_numel(op.inputs[0])] += signs[op.phase] * (op.count // accumulation)
    return sums


def _casts(ops: Iterable[Op], parameters: frozenset[Shape], accumulation: int) -> Counter[_Kind]:
    """Operands that autocast casts, which it does for each consumer anew.

    A profile of a real GPU tells no shape of a number, so a cast of one has no operand.
    """
    casts: Counter[_Kind] = Counter()
    for op in ops:
        if op.phase is Phase.FORWARD and base_name(op.name) == "_to_copy" and op.inputs and op.outputs:
            kind = _Kind(_numel(op.inputs[0]), op.outputs[0].dtype, _is_of(parameters, op.inputs[0]))
            casts[kind] += op.count // accumulation
    return casts


def _is_of_two(op: Op) -> bool:
    return len(op.inputs) == 2 and _numel(op.inputs[0]) == _numel(op.inputs[1])


@dataclass(slots=True, kw_only=True)
class _Stock:
    """Tensors that wait for readers; one of several readers frees nothing before the last.

    Attributes:
        tensors: of a kind, when the forward pass ends.
        readers: of a kind that are still to come.
        sizes: bytes of one.
    """

    tensors: dict[_Kind, float]
    readers: dict[_Kind, float]
    sizes: dict[_Kind, int]
    num_bytes: float = field(init=False)

    def __post_init__(self) -> None:
        self.num_bytes = sum(self._bytes(kind) for kind in self.readers)

    @classmethod
    def of(cls, calls: Iterable[_Call], sums: Counter[int], casts: Counter[_Kind]) -> _Stock:
        """Results that their producers read are among the operands that consumers read."""
        readers: dict[_Kind, dict[_By, float]] = {}
        sizes: dict[_Kind, int] = {}
        for call in calls:
            for read in call.reads:
                by = readers.setdefault(read.kind, dict.fromkeys(_By, 0.0))
                by[read.by] += read.weight * call.count
                sizes[read.kind] = read.num_bytes
        tensors = {}
        for kind, by in readers.items():
            consumed = by[_By.CONSUMER]
            if not kind.is_parameter:  # which has a copy of its own
                consumed -= min(max(0, sums[kind.num_elements] - casts[kind]), max(consumed - 1, 0))
            tensors[kind] = max(by[_By.PRODUCER], consumed) + by[_By.ITSELF]
        all_readers = {kind: sum(by.values()) for kind, by in readers.items()}
        return cls(tensors=tensors, readers=all_readers, sizes=sizes)

    def _bytes(self, kind: _Kind) -> float:
        return min(self.tensors[kind], max(self.readers[kind], 0.0)) * self.sizes[kind]

    def take(self, reads: Iterable[_Read], count: float) -> None:
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


def _is_of(parameters: frozenset[Shape], tensor: TensorSpec) -> bool:
    return tuple(sorted(tensor.shape)) in parameters


def _numel(tensor: TensorSpec) -> int:
    return math.prod(tensor.shape)
