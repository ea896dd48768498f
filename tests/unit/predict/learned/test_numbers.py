"""Calls as numbers: which dimensions count, and that whatever cannot be told is None, never an error."""

import math
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from advisor.core.values import Op, Phase, TensorSpec
from advisor.operators.registry import rows
from advisor.predict.learned import shape_of
from tests.unit.predict.learned.values import (
    EXAMPLES,
    TENSOR_EXAMPLES,
    add,
    addmm,
    baddbmm,
    bmm,
    convolution,
    layer_norm,
    make_call,
    mm,
    softmax,
)

DIM = st.integers(1, 5000)


def values(op: Op) -> tuple[float, ...]:
    shape = shape_of(op)
    return shape.values


def sizes(op: Op, count: int) -> list[int]:
    """The first values, which are logarithms of sizes."""
    return [round(math.exp(value)) for value in values(op)[:count]]


def without(op: Op, inputs: int | None = None, outputs: int | None = None) -> Op:
    """The call as recorded by a profiler that left out operands."""
    return replace(op, inputs=op.inputs[:inputs], outputs=op.outputs[:outputs])


@given(DIM, DIM, DIM, DIM)
def test_products_are_told_by_b_m_n_k(b, m, n, k):
    assert sizes(mm(m, n, k), 4) == sizes(addmm(m, n, k), 4) == [1, m, n, k]
    assert sizes(bmm(b, m, n, k), 4) == sizes(baddbmm(b, m, n, k), 4) == [b, m, n, k]


@given(DIM, DIM, DIM)
def test_a_product_and_a_batch_of_one_are_the_same_but_for_their_layout(m, n, k):
    assert shape_of(mm(m, n, k)) == shape_of(addmm(m, n, k))
    assert values(mm(m, n, k))[:-1] == values(bmm(1, m, n, k))[:-1]


def strided(op: Op, stride: tuple[int, ...] | None) -> Op:
    """The product with its right operand stored so."""
    right = replace(op.inputs[-1], stride=stride)
    return replace(op, inputs=(*op.inputs[:-1], right))


@pytest.mark.parametrize(
    ("op", "stride", "layout"),
    [
        (mm(8, 4, 16), (1, 16), 1.0),
        (mm(8, 4, 16), (4, 1), 0.0),
        (addmm(8, 4, 16), (1, 32), 1.0),  # part of a larger one
        (bmm(2, 8, 4, 16), (64, 1, 16), 1.0),
        (bmm(2, 8, 4, 16), (64, 4, 1), 0.0),
        (mm(8, 4, 1), (1, 1), 0.0),
        (mm(8, 4, 16), None, 1.0),  # not recorded: linear layers were measured so,
        (bmm(2, 8, 4, 16), None, 0.0),  # and batches so
    ],
)
def test_the_last_value_tells_a_transposed_right_operand(op, stride, layout):
    assert values(strided(op, stride))[-1] == layout


@given(DIM, DIM, DIM)
def test_the_bias_tells_nothing(m, n, k):
    op = addmm(m, n, k)
    full = replace(op, inputs=(TensorSpec(shape=(m, n), dtype="float32"), *op.inputs[1:]))
    assert shape_of(full) == shape_of(op)


def test_sizes_of_whole_tiles_have_no_padding():
    whole = values(mm(1024, 2048, 512))
    assert whole[5:16] == (0.0,) * 11
    assert whole[16:19] == (3.0,) * 3  # all of them multiples of 8
    assert [round(math.exp(value)) for value in whole[19:22]] == [32 * 64, 16 * 32, 8 * 16]


def test_padding_is_what_tiles_add():
    numbers = values(mm(129, 1, 3))
    m, n, k = numbers[5:9], numbers[9:13], numbers[13:16]
    assert m == pytest.approx([math.log(size / 129) for size in (144, 160, 192, 256)])
    assert n == pytest.approx([math.log(size) for size in (16, 32, 64, 128)])
    assert k == pytest.approx([math.log(size / 3) for size in (4, 16, 32)])
    assert numbers[16:19] == (0.0, 0.0, 0.0)


