"""What autocast makes of operators whose operands are followed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Op, Phase
from advisor.formats.trace_files import read_trace
from advisor.predict.what_if.precision import lowered_by_flows
from research.what_if_agreement import FOLDER
from research.what_if_scripts import SCRIPTS
from tests.unit.predict.what_if.following import GRADIENT, OUTSIDE, WEIGHT, backward, flow, followed, tensor

LOW, FULL = "bfloat16", "float32"
# As many rows as columns: no shape tells an activation from a weight.
X, VECTOR = tensor(8, 8), tensor(8)
LINEAR = followed("mm", [X, X], [X], flow(3, OUTSIDE, WEIGHT))


def dtypes(ops: list[Op], name: str) -> list[tuple[tuple[str, ...], str, int]]:
    """Of the operands and the first result, and how many calls."""
    return [
        (tuple(t.dtype for t in op.inputs), op.outputs[0].dtype, op.count)
        for op in ops
        if op.name == f"aten::{name}"
    ]


def casts(ops: list[Op]) -> list[tuple[Phase, str, str, int]]:
    return [(op.phase, op.inputs[0].dtype, op.outputs[0].dtype, op.count) for op in ops]


def test_what_a_product_made_is_low_and_what_an_embedding_made_is_not():
    """Both have the same shape."""
    words = followed("embedding", [X, tensor(8, dtype="int64")], [X], flow(4, WEIGHT, OUTSIDE))
    gelu = followed("gelu", [X], [X], flow(5, 3, count=2), flow(6, 4))
    ops, _ = lowered_by_flows([LINEAR, words, gelu], LOW)
    assert dtypes(ops, "embedding") == [((FULL, "int64"), FULL, 1)]
    assert dtypes(ops, "gelu") == [((LOW,), LOW, 2), ((FULL,), FULL, 1)]


def test_data_is_cast_for_a_product_and_has_no_gradient_that_is_cast_back():
    _, added = lowered_by_flows([LINEAR], LOW)
    assert sorted(casts(added)) == [
        (Phase.BACKWARD, LOW, FULL, 1),
        (Phase.FORWARD, FULL, LOW, 1),
        (Phase.FORWARD, FULL, LOW, 1),
    ]


@pytest.mark.parametrize(("passes", "expected"), [(1, 3), (2, 6)])
def test_a_parameter_is_cast_once_in_each_pass_and_activations_for_each_call(passes, expected):
    """Twelve calls share three weights."""
    shared = followed("mm", [X, X], [X], flow(4, 3, WEIGHT, count=12, parameters=3))
    _, added = lowered_by_flows([replace(LINEAR, flows=(flow(3, OUTSIDE, OUTSIDE),)), shared], LOW, passes)
    of_weights = [count for phase, _, _, count in casts(added) if phase is Phase.BACKWARD]
    assert of_weights == [expected]
    norm = followed("native_layer_norm", [X, VECTOR, VECTOR], [X], flow(5, 4, WEIGHT, WEIGHT, count=12))
    _, more = lowered_by_flows([LINEAR, shared, norm], LOW, passes)
    assert (Phase.FORWARD, LOW, FULL, 12) in casts(more)


@pytest.mark.parametrize(("first", "expected"), [(3, LOW), (4, FULL)])
def test_a_stream_of_residuals_is_as_wide_as_where_it_begins(first, expected):
    """Layers repeat: the first reads ``first``, all others what the layer before added."""
    words = followed("embedding", [X, tensor(8, dtype="int64")], [X], flow(4, WEIGHT, OUTSIDE))
    product = followed("mm", [X, X], [X], flow(5, first, WEIGHT), flow(5, 6, WEIGHT, count=3))
    add = followed("add", [X, X], [X], flow(6, first, 5), flow(6, 6, 5, count=3))
    ops, _ = lowered_by_flows([LINEAR, words, product, add], LOW)
    assert [(result, count) for _, result, count in dtypes(ops, "add")] == [(expected, 4)]


def test_a_gradient_has_the_dtype_of_what_it_is_of():
    """The product gives it low, and it is cast for the layer norm before."""
    norm = followed("native_layer_norm", [X, VECTOR, VECTOR], [X], flow(4, 3, WEIGHT, WEIGHT))
    second = followed("mm", [X, X], [X], flow(5, 4, WEIGHT))
    to_operand = backward("mm", [X, X], [X], flow(6, OUTSIDE, WEIGHT, of=5))
    of_norm = backward(
        "native_layer_norm_backward",
        [X, X, VECTOR, VECTOR],
        [X, VECTOR, VECTOR],
        flow(7, 6, 3, WEIGHT, WEIGHT, of=4),
    )
    of_first = backward("mm", [X, X], [X], flow(8, 7, OUTSIDE, of=3))
    ops, _ = lowered_by_flows([LINEAR, norm, second, to_operand, of_norm, of_first], LOW)
    assert dtypes(ops, "native_layer_norm_backward") == [((FULL,) * 4, FULL, 1)]
    assert [count for *_, count in dtypes(ops, "mm")] == [1, 1, 1, 1]
    assert {(*inputs, result) for inputs, result, _ in dtypes(ops, "mm")} == {(LOW, LOW, LOW)}


@pytest.mark.parametrize(("source", "expected"), [(3, LOW), (4, FULL)])
def test_gradients_are_added_in_the_dtype_of_what_both_are_of(source, expected):
    norm = followed("native_layer_norm", [X, VECTOR, VECTOR], [X], flow(4, 3, WEIGHT, WEIGHT))
    two = followed("mm", [X, X], [X], flow(5, source, WEIGHT, count=2))
    back = backward("mm", [X, X], [X], flow(6, OUTSIDE, WEIGHT, of=5, count=2))
    add = backward("add", [X, X], [X], flow(7, 6, 6, of=5))
    ops, _ = lowered_by_flows([LINEAR, norm, two, back, add], LOW)
    assert dtypes(ops, "add") == [((expected, expected), expected, 1)]


def test_undoing_a_view_keeps_the_dtype_of_what_was_viewed():
    wide = tensor(2, 8, 8)
    total = backward("sum", [wide], [X], flow(4, OUTSIDE, of=3, is_of_view=True))
    ops, _ = lowered_by_flows([LINEAR, total], LOW)
    assert dtypes(ops, "sum") == [((LOW,), LOW, 1)]


def test_gradients_of_several_passes_are_added_in_full_precision():
    back = backward("mm", [X, X], [X], flow(4, OUTSIDE, OUTSIDE, of=3))
    add = backward("add_", [X, X], [X], flow(5, GRADIENT, 4))
    ops, _ = lowered_by_flows([LINEAR, back, add], LOW)
    assert dtypes(ops, "add_") == [((FULL, FULL), FULL, 1)]


def test_the_bias_of_a_product_that_was_taken_apart_is_cast_and_another_vector_is_not():
    bias = followed("add", [X, VECTOR], [X], flow(4, 3, WEIGHT))
    other = followed("add", [X, VECTOR], [X], flow(5, 4, OUTSIDE))
    ops, added = lowered_by_flows([LINEAR, bias, other], LOW)
    assert dtypes(ops, "add")[0] == ((LOW, LOW), LOW, 1)
    assert len([op for op in added if op.inputs[0].shape == (8,)]) == 2
    assert dtypes(ops, "add")[1][0] == (LOW, FULL)


def test_what_is_empty_takes_any_dtype():
    """A cache of keys that begins as an empty tensor."""
    cat = followed("cat", [tensor(0), X], [X], flow(4, OUTSIDE, 3))
    ops, _ = lowered_by_flows([LINEAR, cat], LOW)
    assert [result for _, result, _ in dtypes(ops, "cat")] == [LOW]


def test_operators_that_nobody_followed_stay():
    step = replace(followed("_foreach_add_", [X], [X], phase=Phase.OPTIMIZER), count=1)
    assert lowered_by_flows([LINEAR, step], LOW)[0][-1] == step


@given(source=st.integers(0, 6), of=st.none() | st.integers(0, 6), is_of_view=st.booleans())
def test_wild_flows_end(source, of, is_of_view):
    """A damaged file may point anywhere, at itself too."""
    gelu = backward("gelu_backward", [X, X], [X], flow(4, source, 4, of=of, is_of_view=is_of_view))
    ops, _ = lowered_by_flows([LINEAR, gelu], LOW)
    assert sum(op.count for op in ops) == 2


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_calls_and_flops_stay_and_no_operator_grows(script):
    ops = read_trace(FOLDER / f"{script.name}-base.json.gz").ops
    lowered, added = lowered_by_flows(ops, LOW)
    assert sum(op.count for op in lowered) == sum(op.count for op in ops)
    assert sum(op.flops * op.count for op in lowered) == sum(op.flops * op.count for op in ops)
    assert sum(op.bytes * op.count for op in lowered) < sum(op.bytes * op.count for op in ops)
    assert added
    assert all(op.flops == 0 for op in added)
