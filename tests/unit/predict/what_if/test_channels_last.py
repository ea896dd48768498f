"""A trace in channels_last: which operators change, and that nothing else does."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Op, TensorSpec
from advisor.operators.convolution import is_channels_last
from advisor.predict.what_if.channels_last import in_channels_last
from research.training.convolution_calls import DIRECTIONS, Geometry, convolution_call
from tests.builders import make_op, make_trace


def convolution(direction: str, channels: int, side: int, *, last: bool) -> Op:
    shape = Geometry(
        in_channels=channels, size=(side, side), out_channels=2 * channels, out=(side, side), filter=(3, 3),
        padding=(1, 1), stride=(1, 1),
    )  # fmt: skip
    return convolution_call(shape, batch=4, dtype="float16", direction=direction, is_channels_last=last)


@given(st.sampled_from(DIRECTIONS), st.integers(2, 64), st.integers(2, 30))
def test_it_is_what_a_profile_in_channels_last_records(direction, channels, side):
    turned = in_channels_last(make_trace(ops=(convolution(direction, channels, side, last=False),)))
    assert turned.ops == (convolution(direction, channels, side, last=True),)
    assert in_channels_last(turned) is None


def test_other_operators_and_work_stay_and_measurements_go():
    other = make_op("aten::add.Tensor")
    op = replace(convolution("forward", 8, 4, last=False), measured_s=1.0)
    trace = replace(make_trace(ops=(other, op)), iteration_s=1.0)
    turned = in_channels_last(trace)
    assert turned.ops[0] is other
    assert (turned.ops[1].flops, turned.ops[1].bytes) == (op.flops, op.bytes)
    assert (turned.ops[1].measured_s, turned.iteration_s) == (None, None)
    assert all(map(is_channels_last, turned.ops[1].inputs))


IMAGE = TensorSpec(shape=(4, 8, 6, 6), dtype="float32", stride=(288, 36, 6, 1))


@pytest.mark.parametrize("name", ["native_group_norm", "native_group_norm_backward"])
def test_group_norm_knows_one_layout_so_its_image_is_copied_there_and_back(name):
    norm = replace(make_op(f"aten::{name}"), inputs=(IMAGE, IMAGE), outputs=(IMAGE,), count=3)
    turned = in_channels_last(make_trace(ops=(norm, convolution("forward", 8, 4, last=False))))
    there, back, kept = turned.ops[:3]
    assert kept is norm
    for copy in (there, back):
        assert (copy.name, copy.phase, copy.count) == ("aten::clone", norm.phase, 3)
        assert copy.bytes == 2 * 4 * 8 * 6 * 6 * 4
        assert is_channels_last(copy.inputs[0])
    assert in_channels_last(make_trace(ops=(norm,))) is None


def test_a_group_norm_of_rows_is_not_copied():
    rows = TensorSpec(shape=(4, 8), dtype="float32", stride=(8, 1))
    norm = replace(make_op("aten::native_group_norm"), inputs=(rows,), outputs=(rows,))
    turned = in_channels_last(make_trace(ops=(norm, convolution("forward", 8, 4, last=False))))
    assert turned is not None
    assert [op.name for op in turned.ops] == [norm.name, "aten::convolution"]


def test_without_images_nothing_changes():
    assert in_channels_last(make_trace(ops=(make_op("aten::mm"),))) is None


def product(rows: tuple[int, int], *, count: int = 1) -> Op:
    left = TensorSpec(shape=rows, dtype="float32", stride=(rows[1], 1))
    right = TensorSpec(shape=(rows[1], 5), dtype="float32", stride=(5, 1))
    return replace(make_op("aten::mm"), inputs=(left, right), count=count)


def test_images_that_a_product_reads_as_rows_are_copied():
    first = convolution("forward", 8, 4, last=False)
    flat = product((4, 16 * 4 * 4), count=3)
    turned = in_channels_last(make_trace(ops=(first, flat)))
    _, copy, kept = turned.ops
    assert kept is flat
    assert (copy.name, copy.phase, copy.count) == ("aten::clone", flat.phase, 3)
    assert is_channels_last(copy.inputs[0])
    assert copy.outputs == first.outputs
    assert copy.bytes == 2 * 4 * 16 * 4 * 4 * 2


@pytest.mark.parametrize(
    ("side", "rows"),
    [(1, (4, 16)), (4, (4 * 16, 16)), (4, (4, 16))],
    ids=["one pixel", "each pixel a row", "the mean of each"],
)
def test_other_rows_are_not(side, rows):
    turned = in_channels_last(make_trace(ops=(convolution("forward", 8, side, last=False), product(rows))))
    assert turned is not None
    assert [op.name for op in turned.ops] == ["aten::convolution", "aten::mm"]
