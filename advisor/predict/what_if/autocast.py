"""A trace as if the script ran its forward pass under ``torch.autocast``; no torch.

The rules are those of ``aten/src/ATen/autocast_mode.h``: products, convolutions, attention and recurrent
layers run in the lower precision, some operators (layer norm, losses, powers) in float32, all others in what
they are given. A trace tells shapes, not which tensor goes where, so a tensor's dtype is that of the last one
of its shape, else of its size, that nobody has taken yet; where none is left, the one that most of its shape
have, and float32 where they are even.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from advisor.core.values import MemoryUse, Op, Phase, TensorSpec, Trace
from advisor.operators.family import base_name
from advisor.operators.registry import family_of
from advisor.predict.distinct import shared
from advisor.predict.what_if.changed_memory import of_lower_precision
from advisor.predict.what_if.held import FACTORS, held, parameter_shapes

FULL = "float32"
_FORWARD_OF = {"threshold": "relu"}
_ITEM_BYTES = {FULL: 4, "float16": 2, "bfloat16": 2, "float64": 8, "int64": 8, "int32": 4}
_UNSCALE = "aten::_amp_foreach_non_finite_check_and_unscale_"

Shape = tuple[int, ...]
_Call = tuple[int, str | None, tuple[str, ...]]


def under_autocast(trace: Trace, dtype: str) -> Trace | None:
    """The trace with float32 replaced where autocast would, and its casts added; FLOPs stay the same.

    None if there is nothing to replace: the script uses autocast, or its products are of other dtypes.
    Float16 adds the gradient scaler's pass over the gradients. Activations move as what the backward pass
    reads does, copies that were cast included. Times that were measured at full precision are dropped.

    Args:
        trace: of the script as it is.
        dtype: ``"bfloat16"`` or ``"float16"``.
    """
    if trace.precision.amp_dtype is not None or not any(map(_is_full_product, trace.ops)):
        return None
    walk = _Walk(lower=dtype, parameters=parameter_shapes(trace.ops))
    ops = [walk.lowered(op) for op in shared(trace.ops)]
    if dtype == "float16" and trace.memory.gradient_bytes:
        ops.append(_unscale(trace.memory.gradient_bytes))
    return replace(
        trace,
        ops=(*ops, *walk.casts),
        precision=replace(trace.precision, amp_dtype=dtype),
        memory=_memory(trace, ops, walk.casts),
        iteration_s=None,
    )


def _is_full_product(op: Op) -> bool:
    is_product = op.phase is not Phase.OPTIMIZER and _is_lowered(op)
    return is_product and any(tensor.dtype == FULL for tensor in op.inputs)


def _is_lowered(op: Op) -> bool:
    return family_of(op).compute.tensor_cores


def _memory(trace: Trace, ops: Sequence[Op], casts: Sequence[Op]) -> MemoryUse:
    """Activations are what passes hold then; what nobody can tell shrinks as forward results do."""
    before_bytes, gradient_bytes = _given_bytes(trace.ops), trace.memory.gradient_bytes or 0
    return of_lower_precision(
        trace.memory,
        held(trace.ops, trace.accumulation, gradient_bytes),
        held((*ops, *casts), trace.accumulation, gradient_bytes),
        _given_bytes(ops) / before_bytes if before_bytes else 1.0,
    )


def _given_bytes(ops: Sequence[Op]) -> int:
    """What forward operators give, those apart that write over what they are given."""
    return sum(
        op.count * _total_bytes(op.outputs[:1])
        for op in ops
        if op.phase is Phase.FORWARD and not base_name(op.name).endswith("_")
    )


def _unscale(gradient_bytes: int) -> Op:
    gradients = TensorSpec(shape=(gradient_bytes // 4,), dtype=FULL)
    return _op(_UNSCALE, Phase.OPTIMIZER, gradients, gradients, 2 * gradient_bytes, count=1)


def _op(name: str, phase: Phase, source: TensorSpec, target: TensorSpec, num_bytes: int, *, count: int) -> Op:
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


@dataclass(slots=True, kw_only=True)
class _Walk:
    """Follows the operators in the order they were recorded.

    Attributes:
        parameters: shapes of parameters, sorted.
        casts: casts met so far, those that the backward pass repeats the other way round included.
        waiting: by number of elements, the shapes and dtypes of tensors that nobody has taken yet.
        made_as: by shape, and by number of elements for what was given another one, how many were made in
            each dtype.
        made: what came of each operator, by how it runs and what it is given: its result's dtype, itself and
            its casts. Thousands of calls share a few.
        forward: by name and number of elements, the dtype a forward operator ran in.
        factors: the same, of what a product's largest operand had.
    """

    lower: str
    parameters: frozenset[Shape]
    casts: list[Op] = field(default_factory=list)
    waiting: dict[int, list[tuple[Shape, str]]] = field(default_factory=dict)
    made_as: dict[Shape, Counter[str]] = field(default_factory=dict)
    forward: dict[tuple[str, int], str] = field(default_factory=dict)
    factors: dict[tuple[str, int], str] = field(default_factory=dict)
    made: dict[_Call, tuple[str, Op, tuple[Op, ...]]] = field(default_factory=dict)

    def lowered(self, op: Op) -> Op:
        """The operator as autocast runs it."""
        if op.phase is Phase.OPTIMIZER:
            return op
        given, runs_in = self._given(op), self._precision(op)
        key = id(op), runs_in, given
        if key not in self.made:
            result = runs_in or _result(op, given)
            casts = tuple(_casts(op, given, result, is_promoted=runs_in is None))
            self.made[key] = result, _retyped_op(op, given, runs_in, result), casts
        result, lowered, casts = self.made[key]
        self.casts += casts
        if op.phase is Phase.FORWARD and op.inputs:
            self.forward[_key(op)] = result
            if base_name(op.name) in FACTORS:
                largest = max(range(len(given)), key=lambda i: _numel(op.inputs[i]))
                self.factors[_key(op)] = given[largest]
        for tensor in lowered.outputs:
            self._put(tensor, op)
        return lowered

    def _precision(self, op: Op) -> str | None:
        """The dtype an operator asks for; None if it takes what it is given."""
        name = base_name(op.name)
        if _is_lowered(op):
            return self.lower
        if name in family_of(op).autocast.full:
            return FULL
        if op.phase is Phase.BACKWARD and op.inputs and name not in FACTORS:
            return self.forward.get(_key(op))
        return None

    def _given(self, op: Op) -> tuple[str, ...]:
        """Dtypes of the operands; a factor's gradient is multiplied by what the forward pass was given."""
        if base_name(op.name) == "h2d_copy":
            return tuple([tensor.dtype for tensor in op.inputs])
        given = tuple([self._take(tensor) for tensor in op.inputs])
        if op.phase is Phase.BACKWARD and base_name(op.name) in FACTORS and len(given) == 2:
            return given[0], self.factors.get(_key(op), given[1])
        return given

    def _take(self, tensor: TensorSpec) -> str:
        """The dtype of an operand, which is float32 for parameters and for what came from outside."""
        if tensor.dtype != FULL:
            return tensor.dtype
        size = _numel(tensor)
        waiting = self.waiting.get(size, [])
        own = next((i for i in reversed(range(len(waiting))) if waiting[i][0] == tensor.shape), None)
        if own is not None:
            return waiting.pop(own)[1]
        if tuple(sorted(tensor.shape)) in self.parameters:
            return FULL
        seen = self.made_as.get(tensor.shape)
        if waiting and (seen is None or FULL in seen):  # given another shape
            return waiting.pop()[1]
        seen = seen or self.made_as.get((size,), Counter())
        return FULL if seen[FULL] >= seen[self.lower] else self.lower

    def _put(self, tensor: TensorSpec, op: Op) -> None:
        is_gradient = op.phase is Phase.BACKWARD and tuple(sorted(tensor.shape)) in self.parameters
        if is_gradient or tensor.dtype not in (FULL, self.lower):
            return
        size = _numel(tensor)
        self.waiting.setdefault(size, []).append((tensor.shape, tensor.dtype))
        # Of the backward pass it may be a guess, which would make more of them.
        if op.phase is Phase.FORWARD or tensor.dtype != FULL:
            for shape in {tensor.shape, (size,)}:
                self.made_as.setdefault(shape, Counter())[tensor.dtype] += op.count


