"""One kernel for a step of an optimizer, and which operands are parameters or stand for them."""

from dataclasses import replace
from typing import Any

import pytest

from advisor.core.values import MemoryUse, Op, Phase, TensorSpec
from advisor.predict.what_if.fused_optimizer import with_fused_optimizer
from advisor.predict.what_if.held_tensors import Weights, with_weights
from tests.builders import make_op, make_trace
from tests.unit.predict.what_if.following import GRADIENT, OUTSIDE, WEIGHT, backward, flow, followed, tensor

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


# An activation has the shape of the weight.
X, VECTOR = tensor(8, 8), tensor(8)
LINEAR = followed("mm", [X, X], [X], flow(3, OUTSIDE, WEIGHT))
TO_OPERAND = backward("mm", [X, X], [X], flow(4, OUTSIDE, WEIGHT, of=3))
TO_WEIGHT = backward("mm", [X, X], [X], flow(5, OUTSIDE, OUTSIDE, of=3))


def nothing(_: TensorSpec) -> bool:
    return False


def weights(*ops: Op) -> list[Weights]:
    return [found for _, found in with_weights(ops, nothing)]


def test_a_product_of_an_activation_and_a_weight_gives_an_activation():
    assert weights(LINEAR) == [Weights(inputs=(False, True), outputs=(False,))]


def test_of_both_gradients_the_one_that_reads_no_weight_is_the_weights():
    _, to_operand, to_weight = weights(LINEAR, TO_OPERAND, TO_WEIGHT)
    assert to_operand == Weights(inputs=(False, True), outputs=(False,))
    assert to_weight == Weights(inputs=(False, False), outputs=(True,))


def test_gradients_that_are_added_stay_gradients():
    """Of a weight that two layers share, and of several passes."""
    add = backward("add", [X, X], [X], flow(6, 5, 5))
    later = backward("add_", [X, X], [X], flow(7, GRADIENT, 6))
    *_, both, passes = weights(LINEAR, TO_WEIGHT, add, later)
    assert both == passes == Weights(inputs=(True, True), outputs=(True,))


def test_a_cast_of_a_weight_stands_for_it_and_what_it_is_multiplied_by_does_not():
    cast = followed("_to_copy", [X], [X], flow(6, WEIGHT))
    product = followed("mm", [X, X], [X], flow(7, OUTSIDE, 6))
    gradient = backward("mm", [X, X], [X], flow(8, OUTSIDE, OUTSIDE, of=7))
    back = backward("_to_copy", [X], [X], flow(9, 8, of=6))
    made, read, of_cast, of_weight = weights(cast, product, gradient, back)
    assert made.outputs == (True,)
    assert read == Weights(inputs=(False, True), outputs=(False,))
    assert of_cast.outputs == of_weight.outputs == (True,)


def test_a_norm_gives_the_gradients_of_its_operand_and_of_its_scales():
    norm = followed("native_layer_norm", [X, VECTOR, VECTOR], [X], flow(6, 3, WEIGHT, WEIGHT))
    back = backward(
        "native_layer_norm_backward", [X, X, VECTOR, VECTOR], [X, VECTOR, VECTOR],
        flow(7, OUTSIDE, 3, WEIGHT, WEIGHT, of=6),
    )  # fmt: skip
    assert weights(LINEAR, norm, back)[-1].outputs == (False, True, True)


def test_calls_that_differ_in_it_are_two_operators():
    scale = followed("mul", [X, X], [X], flow(6, 3, 3, count=2), flow(7, 3, WEIGHT))
    found = list(with_weights([LINEAR, scale], nothing))[1:]
    assert [(op.count, one.inputs) for op, one in found] == [(2, (False, False)), (1, (False, True))]
    assert [[one.id for one in op.flows] for op, _ in found] == [[6], [7]]


@pytest.mark.parametrize("is_followed", [True, False])
def test_where_nobody_knows_shapes_tell(is_followed):
    """Of what comes from outside, and of operators that were not followed."""
    flows = (flow(3, OUTSIDE, OUTSIDE),) if is_followed else ()
    op = followed("mm", [X, tensor(8, 9)], [tensor(8, 9)], *flows)
    ((_, found),) = with_weights([op], lambda given: given.shape == (8, 8))
    assert found.inputs == (True, False)
    assert found.outputs == (False,)
