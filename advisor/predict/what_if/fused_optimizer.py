"""A trace as if the optimizer were made with ``fused=True``: one kernel instead of a list operator each."""

from dataclasses import replace

from advisor.core.values import Op, Phase, TensorSpec, Trace
from advisor.operators.family import base_name, names
from advisor.operators.registry import cost_of
from advisor.predict.what_if.changed_memory import of_fused_step

# Adam and AdamW divide by the root of their second moment; SGD only adds and scales.
_OF_ADAM = "_foreach_addcdiv_"
_OF_SGD = names("_foreach_add _foreach_add_ _foreach_mul_ _foreach_neg")
_CLIPPING = "_foreach_norm"
_LIST = "_foreach_"
_FUSED = "_fused_"


def with_fused_optimizer(trace: Trace) -> Trace | None:
    """The trace with Adam's, AdamW's or SGD's list operators replaced by the fused step.

    Clipping by norm keeps its own. None where the optimizer is another or fused already.
    """
    if is_fused(trace):
        # Such a step still counts itself with a list operator.
        return None
    steps = [op for op in trace.ops if _is_of_step(op)]
    fused = _adam(steps) or _sgd(steps)
    if fused is None:
        return None
    kept = tuple(op for op in trace.ops if not _is_of_step(op))
    return replace(trace, ops=(*kept, *fused), memory=of_fused_step(trace.memory), iteration_s=None)


def is_fused(trace: Trace) -> bool:
    """Whether an optimizer of the script steps by one kernel already."""
    return any(op.phase is Phase.OPTIMIZER and base_name(op.name).startswith(_FUSED) for op in trace.ops)


def _is_of_step(op: Op) -> bool:
    """Clipping scales by a tensor, the steps by numbers."""
    name = base_name(op.name)
    if op.phase is not Phase.OPTIMIZER or not name.startswith(_LIST) or name == _CLIPPING:
        return False
    return name != "_foreach_mul_" or "scalar" in op.attributes


def _adam(steps: list[Op]) -> tuple[Op, ...] | None:
    updates = [op for op in steps if base_name(op.name) == _OF_ADAM]
    # Nadam and others do more than this to reach the same update.
    is_plain = all(base_name(op.name) != "_foreach_maximum_" for op in steps)
    return tuple(_fused("_fused_adam_", op, 4) for op in updates) if updates and is_plain else None


def _sgd(steps: list[Op]) -> tuple[Op, ...] | None:
    if not steps or any(base_name(op.name) not in _OF_SGD for op in steps):
        return None
    # The update itself is the last of them.
    has_momentum = any(base_name(op.name) == "_foreach_mul_" for op in steps)
    return (_fused("_fused_sgd_", steps[-1], 3 if has_momentum else 2),)


def _fused(name: str, update: Op, num_lists: int) -> Op:
    """Parameters, gradients and states of the same shapes, all in one call."""
    parameters: tuple[TensorSpec, ...] = update.outputs
    attributes = {"num_tensors": len(parameters)}
    inputs = parameters * num_lists
    cost = cost_of(f"aten::{name}", inputs, inputs, attributes)
    return Op(
        name=f"aten::{name}",
        phase=Phase.OPTIMIZER,
        inputs=inputs,
        outputs=inputs,
        attributes=attributes,
        flops=cost.flops,
        bytes=cost.bytes,
        count=update.count,
    )
