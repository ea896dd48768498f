"""Shapes, FLOPs and bytes out of profiled operators, by arithmetic done by hand."""

import math
from typing import Any

import pytest

from advisor.core.values import TensorSpec
from advisor.kineto.events import Autograd, HostEvent, cost_of_call, tensors_of

NO_AUTOGRAD = Autograd(forward={}, nodes={}, output={})
# 2 images of 3 channels, 8 x 8; 16 filters of 3 x 5 x 5: 2 x 16 x 4 x 4 results.
SOURCE, WEIGHT, RESULT = (2, 3, 8, 8), (16, 3, 5, 5), (2, 16, 4, 4)
SOURCE_BYTES, WEIGHT_BYTES, RESULT_BYTES = 4 * 384, 4 * 1200, 4 * 512
CONVOLUTION_FLOPS = 2 * 512 * (3 * 5 * 5)


def spec(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(shape=shape, dtype=dtype)


def host(
    name: str,
    dims: Any = (),
    *,
    types: Any = None,
    begin: float = 0.0,
    end: float = 1.0,
    thread: str = "1/1",
    sequence: Any = None,
    forward_thread: Any = None,
) -> HostEvent:
    args = {
        "input dims": [list(shape) if isinstance(shape, tuple) else shape for shape in dims],
        "input type": types,
        "sequence number": sequence,
        "fwd thread id": forward_thread,
    }
    named = {key: value for key, value in args.items() if value is not None}
    return HostEvent(name=name, thread=thread, begin_s=begin, end_s=end, args=named)


def cost(operator: HostEvent, autograd: Autograd = NO_AUTOGRAD) -> tuple[Any, int, int]:
    return cost_of_call(operator, tensors_of(operator), autograd)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("float", "float32"), ("double", "float64"), ("c10::Half", "float16"),
        ("c10::BFloat16", "bfloat16"), ("long int", "int64"), ("long", "int64"), ("int", "int32"),
        ("short", "int16"), ("short int", "int16"), ("signed char", "int8"), ("unsigned char", "uint8"),
        ("bool", "bool"),
    ],
)  # fmt: skip
def test_the_profilers_words_for_dtypes(kind, dtype):
    assert tensors_of(host("aten::x", [(2, 3)], types=[kind])) == (spec(2, 3, dtype=dtype),)


def test_scalars_lists_and_unknown_types_are_no_tensors():
    operator = host(
        "aten::x",
        [(2, 3), (), (4,), [[1, 2], [3, 4]], (5,), (6,)],
        types=["float", "float", "Scalar", "TensorList", "", "double"],
    )
    assert tensors_of(operator) == (spec(2, 3), spec(6, dtype="float64"))


@pytest.mark.parametrize("types", [None, []])
def test_without_dtypes_float32_is_assumed(types):
    assert tensors_of(host("aten::x", [(2, 3), ()], types=types)) == (spec(2, 3),)


def test_without_shapes_there_are_no_tensors():
    assert tensors_of(host("aten::x", types=["float"])) == ()
    assert tensors_of(HostEvent(name="x", thread="", begin_s=0, end_s=0, args={})) == ()


def test_of_nested_forward_operators_the_innermost_counts():
    outer, inner = host("aten::conv2d", sequence=5), host("aten::convolution", sequence=5)
    assert Autograd.of([outer, inner]).forward == {5: inner}


def test_the_first_input_of_a_node_has_the_shape_of_the_forwards_output():
    node = host("MmBackward0", [(4, 6), (9, 9)], sequence=5, forward_thread=1)
    again = host("MmBackward0", [(7, 7)], sequence=5, forward_thread=1)
    autograd = Autograd.of([node, again])
    assert autograd.output == {5: spec(4, 6)}
    assert autograd.forward == {}
    assert autograd.nodes == {"1/1": [node, again]}