def _casts(op: Op, given: Sequence[str], wanted: str, *, is_promoted: bool) -> Iterator[Op]:
    """Casts of a forward operator's operands, and of their gradients on the way back."""
    if op.phase is not Phase.FORWARD or not family_of(op).autocast.casts_operands:
        return
    for tensor, dtype in zip(op.inputs, given, strict=True):
        if (wanted if _is_retyped(tensor, is_lower=_is_lowered(op)) else tensor.dtype) == dtype:
            continue
        if not is_promoted:  # else the kernel itself reads both
            yield _cast(tensor, dtype, wanted, Phase.FORWARD, op.count)
        yield _cast(tensor, wanted, dtype, Phase.BACKWARD, op.count)


def _retyped_op(op: Op, given: Sequence[str], runs_in: str | None, result: str) -> Op:
    is_lower = _is_lowered(op)
    inputs = tuple(
        _retyped(tensor, runs_in or dtype, is_lower=is_lower)
        for tensor, dtype in zip(op.inputs, given, strict=True)
    )
    outputs = tuple(_retyped(tensor, result, is_lower=is_lower) for tensor in op.outputs)
    return _with_tensors(op, inputs, outputs)


def _is_retyped(tensor: TensorSpec, *, is_lower: bool) -> bool:
    """Float32 tensors get another dtype; statistics, scales and biases stay, save those of products."""
    return tensor.dtype == FULL and (is_lower or len(tensor.shape) > 1)


