"""A trace in channels_last: which operators change, and that nothing else does."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Op
from advisor.operators.implicit_products import is_channels_last
from advisor.predict.what_if.channels_last import in_channels_last
from tests.builders import make_op, make_trace
from training.convolution_calls import DIRECTIONS, Geometry, convolution_call


def convolution(direction: str, channels: int, side: int, *, last: bool) -> Op:
    shape = Geometry(
        in_channels=channels, size=(side, side), out_channels=2 * channels, out=(side, side), filter=(3, 3),
        padding=(1, 1), stride=(1, 1),
    )  # fmt: skip
    return convolution_call(shape, batch=4, dtype="float16", direction=direction, is_channels_last=last)


@given(st.sampled_from(DIRECTIONS), st.integers(2, 64), st.integers(2, 30))
def test_it_is_what_a_profile_in_channels_last_records(direction: str, channels: int, side: int) -> None:
    turned = in_channels_last(make_trace(ops=(convolution(direction, channels, side, last=False),)))
    assert turned is not None
    assert turned.ops == (convolution(direction, channels, side, last=True),)
    assert in_channels_last(turned) is None


def test_other_operators_and_work_stay_and_measurements_go() -> None:
    other = make_op("aten::add.Tensor")
    op = replace(convolution("forward", 8, 4, last=False), measured_s=1.0)
    trace = replace(
        make_trace(
            ops=(
                other,
                op,
            )
        ),
        iteration_s=1.0,
    )
    turned = in_channels_last(trace)
    assert turned is not None
    assert turned.ops[0] is other
    assert (turned.ops[1].flops, turned.ops[1].bytes) == (op.flops, op.bytes)
    assert (turned.ops[1].measured_s, turned.iteration_s) == (None, None)
    assert all(map(is_channels_last, turned.ops[1].inputs))


def test_without_images_nothing_changes() -> None:
    assert in_channels_last(make_trace(ops=(make_op("aten::mm"),))) is None
