"""Tensors of a pass: which are parameters, what backward reads, and what is held moment by moment.

Autograd keeps what a backward operator reads beside its gradient, in the precision that it reads. Which
tensor that is follows from what made it, else from its size and dtype.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from itertools import groupby
from typing import Any, NamedTuple

from advisor.core.values import Flow, Op, Phase, Role, TensorSpec
from advisor.operators.convolution import CONVOLUTION
from advisor.operators.embedding import EMBEDDING
from advisor.operators.family import base_name, names
from advisor.operators.gemm import GEMM
from advisor.operators.registry import family_of
from advisor.operators.work import folded_shape, item_bytes, numel, tensor_bytes
from advisor.predict.distinct import kept

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What of some calls of an operator is as large as a parameter because it is one or stands for one."""

    inputs: tuple[bool, ...]
    """Of each operand, whether it does."""
    outputs: tuple[bool, ...]
    """Of each result."""


def with_weights(ops: Iterable[Op], by_shape: Callable[[TensorSpec], bool]) -> Iterator[tuple[Op, Weights]]:
    """Each operator, once for each way in which its calls use weights.

    Whether a tensor is one goes ``by_shape`` where its flow does not tell.
    """
    walk = _Walk(by_shape=by_shape)
    for op in ops:
        ways: dict[Weights, list[Flow]] = {}
        for flow in op.flows:
            ways.setdefault(walk.weights(op, flow), []).append(flow)
        for weights, flows in ways.items():
            yield replace(op, flows=tuple(flows), count=sum(flow.count for flow in flows)), weights
        if not op.flows:
            inputs, outputs = tuple(map(by_shape, op.inputs)), tuple(map(by_shape, op.outputs))
            yield op, Weights(inputs=inputs, outputs=outputs)


def num_parameters(flows: Iterable[Flow]) -> int:
    """How many parameters calls of an operator read at each place that takes one, those before them apart."""
    own = list(flows)
    places = max((sum(source == Role.PARAMETER for source in flow.sources) for flow in own), default=0)
    return round(sum(flow.new_parameters for flow in own) / max(1, places))


@dataclass(slots=True, kw_only=True)
class _Walk:
    """Follows the operators in the order they were recorded."""

    by_shape: Callable[[TensorSpec], bool]
    read: dict[int, list[TensorSpec]] = field(default_factory=dict)
    """Of each flow, the weights that it reads."""
    made: dict[int, set[int]] = field(default_factory=dict)
    """Of each flow that makes weights or their gradients, how many elements these have."""
    gradients: set[int] = field(default_factory=lambda: {int(Role.GRADIENT)})
    """Flows that make gradients of weights."""

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


FULL_BYTES = 4


class Read(NamedTuple):
    """Of one call: tensors that are alike, the bytes of one, and the share of such calls that reads one."""

    kind: Any
    num_bytes: int
    weight: float


def is_of(parameters: frozenset[Shape], tensor: TensorSpec) -> bool:
    """Whether a tensor has the shape of a parameter, whichever way round; those are sorted."""
    return tuple(sorted(tensor.shape)) in parameters


class _FlowKind(NamedTuple):
    """What calls of one flow made: their result at a position, or casts of it for another flow."""

    source: int
    position: int
    dtype: str
    cast_for: int | None = None


class SavedByFlows:
    """Reads of a trace that was followed."""

    def __init__(self, ops: Sequence[Op], accumulation: int) -> None:
        self._makers: dict[int, Op] = {}
        self._made: dict[int, float] = {}
        self._parameters: dict[int, int] = {}
        self._readers: dict[_FlowKind, float] = {}
        for op in ops:
            for flow in op.flows:
                own = self._parameters.get(flow.id, 0) + num_parameters([flow])
                self._parameters[flow.id] = own
                self._makers.setdefault(flow.id, op)
                self._made[flow.id] = self._made.get(flow.id, 0.0) + flow.count / accumulation
        for op in ops:
            if op.phase is Phase.BACKWARD:
                for read in self.reads(op):
                    number = read.weight * op.count / accumulation
                    self._readers[read.kind] = self._readers.get(read.kind, 0.0) + number

    def reads(self, op: Op) -> Iterator[Read]:
        """What the forward pass made; parameters and data only as copies in lower precision."""
        for flow in op.flows:
            for tensor, source in zip(op.inputs, flow.sources, strict=True):
                read = self._read(tensor, source, flow)
                if read is not None:
                    yield Read(*read, flow.count / op.count)

    def _read(self, tensor: TensorSpec, source: int, flow: Flow) -> tuple[_FlowKind, int] | None:
        cast = _FlowKind(source, 0, tensor.dtype, flow.forward)
        if source in (Role.PARAMETER, Role.OUTSIDE):
            is_cast = item_bytes(tensor.dtype) < FULL_BYTES
            return (cast, tensor_bytes(tensor)) if is_cast else None
        maker = self._makers.get(source)
        if maker is None or maker.phase is Phase.BACKWARD:
            return None
        sizes = {i: numel(one) for i, one in enumerate(maker.outputs) if one.dtype == tensor.dtype}
        if not sizes:
            return cast, tensor_bytes(tensor)
        # A view keeps all of what it is a view of.
        position = max(sizes, key=lambda i: (sizes[i] == numel(tensor), sizes[i]))
        return _FlowKind(source, position, tensor.dtype), tensor_bytes(maker.outputs[position])

    def num_tensors(self, kind: _FlowKind) -> float:
        """A cast has one reader, but for those of parameters; what layers share has several."""
        readers = self._readers[kind]
        if kind.source == Role.PARAMETER and kind.cast_for in self._parameters:
            return min(readers, self._parameters[kind.cast_for])
        return readers if kind.cast_for is not None else min(readers, self._made.get(kind.source, readers))


