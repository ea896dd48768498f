"""Which operands and results are parameters, stand for them, or are their gradients."""

import pytest

from advisor.core.values import Op, TensorSpec
from advisor.predict.what_if.held_tensors import Weights, with_weights
from tests.unit.predict.what_if.following import GRADIENT, OUTSIDE, WEIGHT, backward, flow, followed, tensor

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