def _retyped(tensor: TensorSpec, dtype: str, *, is_lower: bool) -> TensorSpec:
    if is_lower and tensor.dtype == "uint8" and len(tensor.shape) == 1:  # cuDNN's activations of all steps
        return replace(tensor, shape=(tensor.shape[0] * _ITEM_BYTES[dtype] // _ITEM_BYTES[FULL],))
    is_other = dtype != tensor.dtype and _is_retyped(tensor, is_lower=is_lower)
    return replace(tensor, dtype=dtype) if is_other else tensor


def _with_tensors(op: Op, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> Op:
    """The operator on tensors of other dtypes; its traffic shrinks as they do."""
    if (inputs, outputs) == (op.inputs, op.outputs):
        return op
    share = _total_bytes((*inputs, *outputs)) / max(_total_bytes((*op.inputs, *op.outputs)), 1)
    return replace(
        op, inputs=inputs, outputs=outputs, bytes=round(op.bytes * share), measured_s=None, kernels=()
    )


def _cast(tensor: TensorSpec, source: str, target: str, phase: Phase, count: int) -> Op:
    num_bytes = _numel(tensor) * (_ITEM_BYTES[source] + _ITEM_BYTES[target])
    before, after = (TensorSpec(shape=tensor.shape, dtype=dtype) for dtype in (source, target))
    return _op("aten::_to_copy", phase, before, after, num_bytes, count=count)


def _result(op: Op, given: Sequence[str]) -> str:
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


def _stem(op: Op) -> str:
    """The name that an operator shares with its other pass."""
    name = base_name(op.name).removesuffix("_data").removesuffix("_backward").removesuffix("_forward")
    return _FORWARD_OF.get(name.strip("_"), name.strip("_"))


def _key(op: Op) -> tuple[str, int]:
    """By the largest operand: a pool or a loss has a smaller gradient, beside what it was given."""
    return _stem(op), max(map(_numel, op.inputs))


def _numel(tensor: TensorSpec) -> int:
    return math.prod(tensor.shape)


def _total_bytes(tensors: Sequence[TensorSpec]) -> int:
    return sum(_numel(tensor) * _ITEM_BYTES.get(tensor.dtype, 1) for tensor in tensors)