# They read their own result, which the next product may read as well.
_OF_RESULTS = names(
    """threshold_backward _softmax_backward_data _log_softmax_backward_data sigmoid_backward
    tanh_backward"""
)
FACTORS = names("mul div")
_SUMS = names("add add_")


class _By(Enum):
    """Who reads a tensor: one by its producer, one by its consumers, or one with no other reader."""

    PRODUCER = auto()
    CONSUMER = auto()
    ITSELF = auto()


class _ShapeKind(NamedTuple):
    """Tensors that are alike."""

    num_elements: int
    dtype: str
    is_parameter: bool


class SavedByShapes:
    """Reads of a trace without flows, by the sorted shapes of parameters."""

    def __init__(self, ops: Sequence[Op], parameters: frozenset[Shape], accumulation: int) -> None:
        self._parameters = parameters
        self._sums = _sums(ops, accumulation)
        self._casts = _casts(ops, parameters, accumulation)
        self._readers: dict[_ShapeKind, dict[_By, float]] = {}
        for op in ops:
            if op.phase is Phase.BACKWARD:
                for read in self.reads(op):
                    by = self._readers.setdefault(read.kind, dict.fromkeys(_By, 0.0))
                    by[_reader(op)] += read.weight * op.count / accumulation

    def reads(self, op: Op) -> Iterator[Read]:
        """Operands beside the gradient; parameters only where they are copies in lower precision."""
        name, family = base_name(op.name), family_of(op)
        if not (family is GEMM or name in FACTORS or "backward" in name):
            return
        # Both halves of a product of activations are read, each by the gradient of the other.
        is_either = name == "bmm"
        for tensor in op.inputs if is_either else op.inputs[1:]:
            has_weights = family.compute.tensor_cores or name in FACTORS or len(tensor.shape) < 2
            is_parameter = has_weights and is_of(self._parameters, tensor)
            if is_parameter and item_bytes(tensor.dtype) >= FULL_BYTES:
                continue
            kind = _ShapeKind(numel(tensor), tensor.dtype, is_parameter)
            yield Read(kind, tensor_bytes(tensor), 0.5 if is_either else 1.0)

    def num_tensors(self, kind: _ShapeKind) -> float:
        """Results that their producers read are among the operands that consumers read."""
        by = self._readers[kind]
        consumed = by[_By.CONSUMER]
        if not kind.is_parameter:  # which has a copy of its own
            shared = max(0, self._sums[kind.num_elements] - self._casts[kind])
            consumed -= min(shared, max(consumed - 1, 0))
        return max(by[_By.PRODUCER], consumed) + by[_By.ITSELF]


def _reader(op: Op) -> _By:
    name = base_name(op.name)
    if name in _OF_RESULTS:
        return _By.PRODUCER
    is_consumer = family_of(op) in (GEMM, CONVOLUTION) or "pool" in name or name.startswith("nll_loss")
    return _By.CONSUMER if is_consumer else _By.ITSELF