SIZE_NAMES = ("batch", "c_in", "c_out", "pixels", "m", "k")
CONVOLUTION = convolution(8, 16, 32, 14)
PLAIN = dict(CONVOLUTION.attributes)
PRODUCTS = (mm(8, 8, 8), addmm(8, 8, 8), bmm(2, 8, 8, 8), baddbmm(2, 8, 8, 8))


def with_bytes(name: str, *shapes: tuple[int, ...], **attributes: object) -> Op:
    """A call of these shapes, the last of them its result, that has work and bytes all the same."""
    return replace(make_call(name, shapes[:-1], shapes[-1:], attributes), bytes=64)


UNKNOWN = {
    "operands-are-missing": [
        *(without(op, count) for op in (*PRODUCTS, CONVOLUTION) for count in range(len(op.inputs))),
        without(CONVOLUTION, outputs=0), without(add(4), 0),
    ],
    "no-work": [*(replace(op, flops=0) for op in (*PRODUCTS, CONVOLUTION)), replace(add(4), bytes=0)],
    "products-of-nothing-or-vectors": [
        with_bytes(name, *shapes, (4, 4))
        for name, *shapes in (
            ("mm", (0, 4), (4, 4)), ("mm", (4, 4), (4, 0)), ("mm", (4, 0), (0, 4)), ("mm", (), ()),
            ("mm", (4,), (4,)), ("mm", (4, 4), ()), ("bmm", (0, 4, 4), (0, 4, 4)),
            ("addmm", (0,), (4, 4), (4, 4)), ("addmm", (4,), (4, 4), (4, 0)),
            ("addmm", (4,), (0, 4), (4, 4)), ("baddbmm", (), (), ()),
        )
    ],
    "convolutions-that-were-not-measured": [
        convolution(8, 16, 32, kernel=1), convolution(8, 16, 32, kernel=5),
        convolution(8, 16, 32, stride=2), convolution(8, 16, 32, groups=2),
        convolution(8, 16, 16, groups=16), convolution(8, 16, 32, is_backward=True),
        replace(CONVOLUTION, name="aten::cudnn_convolution"),
    ],
    "odd-attributes": [
        replace(CONVOLUTION, attributes=PLAIN | {name: value})
        for name, values in {
            "transposed": (True, None),
            "dilation": ((2, 2), (1, 2), (1,), None),
            "stride": ((2, 2), (1, 2), (0, 0), (1,), (), None),
            "groups": (0, 64, None),
        }.items()
        for value in values
    ],
    "missing-attributes": [
        replace(CONVOLUTION, attributes={key: value for key, value in PLAIN.items() if key != name})
        for name in ("transposed", "dilation", "stride", "groups")
    ],
    "convolutions-of-other-dimensions-or-nothing": [
        with_bytes("convolution", *shapes, **PLAIN)
        for shapes in (
            ((8, 16, 14), (32, 16, 3), (8, 32, 14)),
            ((8, 16, 4, 14, 14), (32, 16, 3, 3, 3), (8, 32, 4, 14, 14)),
            ((16, 14, 14), (32, 16, 3, 3), (32, 14, 14)),
            ((8, 16, 14, 14), (32, 16, 3), (8, 32, 14, 14)),
            ((8, 16, 14, 14), (32, 16, 3, 3), (8, 32)),
            ((8, 16, 14, 14), (32, 16, 3, 3), ()),
            ((8, 16, 14, 14), (), (8, 32, 14, 14)),
            ((), (), ()),
            ((0, 16, 14, 14), (32, 16, 3, 3), (0, 32, 14, 14)),
            ((8, 16, 14, 14), (0, 16, 3, 3), (8, 0, 14, 14)),
            ((8, 16, 14, 14), (32, 16, 3, 3), (8, 32, 0, 14)),
        )
    ],
    "norms-of-no-size-or-dimension": [
        softmax(8, 19, 512), softmax(-4, 4), softmax(1.5, 0.1),  # type: ignore[arg-type]
        replace(softmax(8, 8), inputs=(TensorSpec(shape=("a",), dtype="float32"),)),  # type: ignore[arg-type]
        make_call("native_layer_norm", [(2, 3), (30,)], [(2, 3)]),
    ],
    "normalised-emptiness": [
        norm
        for shape in ((0, 4), (4, 0), (0,))
        for norm in (
            replace(softmax(*shape), bytes=64), with_bytes("native_layer_norm", (4, 3), shape, (4, 3))
        )
    ],
    "element-wise-on-nothing": [add(0), add(4, 0)],
    "unknown-operators": [
        replace(add(4), name=name)
        for name in ("mylib::mm2", "aten::embedding", "aten::max_pool2d", "advisor::h2d_copy", "")
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "op", [pytest.param(op, id=f"{why}-{i}") for why, ops in UNKNOWN.items() for i, op in enumerate(ops)]
)
def test_what_cannot_be_told_is_unknown(op):
    assert shape_of(op) is None


def conv_sizes(op: Op) -> dict[str, int]:
    return dict(zip(SIZE_NAMES, sizes(op, len(SIZE_NAMES)), strict=True))


def test_a_convolution_is_told_by_its_implicit_product():
    assert conv_sizes(CONVOLUTION) == {
        "batch": 8, "c_in": 16, "c_out": 32, "pixels": 196, "m": 8 * 196, "k": 16 * 9,
    }  # fmt: skip
    assert values(CONVOLUTION)[-3:-1] == (3.0, 3.0)  # channels are multiples of 8
    assert round(math.exp(values(CONVOLUTION)[-1])) == 13  # tiles of 128 x 64


@given(st.integers(1, 512), st.integers(1, 64), st.integers(1, 64), st.integers(1, 64))
def test_convolutions_of_any_size_are_known(batch, c_in, c_out, size):
    sizes = conv_sizes(convolution(batch, c_in, c_out, size))
    assert (sizes["c_in"], sizes["c_out"], sizes["pixels"]) == (c_in, c_out, size**2)
    assert sizes["m"] == sizes["batch"] * size**2


def test_more_than_64_images_are_as_efficient_as_64():
    assert shape_of(convolution(64, 16, 32)) == shape_of(convolution(256, 16, 32))
    assert shape_of(convolution(64, 16, 32)) != shape_of(convolution(63, 16, 32))


@pytest.mark.parametrize("padding", [(0, 0), (1, 1), (2, 2), None])
def test_padding_tells_nothing_beside_the_output(padding):
    attributes = PLAIN | {"padding": padding}
    assert shape_of(replace(CONVOLUTION, attributes=attributes)) == shape_of(CONVOLUTION)


def norm_sizes(op: Op) -> tuple[float, int, int]:
    """Whether it is a layer normalisation, columns, and elements."""
    numbers = values(op)
    return numbers[0], round(math.exp(numbers[1])), round(math.exp(numbers[-1]))


@given(DIM, DIM)
def test_softmax_takes_rows_of_the_last_dimension(rows, columns):
    assert norm_sizes(softmax(rows, columns)) == (0.0, columns, rows * columns)
    named = replace(softmax(rows, 1, columns), attributes={"dim": -1})
    assert shape_of(named) == shape_of(softmax(rows, columns))


def test_softmax_over_another_dimension_takes_that_one():
    assert norm_sizes(replace(softmax(8, 19, 4, 4), attributes={"dim": 1})) == (0.0, 19, 8 * 19 * 16)
    assert norm_sizes(softmax()) == (0.0, 1, 1)


@pytest.mark.parametrize("name", ["_softmax_backward_data", "_log_softmax", "_log_softmax_backward_data"])
def test_all_softmaxes_are_alike(name):
    op = make_call(name, [(64, 1000), (64, 1000)], [(64, 1000)])
    assert shape_of(op) == shape_of(softmax(64, 1000))


@given(DIM, DIM)
def test_layer_norm_takes_its_columns_from_its_weight(rows, columns):
    expected = (1.0, columns, rows * columns)
    assert norm_sizes(layer_norm(rows, columns)) == expected
    inputs = [(rows, columns), (rows, columns), (rows, 1), (rows, 1), (columns,), (columns,)]
    backward = make_call("native_layer_norm_backward", inputs, [(rows, columns)])
    assert norm_sizes(backward) == expected


def test_layer_norm_without_weights_takes_what_was_recorded():
    op = make_call("native_layer_norm", [(64, 7, 9)], [(64, 7, 9)])
    assert shape_of(op) is None
    assert norm_sizes(replace(op, attributes={"normalized_shape": (7, 9)})) == (1.0, 63, 64 * 63)
    weighted = make_call("native_layer_norm", [(64, 7, 9), (7, 9), (7, 9)], [(64, 7, 9)])
    assert norm_sizes(weighted) == (1.0, 63, 64 * 63)


@pytest.mark.parametrize(("columns", "is_wide"), [(1, 0.0), (1024, 0.0), (1025, 1.0), (16_384, 1.0)])
def test_wide_rows_are_told_apart(columns, is_wide):
    assert values(softmax(8, columns))[5] == is_wide


def test_rows_of_a_vocabulary_are_unlike_those_that_were_measured():
    assert shape_of(softmax(8, 50_257)) is None
    assert shape_of(layer_norm(8, 50_257)) is not None


@given(st.lists(DIM, max_size=4))
def test_element_wise_operators_are_told_by_bytes_and_tensors(shape):
    op = add(*shape)
    assert values(op)[:2] == (math.log(op.bytes), math.log(4))  # two sources, one target, and one


@pytest.mark.parametrize(
    ("name", "is_apart"),
    [
        ("add.Tensor", (0, 0)),
        ("pow.Tensor_Scalar", (1, 0)),
        ("pow.Tensor_Tensor", (1, 0)),
        ("tanh", (0, 1)),
        ("tanh_", (0, 1)),
        ("sigmoid", (0, 1)),
        ("tanh_backward", (0, 0)),
        ("gelu", (0, 0)),
    ],
)
def test_operators_of_many_instructions_are_told_apart(name, is_apart):
    """A tanh's gradient is two products: its bytes alone count."""
    assert values(make_call(name, [(64, 32)], [(64, 32)]))[2:] == is_apart


def test_broadcast_operands_do_not_count():
    op = make_call("add.Tensor", [(64, 32), (32,)], [(64, 32)])
    assert values(op)[1] == math.log(1 + 2)


def test_overloads_and_dtypes_change_nothing():
    op = add(64, 32)
    for name in ("aten::add", "aten::add.Scalar", "aten::mul.Tensor", "aten::gelu"):
        assert shape_of(replace(op, name=name)) == shape_of(op)
    assert shape_of(add(64, 32, dtype="bfloat16")) == shape_of(op)


def test_every_family_has_an_example():
    assert {*EXAMPLES, *TENSOR_EXAMPLES} == set(rows().network)
    assert {name: shape.network for name, op in EXAMPLES.items() if (shape := shape_of(op))} == {
        "gemm": "gemm",
        "conv": "conv",
        "norm": "norm",
        "pointwise": "pointwise",
    }


NAMES = [
    "mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward", "_softmax", "_log_softmax",
    "_softmax_backward_data", "native_layer_norm", "native_layer_norm_backward", "add.Tensor", "relu_",
    "embedding",
]  # fmt: skip
SHAPES = st.lists(st.one_of(st.integers(0, 8), st.integers(0, 2**40)), max_size=6).map(tuple)
ATTRIBUTES = st.fixed_dictionaries(
    {},
    optional={
        "transposed": st.booleans(),
        "dilation": st.sampled_from([(1, 1), (2, 2), (1,), ()]),
        "stride": st.sampled_from([(1, 1), (2, 1), (3,), (), None]),
        "groups": st.integers(0, 4),
    },
)
CALLS = st.builds(
    lambda name, inputs, outputs, attributes, flops, num_bytes: Op(
        name=f"aten::{name}",
        phase=Phase.FORWARD,
        inputs=tuple(TensorSpec(shape=shape, dtype="float32") for shape in inputs),
        outputs=tuple(TensorSpec(shape=shape, dtype="float32") for shape in outputs),
        attributes=attributes,
        flops=flops,
        bytes=num_bytes,
        count=1,
    ),
    st.sampled_from(NAMES),
    st.lists(SHAPES, max_size=7),
    st.lists(SHAPES, max_size=2),
    ATTRIBUTES,
    st.integers(0, 10**18),
    st.integers(0, 10**18),
)


@given(CALLS)
@example(CONVOLUTION)
@example(softmax())
def test_shapes_are_none_or_finite_whatever_was_recorded(op):
    shape = shape_of(op)
    if shape is not None:
        assert shape.network in rows().network
        assert all(math.isfinite(value) for value in shape.values)
        assert len(shape.values) == len(values(EXAMPLES[shape.network]))