@pytest.mark.parametrize("sequence", [None, -1])
def test_without_a_sequence_number_nothing_is_tied(sequence):
    autograd = Autograd.of([host("aten::mm", [(2, 2)], sequence=sequence, forward_thread=1)])
    assert (autograd.forward, autograd.nodes, autograd.output) == ({}, {}, {})


def test_sequence_numbers_begin_at_zero():
    operator = host("aten::mm", sequence=0, forward_thread=0)
    assert Autograd.of([operator]).forward == {0: operator}


def test_the_node_around_an_operator():
    early = host("A", begin=0, end=10, sequence=1, forward_thread=1)
    outer = host("B", begin=20, end=50, sequence=2, forward_thread=1)
    inner = host("C", begin=30, end=40, sequence=3, forward_thread=1)
    other = host("D", begin=30, end=40, sequence=4, forward_thread=1, thread="1/9")
    autograd = Autograd.of([early, outer, inner, other])
    assert autograd.node_of(host("x", begin=30, end=40)) is inner
    assert autograd.node_of(host("x", begin=35, end=45)) is outer
    assert autograd.node_of(host("x", begin=20, end=25)) is outer
    assert autograd.node_of(host("x", begin=60, end=61)) is None
    assert autograd.node_of(host("x", begin=15, end=16)) is None
    assert autograd.node_of(host("x", begin=30, end=31, thread="1/9")) is other
    assert autograd.node_of(host("x", begin=30, end=31, thread="1/7")) is None


def test_without_operator_or_shapes_the_cost_is_unknown():
    assert cost_of_call(None, (spec(2),), NO_AUTOGRAD) == ((), 0, 0)
    assert cost(host("aten::mm")) == ((), 0, 0)


@pytest.mark.parametrize(
    ("name", "dims", "result", "inner"),
    [
        ("mm", [(3, 5), (5, 7)], (3, 7), 5),
        ("addmm", [(7,), (3, 5), (5, 7)], (3, 7), 5),
        ("bmm", [(2, 3, 5), (2, 5, 7)], (2, 3, 7), 5),
        ("baddbmm", [(2, 3, 7), (2, 3, 5), (2, 5, 7)], (2, 3, 7), 5),
    ],
)
def test_products(name, dims, result, inner):
    outputs, flops, num_bytes = cost(host(f"aten::{name}", dims, types=["c10::Half"] * len(dims)))
    assert outputs == (spec(*result, dtype="float16"),)
    assert flops == 2 * math.prod(result) * inner
    assert num_bytes == 2 * sum(math.prod(shape) for shape in (*dims, result))


def test_in_place_operators_write_their_first_input():
    outputs, flops, num_bytes = cost(host("aten::add_", [(4, 6), (6,)]))
    assert (outputs, flops, num_bytes) == ((spec(4, 6),), 24, 4 * (24 + 6 + 24))


def test_the_backward_pass_tells_the_shape_of_an_output():
    autograd = Autograd(forward={}, nodes={}, output={5: spec(9, 9)})
    operator = host("aten::some_new_op", [(4, 6)], sequence=5)
    outputs, _, num_bytes = cost(operator, autograd)
    assert (outputs, num_bytes) == ((spec(9, 9),), 4 * (24 + 81))
    # Another call's shape is no help: then the largest input.
    outputs, _, num_bytes = cost(host("aten::some_new_op", [(6,), (4, 6)], sequence=6), autograd)
    assert (outputs, num_bytes) == ((spec(4, 6),), 4 * (6 + 24 + 24))


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_reductions_write_next_to_nothing(name):
    assert cost(host(f"aten::{name}", [(4, 6)])) == ((), 24, 96)


def test_the_suffix_of_an_overload_does_not_matter():
    assert cost(host("aten::mm.out", [(3, 5), (5, 7)]))[0] == (spec(3, 7),)


def test_arguments_of_an_older_torch_leave_the_bytes():
    # Its attributes are not in the profile.
    outputs, flops, num_bytes = cost(host("aten::_cudnn_rnn", [(4, 6), (3, 6)]))
    assert (outputs, flops, num_bytes) == ((spec(4, 6),), 0, 4 * (24 + 18 + 24))


