"""A trace as if the script computed in lower precision: ``torch.autocast``, or TF32."""

from collections.abc import Sequence
from dataclasses import replace

from advisor.core.values import MemoryUse, Op, Phase, TensorSpec, Trace
from advisor.operators.family import Tf32Flag, base_name, wanted_rate
from advisor.operators.registry import family_of
from advisor.predict.what_if import lowering
from advisor.predict.what_if.changed_memory import of_lower_precision
from advisor.predict.what_if.flash import in_flash_layout
from advisor.predict.what_if.held import held

# A trace as if the script ran its forward pass under ``torch.autocast``; no torch.
#
# The rules are those of ``aten/src/ATen/autocast_mode.h``: products, convolutions, attention and recurrent
# layers run in the lower precision, some operators (layer norm, losses, powers) in float32, all others in
# what they are given. What they are given follows from the operators that made it; where a trace does not
# tell which those were, from shapes.

_UNSCALE = "aten::_amp_foreach_non_finite_check_and_unscale_"


def under_autocast(trace: Trace, dtype: str) -> Trace | None:
    """The trace with float32 replaced where autocast would, and its casts added; FLOPs stay the same.

    None if there is nothing to replace: the script uses autocast, or its products are of other dtypes.
    Float16 adds the gradient scaler's pass over the gradients. Activations move as what the backward pass
    reads does, copies that were cast included. Times that were measured at full precision are dropped.

    Args:
        dtype: ``"bfloat16"`` or ``"float16"``.
    """
    if trace.precision.amp_dtype is not None or not any(map(_is_full_product, trace.ops)):
        return None
    is_followed = any(op.flows for op in trace.ops)
    if is_followed:
        followed = in_flash_layout(trace.ops) if dtype == "bfloat16" else trace.ops
        ops, casts = lowering.lowered_by_flows(followed, dtype, trace.accumulation)
    else:
        ops, casts = lowering.lowered_by_shapes(trace.ops, dtype)
    if dtype == "float16" and trace.memory.gradient_bytes:
        ops.append(_unscale(trace.memory.gradient_bytes))
    return replace(
        trace,
        ops=(*ops, *casts),
        precision=replace(trace.precision, amp_dtype=dtype),
        memory=_memory(trace, ops, casts),
        iteration_s=None,
    )


def _is_full_product(op: Op) -> bool:
    is_product = op.phase is not Phase.OPTIMIZER and lowering.is_lowered(op)
    return is_product and any(tensor.dtype == lowering.FULL for tensor in op.inputs)


def _memory(trace: Trace, ops: Sequence[Op], casts: Sequence[Op]) -> MemoryUse:
    """Activations are what passes hold then; what is unknown shrinks as forward results do."""
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
        op.count * lowering.total_bytes(op.outputs[:1])
        for op in ops
        if op.phase is Phase.FORWARD and not base_name(op.name).endswith("_")
    )


def _unscale(gradient_bytes: int) -> Op:
    gradients = TensorSpec(shape=(gradient_bytes // 4,), dtype=lowering.FULL)
    return lowering.plain_op(_UNSCALE, Phase.OPTIMIZER, gradients, gradients, 2 * gradient_bytes, count=1)


def allow_tf32(trace: Trace) -> Trace | None:
    """The trace after ``torch.set_float32_matmul_precision("high")``; None if that changes nothing.

    Convolutions have a flag of their own, which is on by default. Times of products that were measured at
    full precision are dropped.
    """

    def is_full(op: Op) -> bool:
        family = family_of(op)
        compute = family.compute
        is_switched = compute.tensor_cores and compute.tf32 is Tf32Flag.MATMUL
        return is_switched and wanted_rate(op, family, trace.precision) == "fp32"

    def unmeasured(op: Op) -> Op:
        return replace(op, measured_s=None, kernels=()) if is_full(op) else op

    if not any(is_full(op) for op in trace.ops):
        return None
    measured = any(op.measured_s is not None or op.kernels for op in trace.ops)
    return replace(
        trace,
        # Where there is nothing to drop they stay the same operators, of which much is known already.
        ops=tuple(map(unmeasured, trace.ops)) if measured else trace.ops,
        precision=replace(trace.precision, tf32_matmul=True),
        iteration_s=None,
    )
