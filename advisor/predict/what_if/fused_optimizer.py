"""A trace as if the optimizer were made with ``fused=True``: one kernel instead of a list operator each."""

from dataclasses import replace

from advisor.core.values import Op, Phase, Trace
from advisor.operators.family import base_name, names
from advisor.predict.what_if.batch import made_op
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
    own = {base_name(op.name) for op in steps}
    updates = [op for op in steps if base_name(op.name) == _OF_ADAM]
    if updates and "_foreach_maximum_" not in own:  # Nadam and others do more to reach the same update
        fused = [_fused("_fused_adam_", op, 4) for op in updates]
    elif steps and own <= set(_OF_SGD):
        # The update itself is the last of them.
        fused = [_fused("_fused_sgd_", steps[-1], 3 if "_foreach_mul_" in own else 2)]  # with momentum or not
    else:
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


def _fused(name: str, update: Op, num_lists: int) -> Op:
    """Parameters, gradients and states of the same shapes, all in one call."""
    lists, attributes = update.outputs * num_lists, {"num_tensors": len(update.outputs)}
    return made_op(f"aten::{name}", Phase.OPTIMIZER, lists, lists, {**attributes}, update.count)
