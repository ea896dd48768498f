"""Widths of intervals: what each method is worth, weighed by time."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import GpuSpec, Interval, Layout, Method, Op, Phase, Precision, TensorSpec
from advisor.predict.constants import constants_for
from advisor.predict.distinct import columns_of
from advisor.predict.exchange.collective_time import ScalingConstants
from advisor.predict.exchange.data_parallel import exchange_of_gradients
from advisor.predict.host import HostCall, host_costs
from advisor.predict.interval import LEFT_IN_A_STEP, SIGMA_LAB, spread, widened
from advisor.predict.iteration import predict
from advisor.predict.knowledge import Knowledge, shipped
from advisor.predict.methods import METHODS, OpTimes, in_a_step, op_times
from tests.builders import make_gpu, make_op, make_trace

Z90 = 1.2815515655446004


def step_sigma(*parts: tuple[str, float, float, float], method: Method = Method.ROOFLINE) -> float:
    """Of operators by name, seconds, sigma, and what of that is their own."""
    names, time_s, sigmas, own = zip(*parts, strict=True)
    return OpTimes(
        columns=columns_of(tuple(map(make_op, names))),
        time_s=np.array(time_s),
        sigma=np.array(sigmas),
        own_sigma=np.array(own),
        methods=np.full(len(parts), METHODS.index(method)),
        constants={},
    ).step_sigma


def of_step(sigma: float) -> float:
    """With what labs differ by."""
    return math.hypot(sigma, SIGMA_LAB)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        # A family's error is shared in part, however many operators there are of it.
        ([("aten::mm", 0.1, 0.25, 0.0)] * 100, LEFT_IN_A_STEP * 0.25),
        # Those of families, and what is each operator's own, have nothing to do with each other.
        ([("aten::mm", 1.0, 0.25, 0.0), ("aten::relu", 1.0, 0.25, 0.0)], LEFT_IN_A_STEP * 0.25 / 2**0.5),
        ([("aten::mm", 0.1, 0.25, 0.25)] * 100, 0.25 / 10),
        ([("aten::mm", 3.0, 0.2, 0.0), ("aten::relu", 1.0, 0.0, 0.0)], LEFT_IN_A_STEP * 0.2 * 3 / 4),
    ],
)
def test_what_operators_share_adds_up_and_the_rest_as_squares(parts, expected):
    assert step_sigma(*parts) == pytest.approx(of_step(expected))


@pytest.mark.parametrize(("method", "sigma"), [(Method.MEASURED, 0.03), (Method.WAVE, 0.25)])
def test_what_was_measured_in_a_step_is_as_sure_as_each_of_its_operators(method, sigma):
    parts = ("aten::mm", 1.0, sigma, 0.0), ("aten::relu", 1.0, sigma, 0.0)
    assert step_sigma(*parts, method=method) == pytest.approx(sigma)


def test_without_any_time_the_widest_counts():
    assert step_sigma(("aten::mm", 0.0, 0.03, 0.0)) == pytest.approx(0.35)


def test_a_spread_is_symmetric_in_logarithms():
    interval = spread(2.0, math.log(3) / Z90)
    assert (interval.p10, interval.p50, interval.p90) == pytest.approx((2 / 3, 2.0, 6.0))


def test_no_sigma_is_no_spread():
    assert spread(2.0, 0.0) == Interval(p10=2.0, p50=2.0, p90=2.0)


def sigma(interval: Interval) -> float:
    assert interval.p50 / interval.p10 == pytest.approx(interval.p90 / interval.p50)
    return math.log(interval.p90 / interval.p50) / Z90


def test_a_step_that_waits_for_its_host_is_as_sure_as_the_host():
    gpu, costs = make_gpu(), host_costs()
    op = make_op(count=1000, measured_s=1e-6)
    iteration_s = predict(make_trace(ops=(op,), origin_gpu=gpu.name), gpu).iteration_s
    assert iteration_s.p50 == pytest.approx(costs.seconds({HostCall.FORWARD: 1000}))
    assert sigma(iteration_s) == pytest.approx(costs.sigma)


def test_a_host_that_may_be_slow_widens_a_step_of_the_gpu():
    """Launching takes 0.9 of the kernels' time: one host in ten is slower than them."""
    gpu, costs = make_gpu(), host_costs()
    op = make_op(count=1000, measured_s=costs.call_s[HostCall.FORWARD] / 0.9)
    step_s = predict(make_trace(ops=(op,), origin_gpu=gpu.name), gpu).device_s
    kernels_s = 1000 * costs.call_s[HostCall.FORWARD] / 0.9
    assert step_s.p50 == pytest.approx(kernels_s)
    slow_host, slow_kernels = math.log(0.9) + Z90 * costs.sigma, Z90 * 0.03
    assert step_s.p90 == pytest.approx(kernels_s * math.exp(math.hypot(slow_host, slow_kernels)))
    assert step_s.p10 == pytest.approx(spread(kernels_s, 0.03).p10)


def test_what_a_measured_step_waited_is_as_unsure_as_its_host():
    gpu = make_gpu()
    op = make_op(count=1000, measured_s=1e-6)
    trace = make_trace(ops=(op,), origin_gpu=gpu.name, iteration_s=0.01)
    expected = math.hypot(0.03 * 0.001, host_costs().sigma * 0.009) / 0.01
    assert sigma(predict(trace, gpu).iteration_s) == pytest.approx(expected)


