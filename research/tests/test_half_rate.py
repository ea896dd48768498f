"""What GeForce boards reach, from made-up passes whose parts are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import TensorSpec
from research.half_rate import Pass, told_by, weight_of_products
from research.training.convolution_calls import Geometry, convolution_call
from research.training.whole_steps import Step
from tests.builders import make_op, make_trace

HALF = TensorSpec(shape=(64, 64), dtype="float16", stride=(64, 1))


def passes(products: float, attention: float, streams: float, number: int = 40, seed: int = 0) -> list[Pass]:
    """Passes whose parts take as much of what is predicted."""
    rng = np.random.default_rng(seed)
    parts = rng.uniform(0.1, 1.0, (number, 4))
    return [
        Pass(
            products_s=one[0],
            attention_s=one[1],
            streams_s=one[2],
            others_s=one[3],
            measured_s=float(one @ np.array([products, attention, streams, 1.0])),
        )
        for one in parts
    ]


@settings(max_examples=5, deadline=None)
@given(
    products=st.sampled_from([0.7, 0.9, 1.0, 1.2]),
    attention=st.sampled_from([0.5, 0.7, 1.0]),
    streams=st.sampled_from([0.85, 0.95]),
)
def test_the_weight_of_products_is_found_again(products: float, attention: float, streams: float) -> None:
    sets = [passes(products, attention, streams, seed=seed) for seed in (0, 1)]
    weight, off = weight_of_products(sets)
    assert weight == pytest.approx(products)
    assert off == pytest.approx([0.0, 0.0], abs=1e-9)


def test_boards_that_differ_count_alike_however_many_passes_each_has() -> None:
    few, many = passes(0.9, 1.0, 1.0, number=5), passes(0.9, 1.0, 1.0, number=50)
    assert weight_of_products([few, many])[0] == pytest.approx(0.9)


def step(*ops: object) -> Step:
    return Step(
        model="net", layout="nchw", gpu=resolve_gpu("RTX-4090"), trace=make_trace(ops=ops), time_s=1.0,
        release="2.4.0",
    )  # fmt: skip


def test_a_pass_is_told_by_its_families_and_not_where_convolutions_take_much() -> None:
    product = replace(make_op("aten::mm", flops=10**12), inputs=(HALF, HALF), outputs=(HALF,))
    gelu = make_op("aten::gelu", num_bytes=10**9)
    told = told_by(step(product, gelu))
    assert told is not None
    assert (told.products_s > 0, told.streams_s > 0, told.attention_s, told.measured_s) == (
        True,
        True,
        0.0,
        1.0,
    )
    shape = Geometry(
        in_channels=64, size=(64, 64), out_channels=64, out=(64, 64), filter=(3, 3), padding=(1, 1),
        stride=(1, 1),
    )  # fmt: skip
    heavy = convolution_call(shape, batch=256, dtype="float16", direction="forward", is_channels_last=False)
    assert told_by(step(heavy, gelu)) is None


def test_which_boards_have_such_tensor_cores() -> None:
    boards = {name for name, gpu in load_gpus().items() if gpu.has_half_rate_tensor_cores}
    assert {"RTX-3090", "RTX-4090", "RTX-5090", "RTX-2080-Ti", "A10G"} <= boards
    assert not boards & {
        "A100-SXM-80GB",
        "L40S",
        "L4",
        "T4",
        "H100-SXM-80GB",
        "A40",
        "V100-SXM-16GB",
        "MI300X",
    }
    assert not boards & {"P100-PCIE-16GB", "GTX-1080-Ti"}, "without tensor cores"
