"""Widths of intervals: what each method is worth, weighed by time."""

import math
from dataclasses import replace

import numpy as np
import pytest

from advisor.core.values import Interval, Layout
from advisor.predict.exchange.collective_time import Scaling
from advisor.predict.exchange.data_parallel import exchange_of_gradients
from advisor.predict.host import Call, host_costs
from advisor.predict.interval import sigma_of, spread, widened
from advisor.predict.iteration import predict
from advisor.predict.knowledge import Knowledge, shipped
from tests.builders import make_gpu, make_op, make_trace

Z90 = 1.2815515655446004


def test_one_part_keeps_its_sigma():
    assert sigma_of([2.0], [0.3]) == pytest.approx(0.3)


def test_sigmas_are_weighed_by_time():
    assert sigma_of([3.0, 1.0], [0.03, 0.25]) == pytest.approx((3 * 0.03 + 0.25) / 4)


def test_errors_of_one_method_do_not_cancel():
    assert sigma_of([0.1] * 100, [0.25] * 100) == pytest.approx(0.25)


@pytest.mark.parametrize("times_s", [[], [0.0]])
def test_without_any_time_the_widest_counts(times_s):
    assert sigma_of(times_s, [0.03] * len(times_s)) == pytest.approx(0.35)


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
    assert iteration_s.p50 == pytest.approx(costs.seconds({Call.FORWARD: 1000}))
    assert sigma(iteration_s) == pytest.approx(costs.sigma)


def test_a_host_that_may_be_slow_widens_a_step_of_the_gpu():
    """Launching takes 0.9 of the kernels' time: one host in ten is slower than them."""
    gpu, costs = make_gpu(), host_costs()
    op = make_op(count=1000, measured_s=costs.call_s[Call.FORWARD] / 0.9)
    step_s = predict(make_trace(ops=(op,), origin_gpu=gpu.name), gpu).device_s
    kernels_s = 1000 * costs.call_s[Call.FORWARD] / 0.9
    assert step_s.p50 == pytest.approx(kernels_s)
    assert step_s.p90 == pytest.approx(spread(0.9 * kernels_s, costs.sigma).p90)
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
        trace, gpu, pair, knowledge=replace(shipped(), scaling=Scaling(sigma=0.0, spread_of_steps=0.0))
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
                predict(trace, gpu, count, knowledge=replace(shipped(), scaling=Scaling(sigma=wide))).device_s
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
    return replace(shipped(), scaling=Scaling(sigma=sigma))