def backward_of(name: str, *, dims: Any = (RESULT, WEIGHT), sequence: int = 5) -> tuple[Any, int, int]:
    forward = host("aten::cudnn_convolution", [SOURCE, WEIGHT], sequence=5)
    node = host("Backward0", [RESULT], begin=10, end=20, sequence=sequence, forward_thread=1)
    return cost(host(name, dims, begin=12, end=18), Autograd.of([forward, node]))


@pytest.mark.parametrize("name", ["convolution", "cudnn_convolution", "_convolution"])
def test_a_convolutions_output_comes_from_its_node(name):
    autograd = Autograd(forward={}, nodes={}, output={5: spec(*RESULT)})
    outputs, flops, num_bytes = cost(host(f"aten::{name}", [SOURCE, WEIGHT, (16,)], sequence=5), autograd)
    assert outputs == (spec(*RESULT),)
    assert flops == CONVOLUTION_FLOPS == 76800
    assert num_bytes == SOURCE_BYTES + WEIGHT_BYTES + 4 * 16 + RESULT_BYTES


@pytest.mark.parametrize("sequence", [None, 6])
def test_without_a_node_a_convolution_has_bytes_alone(sequence):
    autograd = Autograd(forward={}, nodes={}, output={5: spec(*RESULT)})
    costs = cost(host("aten::convolution", [SOURCE, WEIGHT], sequence=sequence), autograd)
    assert costs == ((), 0, SOURCE_BYTES + WEIGHT_BYTES)


@pytest.mark.parametrize(
    ("dims", "flops"),
    [
        # One dimension: 2 x 16 x 4 results of 3 x 5 products; fewer are no filters.
        ([(2, 3, 8), (16, 3, 5)], 2 * 512 * 15),
        ([(2, 3), (16, 3)], 0),
        ([SOURCE], 0),
    ],
)
def test_filters_have_three_dimensions_at_least(dims, flops):
    autograd = Autograd(forward={}, nodes={}, output={5: spec(*RESULT)})
    assert cost(host("aten::convolution", dims, sequence=5), autograd)[1] == flops


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("aten::convolution_backward", 2),
        ("aten::cudnn_convolution_backward_input", 1),
        ("aten::cudnn_convolution_backward_weight", 1),
    ],
)
def test_each_gradient_of_a_convolution_costs_one_forward(name, parts):
    outputs, flops, num_bytes = backward_of(name)
    assert (outputs, flops) == ((), parts * CONVOLUTION_FLOPS)
    assert num_bytes == SOURCE_BYTES + WEIGHT_BYTES + RESULT_BYTES


def test_the_bias_of_a_convolution_is_not_read_backward():
    forward = host("aten::convolution", [SOURCE, WEIGHT, (16,)], sequence=5)
    node = host("Backward0", [RESULT], begin=10, end=20, sequence=5, forward_thread=1)
    operator = host("aten::convolution_backward", [RESULT], begin=12, end=18)
    _, _, num_bytes = cost(operator, Autograd.of([forward, node]))
    assert num_bytes == SOURCE_BYTES + WEIGHT_BYTES + RESULT_BYTES


def test_a_backward_convolution_without_its_forward():
    # The gradient is known, what it was computed from is not.
    assert backward_of("aten::convolution_backward", sequence=6) == ((), 0, RESULT_BYTES)
    assert cost(host("aten::convolution_backward", [RESULT, WEIGHT])) == ((), 0, 0)


def test_a_sparse_operand_of_which_only_the_shape_is_known_costs_its_bytes():
    inputs = (spec(400, 400), spec(400, 8))
    outputs, flops, num_bytes = cost_of_call(host("aten::_sparse_mm"), inputs, NO_AUTOGRAD)
    assert flops == 0
    assert num_bytes == 4 * sum(math.prod(tensor.shape) for tensor in (*inputs, *outputs))