def test_communication_adds_its_own_variance():
    gpu = make_gpu()
    op = make_op(measured_s=0.01)
    trace, pair = make_trace(ops=(op,), origin_gpu=gpu.name), Layout(gpus_per_node=2)
    estimate = predict(
        trace,
        gpu,
        pair,
        knowledge=replace(shipped(), scaling=ScalingConstants(sigma=0.0, spread_of_steps=0.0)),
    )
    exchange = exchange_of_gradients(trace, np.array([0.01]), 0.0, gpu, pair, slowdown=0.0)
    assert estimate.communication_s == pytest.approx(exchange.seconds)
    parts = math.hypot(0.03 * 0.01, exchange.sigma_s)
    assert sigma(estimate.iteration_s) == pytest.approx(parts / (0.01 + exchange.seconds))


def test_what_scaling_leaves_unexplained_adds_to_several_gpus_alone():
    gpu = make_gpu()
    trace = make_trace(ops=(make_op(measured_s=0.01),), origin_gpu=gpu.name)
    widths = [
        [
            sigma(
                predict(
                    trace, gpu, count, knowledge=replace(shipped(), scaling=ScalingConstants(sigma=wide))
                ).device_s
            )
            for count in (1, 2)
        ]
        for wide in (0.0, 0.1)
    ]
    assert widths[0][0] == widths[1][0]
    assert widths[1][1] == pytest.approx(math.hypot(widths[0][1], 0.1))


def test_what_was_measured_is_sure_to_three_percent():
    gpu = make_gpu()
    estimate = predict(make_trace(ops=(make_op(measured_s=0.01),), origin_gpu=gpu.name), gpu)
    assert sigma(estimate.iteration_s) == pytest.approx(0.03)


def test_a_further_error_adds_in_squares():
    wide = widened(spread(2.0, 0.3), 0.4)
    assert wide.p50 == 2.0
    assert (wide.p10, wide.p90) == (pytest.approx(spread(2.0, 0.5).p10), pytest.approx(spread(2.0, 0.5).p90))


def test_sides_widen_each_by_itself():
    lopsided = Interval(p10=1.0, p50=1.0, p90=2.0)
    wide = widened(lopsided, 0.1)
    assert wide.p10 == pytest.approx(spread(1.0, 0.1).p10)
    assert wide.p90 == pytest.approx(math.exp(math.hypot(math.log(2), Z90 * 0.1)))


def _unexplained(sigma: float) -> Knowledge:
    return replace(shipped(), scaling=ScalingConstants(sigma=sigma))


A100, V100 = (resolve_gpu(name) for name in ("A100-SXM-40GB", "V100-SXM-16GB"))
EXCESS = {"gemm": 0.1, "element-wise": 0.2}


def product(dtype: str) -> Op:
    tensors = (TensorSpec(shape=(4096, 4096), dtype=dtype),) * 2
    return replace(make_op("aten::mm", flops=2 * 4096**3, num_bytes=10**8), inputs=tensors)


HALF, SINGLE = product("float16"), product("float32")
ADD = make_op("aten::add.Tensor", flops=1, num_bytes=10**8)
STEP = make_op("aten::add_.Tensor", flops=1, num_bytes=10**8, phase=Phase.OPTIMIZER)
NORM = make_op("aten::native_layer_norm", flops=1, num_bytes=10**8)
TRACE = make_trace(
    ops=(HALF, SINGLE, ADD, STEP, NORM),
    precision=Precision(amp_dtype=None, tf32_matmul=True, tf32_cudnn=True),
)


def factors(gpu: GpuSpec, excess: dict[str, float]) -> list[float]:
    alone = op_times(TRACE, gpu, constants_for(gpu), shipped())
    return (in_a_step(alone, excess).time_s / alone.time_s).tolist()  # type: ignore[no-any-return]


def test_each_kind_takes_its_factor_at_whatever_rate():
    streams = [math.exp(0.2)] * 2 + [1.0]
    for gpu in (A100, V100):
        assert factors(gpu, EXCESS) == pytest.approx([math.exp(0.1)] * 2 + streams)


def test_what_was_measured_in_a_step_stays():
    ops = tuple(replace(op, measured_s=1e-3) for op in TRACE.ops)
    measured = replace(TRACE, ops=ops, origin_gpu=A100.name, iteration_s=0.02)
    knowledge = [replace(shipped(), excess=excess) for excess in ({}, EXCESS)]
    before, after = (predict(measured, A100, knowledge=each).device_s.p50 for each in knowledge)
    assert before == after


@given(st.sampled_from([*load_gpus().values()]), st.floats(1, 3))
def test_nothing_is_faster_than_alone_whatever_the_board(gpu, more):
    excess = dict(shipped().excess)
    assert min(excess.values()) >= 0
    rates = {rate: more * own for rate, own in gpu.tensor_flops_per_s.items()}
    better = replace(gpu, tensor_flops_per_s=rates, memory_bytes_per_s=more * gpu.memory_bytes_per_s)
    assert factors(better, excess) == pytest.approx(factors(gpu, excess))
