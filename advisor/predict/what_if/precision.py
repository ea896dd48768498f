"""A trace as if the script computed in lower precision: ``torch.autocast``, or TF32."""

from collections.abc import Sequence
from dataclasses import replace

from advisor.core.values import Op, Phase, TensorSpec, Trace
from advisor.operators.family import Tf32Flag, base_name, wanted_rate
from advisor.operators.registry import family_of
from advisor.predict.host import SYNCHRONISING
from advisor.predict.what_if import lowering
from advisor.predict.what_if.changed_memory import of_lower_precision
from advisor.predict.what_if.flash import in_flash_layout
from advisor.predict.what_if.held import held

# The rules are those of ``aten/src/ATen/autocast_mode.h``: products, convolutions, attention and recurrent
# layers run in the lower precision, some operators (layer norm, losses, powers) in float32, all others in
# what they are given. What they are given follows from the operators that made it; where a trace does not
# tell which those were, from shapes.

_UNSCALE = "aten::_amp_foreach_non_finite_check_and_unscale_"


def under_autocast(trace: Trace, dtype: str) -> Trace | None:
    """The trace with float32 replaced where autocast would by ``"bfloat16"`` or ``"float16"``, and its casts.

    None if there is nothing to replace: the script uses autocast, or its products are of other dtypes. FLOPs
    stay the same. Float16 adds the gradient scaler's pass over the gradients, and its look for infinite ones,
    for which the host waits. Activations move as what the backward pass reads does, copies that were cast
    included. Times that were measured at full precision are dropped.
    """
    products = (op for op in trace.ops if op.phase is not Phase.OPTIMIZER and lowering.is_lowered(op))
    is_full = any(tensor.dtype == lowering.FULL for op in products for tensor in op.inputs)
    if trace.precision.amp_dtype is not None or not is_full:
        return None
    if any(op.flows for op in trace.ops):
        followed = in_flash_layout(trace.ops) if dtype == "bfloat16" else trace.ops
        ops, casts = lowering.lowered_by_flows(followed, dtype, trace.accumulation)
    else:
        ops, casts = lowering.lowered_by_shapes(trace.ops, dtype)
    gradient_bytes = trace.memory.gradient_bytes or 0
    if dtype == "float16" and gradient_bytes:
        gradients = TensorSpec(shape=(gradient_bytes // 4,), dtype=lowering.FULL)
        ops.append(
            lowering.plain_op(_UNSCALE, Phase.OPTIMIZER, gradients, gradients, 2 * gradient_bytes, count=1)
        )
        is_infinite = TensorSpec(shape=(), dtype=lowering.FULL)
        ops.append(lowering.plain_op(SYNCHRONISING, Phase.FORWARD, is_infinite, is_infinite, 4, count=1))
    # Activations are what passes hold then; what is unknown shrinks as forward results do.
    before, after = (held(one, trace.accumulation, gradient_bytes) for one in (trace.ops, (*ops, *casts)))
    before_bytes = _given_bytes(trace.ops)
    share = _given_bytes(ops) / before_bytes if before_bytes else 1.0
    return replace(
        trace,
        ops=(*ops, *casts),
        precision=replace(trace.precision, amp_dtype=dtype),
        memory=of_lower_precision(trace.memory, before, after, share),
        iteration_s=None,
    )


def _given_bytes(ops: Sequence[Op]) -> int:
    """What forward operators give, those apart that write over what they are given."""
    return sum(
        op.count * lowering.total_bytes(op.outputs[:1])
        for op in ops
        if op.phase is Phase.FORWARD and not base_name(op.name).endswith("_")
    )


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
