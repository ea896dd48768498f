"""One kernel for a step, where Adam, AdamW or SGD took one for each operation."""

from dataclasses import replace
from typing import Any

import pytest

from advisor.core.values import MemoryUse, Op, Phase, TensorSpec
from advisor.predict.what_if.fused_optimizer import with_fused_optimizer
from tests.builders import make_op, make_trace

TENSORS = tuple(TensorSpec(shape=shape, dtype="float32") for shape in ((64, 64), (64,)))
NUM_BYTES = 4 * (64 * 64 + 64)


def step(name: str, **attributes: Any) -> Op:
    made = make_op(f"aten::{name}", phase=Phase.OPTIMIZER)
    return replace(made, inputs=TENSORS, outputs=TENSORS, attributes={"num_tensors": 2, **attributes})


CLIPPING = (step("_foreach_norm"), step("_foreach_mul_"))
ADAM = (
    step("_foreach_lerp_", weight=0.1),
    step("_foreach_mul_", scalar=0.999),
    step("_foreach_addcmul_", value=0.001),
    step("_foreach_sqrt"),
    step("_foreach_addcdiv_", scalars=(0.1, 0.1)),
)


def fused(*ops: Op) -> list[Op]:
    trace = with_fused_optimizer(make_trace(ops=(make_op(), *ops)))
    return list(trace.ops[1:])


def test_adam_becomes_one_call_over_parameters_gradients_and_moments():
    *kept, one = fused(*CLIPPING, *ADAM)
    assert kept == list(CLIPPING)
    assert (one.name, one.count, len(one.inputs)) == ("aten::_fused_adam_", 1, 8)
    # Reads four lists, writes three of them: gradients stay.
    assert one.bytes == 7 * NUM_BYTES


@pytest.mark.parametrize(("momentum", "lists"), [(True, 3), (False, 2)])
def test_sgd_has_a_list_more_with_momentum(momentum, lists):
    ops = [step("_foreach_add", alpha=1e-4), *([step("_foreach_mul_", scalar=0.9)] if momentum else [])]
    (one,) = fused(*ops, step("_foreach_add_", alpha=-0.1))
    assert (one.name, len(one.inputs)) == ("aten::_fused_sgd_", 2 * lists)


@pytest.mark.parametrize("other", ["_fused_adamw_", "_foreach_maximum_", "_foreach_pow", "add_"])
def test_other_optimizers_stay(other):
    assert with_fused_optimizer(make_trace(ops=(make_op(), step(other)))) is None


def test_what_is_fused_already_counts_its_steps_with_a_list():
    counters, adam = step("_foreach_add_", scalar=1), step("_fused_adamw_", lr=0.1)
    assert with_fused_optimizer(make_trace(ops=(make_op(), counters, adam))) is None


def test_a_fused_norm_is_no_fused_step():
    norms = make_op("aten::_fused_rms_norm"), make_op("aten::_fused_rms_norm_backward", phase=Phase.BACKWARD)
    *kept, one = fused(*norms, *ADAM)
    assert kept == list(norms)
    assert one.name == "aten::_fused_adam_"


def test_the_lists_of_a_step_no_longer_count_at_its_peak():
    memory = MemoryUse(
        parameter_bytes=10, gradient_bytes=10, optimizer_bytes=20, activation_bytes=10, peak_bytes=50,
        pass_activation_bytes=5, pass_peak_bytes=35, most_activation_bytes=5,
    )  # fmt: skip
    trace = with_fused_optimizer(make_trace(ops=(make_op(), *ADAM), memory=memory))
    assert (trace.memory.peak_bytes, trace.memory.activation_bytes) == (40, 0)