def _sums(ops: Iterable[Op], accumulation: int) -> Counter[int]:
    """By elements, how many consumers share their operand with another.

    Gradients are summed where a tensor has several consumers; sums of the forward pass are residuals, of
    which one branch reads nothing.
    """
    signs = {Phase.BACKWARD: 1, Phase.FORWARD: -1}
    sums: Counter[int] = Counter()
    for op in ops:
        if op.phase in signs and base_name(op.name) in _SUMS and len(op.inputs) == 2:
            one, other = map(numel, op.inputs)
            if one == other:
                sums[one] += signs[op.phase] * (op.count // accumulation)
    return sums


def _casts(ops: Iterable[Op], parameters: frozenset[Shape], accumulation: int) -> Counter[_ShapeKind]:
    """Operands that autocast casts, which it does for each consumer anew.

    A profile of a real GPU tells no shape of a number, so a cast of one has no operand.
    """
    casts: Counter[_ShapeKind] = Counter()
    for op in ops:
        if op.phase is Phase.FORWARD and base_name(op.name) == "_to_copy" and op.inputs and op.outputs:
            kind = _ShapeKind(numel(op.inputs[0]), op.outputs[0].dtype, is_of(parameters, op.inputs[0]))
            casts[kind] += op.count // accumulation
    return casts


# Layers are followed one by one up to so many; more make no difference.
_MOST_ROUNDS = 32


class Held(NamedTuple):
    """Bytes of activations; weights in another precision than the optimizer's are among them."""

    forward_bytes: float
    """When the forward pass ends."""
    most_bytes: float
    """The most, with gradients of activations on their way back."""
    peak_bytes: float
    """Of them when they and the gradients of parameters together are most."""
    gradient_bytes: float
    """Those gradients, then."""


def parameter_shapes(ops: Iterable[Op]) -> frozenset[Shape]:
    """What the optimizer steps over, whichever way round a matrix is used."""
    return frozenset(
        tuple(sorted(tensor.shape)) for op in ops if op.phase is Phase.OPTIMIZER for tensor in op.inputs
    )


@kept(2)
def held(ops: Sequence[Op], accumulation: int, all_gradient_bytes: int) -> Held:
    """Follow one pass.

    Args:
        ops: of an iteration; casts may stand anywhere in their phase.
        all_gradient_bytes: of parameters; one that two layers share gets two gradients.
    """
    parameters = parameter_shapes(ops)
    saved: _Saved = SavedByShapes(ops, parameters, accumulation)
    if any(op.flows for op in ops):
        saved = SavedByFlows(ops, accumulation)
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
    return Held(forward_bytes, most_bytes, peak_bytes, gradients_then)


_Saved = SavedByFlows | SavedByShapes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A backward operator."""

    count: float
    reads: tuple[Read, ...]
    passing_bytes: int
    """Gradients of activations that it takes and gives, and of parameters in lower precision."""
    gradient_bytes: int
    """Of parameters, as the optimizer gets them."""

    @classmethod
    def of(cls, op: Op, count: float, parameters: frozenset[Shape], saved: _Saved) -> _Call:
        family, is_new = family_of(op), not base_name(op.name).endswith("_")
        # Activations may have a parameter's shape, but not where only parameters have gradients like that.
        has_own = family.compute.tensor_cores or family is EMBEDDING
        may_be = [tensor for tensor in op.outputs if has_own or len(tensor.shape) < 2]
        own = [tensor for tensor in may_be if is_of(parameters, tensor)]
        lowered = [tensor for tensor in own if item_bytes(tensor.dtype) < FULL_BYTES]
        others = [tensor for tensor in op.outputs if tensor not in own]
        passing = (*(op.inputs[:1] if is_new else ()), *others, *lowered)
        return cls(
            count=count,
            reads=tuple(saved.reads(op)),
            passing_bytes=sum(map(tensor_bytes, passing)),
            gradient_bytes=sum(FULL_BYTES * numel(tensor) for tensor in own),
        )


@dataclass(slots=True, kw_only=True)
class _Stock:
    """Tensors that wait for readers; one of several readers frees nothing before the last."""

    tensors: dict[Any, float]
    """Of a kind, when the forward pass ends."""
    readers: dict[Any, float]
    """Of a kind that are still to come."""
    sizes: dict[Any, int]
    """Bytes of one."""
    num_bytes: float = field(init=False)

    def __post_init__(self) -> None:
        self.num_bytes = sum(self._bytes(kind) for kind in self.readers)

    @classmethod
    def of(cls, calls: Iterable[_Call], saved: _Saved) -> _Stock:
        readers: dict[Any, float] = {}
        sizes: dict[Any, int] = {}
        for call in calls:
            for read in call.reads:
                readers[read.kind] = readers.get(read.kind, 0.0) + read.weight * call.count
                sizes[read.kind] = read.num_bytes
        tensors = {kind: saved.num_tensors(kind) for kind in readers}
        return cls(tensors=tensors, readers=readers, sizes=sizes)

    def _bytes(self, kind: Any) -> float:
        return min(self.tensors[kind], max(self.readers[kind], 0.0)) * self.sizes[kind]

    def take(self, reads: Iterable[Read], count: float) -> None:
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
