"""Calls on a GPU: grouped once, evaluated as slow loops do it, with every opinion bounded."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from advisor.core.gpus import resolve_gpu
from advisor.predict.knowledge import LearnedNetwork, silu
from advisor.predict.learned import grouped, kernel_times, shape_of
from tests.builders import make_gpu, make_op
from tests.unit.predict.learned.values import (
    EXAMPLES,
    add,
    board,
    calls_of,
    make_network,
    make_networks,
    mm,
    slow_outputs,
    softmax,
)

T4 = resolve_gpu("T4")
PEAK = 8e12


def constant_network(
    num_features: int, compute: float, memory: float, log_scale: float = -9.0
) -> LearnedNetwork:
    """Two members that say the same of every call."""
    zeros = np.zeros(num_features, np.float32)
    output = np.array([compute, memory, log_scale], np.float32)
    return LearnedNetwork(
        low=zeros - 100,
        high=zeros + 100,
        mean=zeros,
        scale=zeros + 1,
        weights=tuple(np.zeros((2, *size), np.float32) for size in ((num_features, 4), (4, 4), (4, 3))),
        biases=(np.zeros((2, 1, 4), np.float32), np.zeros((2, 1, 4), np.float32), np.tile(output, (2, 1, 1))),
    )


def test_calls_are_grouped_by_family_in_their_order():
    ops = [add(4), mm(2, 3, 4), make_op("aten::embedding"), softmax(5, 6), add(7), mm(8, 9, 10)]
    by_network = {calls.network: calls for calls in grouped(ops)}
    assert {family: calls.index.tolist() for family, calls in by_network.items()} == {
        "gemm": [1, 5],
        "norm": [3],
        "pointwise": [0, 4],
        "tensor_gemm": [1, 5],  # at another rate
    }
    for name, calls in by_network.items():
        for row, i in zip(calls.features, calls.index, strict=True):
            shape = shape_of(ops[i], "tf32" if name == "tensor_gemm" else "fp32")
            assert (row == np.array(shape.values, np.float32)).all()
        assert calls.num_bytes.tolist() == [ops[i].bytes for i in calls.index]
    assert by_network["gemm"].flops.tolist() == [48.0, 1440.0]


def test_only_products_and_convolutions_count_their_flops():
    by_network = {calls.network: calls.flops.tolist() for calls in grouped(tuple(EXAMPLES.values()))}
    assert by_network["norm"] == by_network["pointwise"] == [0.0]
    assert by_network["gemm"] == [EXAMPLES["gemm"].flops]
    assert by_network["conv"] == [EXAMPLES["conv"].flops]


@pytest.mark.parametrize("ops", [[], [make_op("aten::embedding")], [add(0)]])
def test_nothing_known_is_no_group(ops):
    assert grouped(ops) == ()


@pytest.mark.parametrize("opinion", [50.0, -50.0, 1e30])
def test_an_opinion_stays_within_a_factor_of_the_roofline(opinion):
    op = EXAMPLES["gemm"]
    calls = calls_of([op], "gemm")
    network = constant_network(calls.features.shape[1] + 2, opinion, opinion)
    roofline_s = op.flops / PEAK + op.bytes / T4.memory_bytes_per_s
    times = kernel_times(network, calls, T4, PEAK)
    assert times.time_s == pytest.approx([roofline_s * math.exp(math.copysign(4.0, opinion))], rel=1e-6)


@pytest.mark.parametrize(("log_scale", "sigma"), [(-2.0, math.exp(-2)), (-50, math.exp(-6)), (9, math.e)])
def test_members_that_agree_are_as_unsure_as_they_say(log_scale, sigma):
    calls = calls_of([EXAMPLES["gemm"]], "gemm")
    network = constant_network(calls.features.shape[1] + 2, 0.0, 0.0, log_scale)
    assert kernel_times(network, calls, T4, PEAK).sigma == pytest.approx([sigma], rel=1e-6)


def test_a_peak_that_nobody_knows_gives_a_time_that_nobody_knows():
    calls = calls_of([mm(64, 64, 64), mm(64, 64, 64)], "gemm")
    times = kernel_times(make_networks()["gemm"], calls, T4, np.array([PEAK, np.nan]))
    assert np.isnan(times.time_s).tolist() == [False, True]


def test_the_board_is_its_power_and_its_compute_capability():
    gpu = make_gpu(tdp_w=250.0, compute_capability="8.6")
    assert board(gpu) == pytest.approx((math.log(250.0), 8.6), rel=1e-6)


NETWORK = make_network(5)
ROWS = arrays.arrays(np.float32, (4, 5), elements=st.floats(-100, 100, width=32))


@given(ROWS, st.integers(0, 5))
def test_outputs_are_those_of_slow_loops(rows, seed):
    network = make_network(5, seed)
    outputs = network.outputs(rows)
    assert outputs.shape == (3, 4, 3)
    for i, row in enumerate(rows):
        expected = np.array(slow_outputs(network, row.tolist()))
        assert outputs[:, i] == pytest.approx(expected, rel=1e-5, abs=1e-5)


@given(ROWS)
def test_beyond_the_range_it_is_as_at_the_edge(rows):
    inside = np.clip(rows, NETWORK.low, NETWORK.high)
    assert (NETWORK.outputs(rows) == NETWORK.outputs(inside)).all()


def test_the_edges_themselves_differ():
    low, high = NETWORK.outputs(NETWORK.low[None]), NETWORK.outputs(NETWORK.high[None])
    assert not np.allclose(low, high)


@pytest.mark.parametrize("value", [math.inf, -math.inf, 3e38, -3e38])
def test_features_without_bound_are_at_the_edge(value):
    edge = NETWORK.high if value > 0 else NETWORK.low
    assert (NETWORK.outputs(np.full((1, 5), value, np.float32)) == NETWORK.outputs(edge[None])).all()


def test_no_rows_give_no_outputs():
    assert NETWORK.outputs(np.zeros((0, 5), np.float32)).shape == (3, 0, 3)


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_silu_never_overflows(value):
    with np.errstate(over="raise", invalid="raise"):
        output = float(silu(np.array([value], np.float32))[0])
    assert math.isfinite(output)
    assert min(value, -0.3) <= output <= max(value, 0.0)
