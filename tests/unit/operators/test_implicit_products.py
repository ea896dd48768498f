"""Convolutions as matrix products: layouts, passes, and the law that no work is lost."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import load_gpus
from advisor.core.values import Op, TensorSpec
from advisor.operators.convolution import (
    NUM_CUDNN_FEATURES,
    NUM_FEATURES,
    WAVES,
    cudnn_features,
    features,
    is_channels_last,
)
from research.training.convolution_calls import DIRECTIONS, Geometry, convolution_call

_ROWS, _COLUMNS, _INNER, _IN_CHANNELS, _GROUPS = 1, 2, 3, 4, 6
_IS_CHANNELS_LAST, _IS_DEPTHWISE, _IS_GROUPED = 13, 14, 15


def geometry(
    channels: int = 64, filters: int = 128, side: int = 14, *, tap: int = 3, groups: int = 1
) -> Geometry:
    return Geometry(
        in_channels=channels, size=(side, side), out_channels=filters, out=(side, side), filter=(tap, tap),
        padding=(tap // 2,) * 2, stride=(1, 1), groups=groups,
    )  # fmt: skip


def call(shape: Geometry, direction: str = "forward", *, last: bool = False, batch: int = 8) -> Op:
    return convolution_call(shape, batch=batch, dtype="float16", direction=direction, is_channels_last=last)


def numbers(op: Op) -> tuple[float, ...]:
    values = features(op)
    assert values is not None
    return values


@given(
    st.sampled_from(DIRECTIONS), st.integers(1, 64), st.integers(1, 64), st.integers(1, 30),
    st.sampled_from([1, 3, 5]), st.sampled_from([1, 2, 7]), st.booleans(),
)  # fmt: skip
def test_the_product_does_the_work_of_the_convolution(direction, channels, filters, side, tap, groups, last):
    op = call(
        geometry(groups * channels, groups * filters, side, tap=tap, groups=groups), direction, last=last
    )
    values = numbers(op)
    assert len(values) == NUM_FEATURES
    product = math.exp(values[_ROWS] + values[_COLUMNS] + values[_INNER] + values[_GROUPS])
    assert 2 * product == pytest.approx(op.flops, rel=1e-6)


@given(st.sampled_from(DIRECTIONS), st.integers(2, 64), st.integers(2, 30))
def test_the_layout_changes_nothing_but_its_own_features(direction, channels, side):
    nchw, nhwc = (
        numbers(call(geometry(channels, side=side), direction, last=last)) for last in (False, True)
    )
    assert [i for i in range(NUM_FEATURES) if nchw[i] != nhwc[i]] == [_IS_CHANNELS_LAST]


@pytest.mark.parametrize(
    ("channels", "groups", "depthwise", "grouped"),
    [(64, 1, 0, 0), (64, 64, 1, 0), (64, 8, 0, 1), (1, 1, 0, 0)],
)
def test_depthwise_is_not_grouped(channels, groups, depthwise, grouped):
    values = numbers(call(geometry(channels, groups * 2, groups=groups)))
    assert (values[_IS_DEPTHWISE], values[_IS_GROUPED]) == (depthwise, grouped)
    assert math.exp(values[_IN_CHANNELS]) == pytest.approx(channels // groups)


@pytest.mark.parametrize(
    ("channels", "filters", "groups", "last", "has_kernel"),
    [
        (128, 128, 32, True, 1),
        (128, 128, 32, False, 0),  # NCHW has others
        (128, 256, 32, True, 0),  # senet154: twice as many filters
        (64, 64, 8, True, 0),  # res2next50: few channels
        (64, 64, 32, True, 0),  # dla60x_c: two channels each
        (1280, 1280, 32, True, 1),  # forty
        (384, 384, 8, True, 1),  # visformer: forty-eight
        (256, 256, 4, True, 0),  # eca_nfnet: sixty-four
        (128, 128, 1, True, 0),
        (128, 128, 128, True, 0),  # depthwise
    ],
)
def test_tensor_cores_compute_some_groups_in_channels_last(channels, filters, groups, last, has_kernel):
    op = call(geometry(channels, filters, groups=groups), last=last)
    values = cudnn_features(op)
    assert len(values) == NUM_CUDNN_FEATURES
    assert values == (*numbers(op), has_kernel)


def test_one_channel_or_one_pixel_tells_no_layout():
    shape = (8, 16, 4, 4)
    assert is_channels_last(TensorSpec(shape=shape, dtype="float16", stride=(256, 1, 64, 16)))
    assert not is_channels_last(TensorSpec(shape=shape, dtype="float16", stride=(256, 16, 4, 1)))
    assert not is_channels_last(TensorSpec(shape=shape, dtype="float16"))
    assert not is_channels_last(TensorSpec(shape=(8, 16, 1, 1), dtype="float16", stride=(16, 1, 16, 16)))
    assert not is_channels_last(TensorSpec(shape=(8, 1, 4, 4), dtype="float16", stride=(16, 1, 4, 1)))


def test_what_was_not_measured_is_unknown():
    op = call(geometry())
    assert features(replace(op, attributes={**op.attributes, "transposed": True})) is None
    assert features(replace(op, flops=0)) is None
    assert cudnn_features(replace(op, flops=0)) is None
    flat = tuple(TensorSpec(shape=tensor.shape[:3], dtype="float16") for tensor in op.inputs)
    assert features(replace(op, inputs=flat)) is None


@given(st.integers(1, 512), st.integers(1, 64))
def test_more_sms_make_fewer_waves(channels, batch):
    row = np.array([numbers(call(geometry(channels), batch=batch))], np.float32)
    few, many = (WAVES.features(row, load_gpus()[name])[0] for name in ("T4", "H100-SXM-80GB"))
    assert many[0] < few[0]
    assert min(few[1], many[1]) >= 0  # the last wave is never more than full
