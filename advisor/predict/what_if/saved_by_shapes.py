"""What backward operators read of the forward pass, told apart by size and dtype: nobody followed it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

from advisor.core.values import Op, Phase
from advisor.operators.convolution import CONVOLUTION
from advisor.operators.family import base_name, names
from advisor.operators.gemm import GEMM
from advisor.operators.registry import family_of
from advisor.operators.work import item_bytes, numel, tensor_bytes
from advisor.predict.what_if.saved import FULL_BYTES, Read, Shape, is_of

# They read their own result, which the next product may read as well.
_OF_RESULTS = names(
    """threshold_backward _softmax_backward_data _log_softmax_backward_data sigmoid_backward
    tanh_backward"""
)
FACTORS = names("mul div")
_SUMS = names("add add_")


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


class SavedByShapes:
    """Reads of a trace without flows.

    Args:
        ops: of an iteration.
        parameters: shapes of parameters, sorted.
        accumulation: passes of the iteration.
    """

    def __init__(self, ops: Sequence[Op], parameters: frozenset[Shape], accumulation: int) -> None:
        self._parameters = parameters
        self._sums = _sums(ops, accumulation)
        self._casts = _casts(ops, parameters, accumulation)
        self._readers: dict[_Kind, dict[_By, float]] = {}
        for op in ops:
            if op.phase is Phase.BACKWARD:
                for read in self.reads(op):
                    by = self._readers.setdefault(read.kind, dict.fromkeys(_By, 0.0))
                    by[_reader(op)] += read.weight * op.count / accumulation

    def reads(self, op: Op) -> Iterator[Read[_Kind]]:
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
            kind = _Kind(numel(tensor), tensor.dtype, is_parameter)
            yield Read(kind, tensor_bytes(tensor), 0.5 if is_either else 1.0)

    def num_tensors(self, kind: _Kind) -> float:
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
        if op.phase in signs and base_name(op.name) in _SUMS and _is_of_two(op):
            sums[numel(op.inputs[0])] += signs[op.phase] * (op.count // accumulation)
    return sums


def _casts(ops: Iterable[Op], parameters: frozenset[Shape], accumulation: int) -> Counter[_Kind]:
    """Operands that autocast casts, which it does for each consumer anew.

    A profile of a real GPU tells no shape of a number, so a cast of one has no operand.
    """
    casts: Counter[_Kind] = Counter()
    for op in ops:
        if op.phase is Phase.FORWARD and base_name(op.name) == "_to_copy" and op.inputs and op.outputs:
            kind = _Kind(numel(op.inputs[0]), op.outputs[0].dtype, is_of(parameters, op.inputs[0]))
            casts[kind] += op.count // accumulation
    return casts


def _is_of_two(op: Op) -> bool:
    return len(op.inputs) == 2 and numel(op.inputs[0]) == numel(op.inputs[1])
