"""One operator under autocast: what it runs in, its casts, and its tensors of other dtypes; no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from advisor.core.values import Op, Phase, TensorSpec
from advisor.operators.family import base_name
from advisor.operators.registry import family_of
from advisor.operators.work import numel

FULL = "float32"
_ITEM_BYTES = {FULL: 4, "float16": 2, "bfloat16": 2, "float64": 8, "int64": 8, "int32": 4}


def is_lowered(op: Op) -> bool:
    """Whether it runs in the lower precision whatever it is given."""
    return family_of(op).compute.tensor_cores


def asked_dtype(op: Op, lower: str) -> str | None:
    """The dtype that a forward operator asks for; None if it takes what it is given."""
    if is_lowered(op):
        return lower
    return FULL if base_name(op.name) in family_of(op).autocast.full else None


def plain_op(
    name: str, phase: Phase, source: TensorSpec, target: TensorSpec, num_bytes: int, *, count: int
) -> Op:
    """An operator of one operand without FLOPs."""
    return Op(
        name=name,
        phase=phase,
        inputs=(source,),
        outputs=(target,),
        attributes={},
        flops=0,
        bytes=num_bytes,
        count=count,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How calls of an operator run under autocast.

    Attributes:
        given: dtypes of the operands, before casts.
        runs_in: what they are cast to; None if they are taken as they are.
        result: the result's dtype.
        with_vectors: tensors of one dimension are of that dtype, too: biases of products, but neither
            statistics nor scales.
    """

    given: tuple[str, ...]
    runs_in: str | None
    result: str
    with_vectors: bool


def casts(op: Op, run: Run, counts: Sequence[int], has_gradient: Sequence[bool]) -> Iterator[Op]:
    """Casts of a forward operator's operands, so often each, and of their gradients on the way back."""
    operands = zip(op.inputs, run.given, counts, has_gradient, strict=True)
    for tensor, dtype, count, from_graph in operands:
        if not count:
            continue
        if (run.result if _is_retyped(tensor, run) else tensor.dtype) == dtype:
            continue
        if run.runs_in is not None:  # else the kernel itself reads both
            yield _cast(tensor, dtype, run.result, Phase.FORWARD, count)
        if from_graph:
            yield _cast(tensor, run.result, dtype, Phase.BACKWARD, count)


def retyped_op(op: Op, run: Run) -> Op:
    """The operator on operands as they are given, or on their casts."""
    operands = zip(op.inputs, run.given, strict=True)
    inputs = tuple(_retyped(tensor, run.runs_in or dtype, run) for tensor, dtype in operands)
    outputs = tuple(_retyped(tensor, run.result, run) for tensor in op.outputs)
    return _with_tensors(op, inputs, outputs)


def _is_retyped(tensor: TensorSpec, run: Run) -> bool:
    return tensor.dtype == FULL and (run.with_vectors or len(tensor.shape) > 1)


def _retyped(tensor: TensorSpec, dtype: str, run: Run) -> TensorSpec:
    if run.with_vectors and tensor.dtype == "uint8" and len(tensor.shape) == 1:
        # cuDNN's activations of all steps.
        return replace(tensor, shape=(tensor.shape[0] * _ITEM_BYTES[dtype] // _ITEM_BYTES[FULL],))
    is_other = dtype != tensor.dtype and _is_retyped(tensor, run)
    return replace(tensor, dtype=dtype) if is_other else tensor


def _with_tensors(op: Op, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> Op:
    """The operator on tensors of other dtypes; its traffic shrinks as they do."""
    if (inputs, outputs) == (op.inputs, op.outputs):
        return op
    share = total_bytes((*inputs, *outputs)) / max(total_bytes((*op.inputs, *op.outputs)), 1)
    return replace(
        op, inputs=inputs, outputs=outputs, bytes=round(op.bytes * share), measured_s=None, kernels=()
    )


def _cast(tensor: TensorSpec, source: str, target: str, phase: Phase, count: int) -> Op:
    num_bytes = numel(tensor) * (_ITEM_BYTES[source] + _ITEM_BYTES[target])
    before, after = (TensorSpec(shape=tensor.shape, dtype=dtype) for dtype in (source, target))
    return plain_op("aten::_to_copy", phase, before, after, num_bytes, count=count)


def result_of(op: Op, given: Sequence[str]) -> str:
    """The dtype of a result: normalisation keeps its input's, others promote to the widest.

    A vector that is added is the bias of a product that was taken apart, and cast with it. Operands that the
    script itself made of another dtype say nothing.
    """
    operands = [(t, dtype) for t, dtype in zip(op.inputs, given, strict=True) if t.dtype == FULL]
    if base_name(op.name) in ("add", "add_"):
        operands = [(t, dtype) for t, dtype in operands if len(t.shape) > 1] or operands
    if family_of(op).autocast.keeps_dtype:
        operands = operands[:1]
    dtypes = {dtype for _, dtype in operands} or {FULL}
    return FULL if FULL in dtypes else dtypes.pop()


def total_bytes(tensors: Sequence[TensorSpec]) -> int:
    """Of tensors together; those of other dtypes count one byte an element."""
    return sum(numel(tensor) * _ITEM_BYTES.get(tensor.dtype, 1) for tensor in tensors)
