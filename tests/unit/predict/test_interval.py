"""Widths of intervals: what each method is worth, weighed by time."""

from __future__ import annotations

import math

import pytest

from advisor.predict import HOST_DISPATCH_S, predict
from advisor.predict.families import Family
from advisor.predict.interval import sigma_of, spread
from advisor.predict.methods import OpTime
from advisor.types import FittedConstants, Interval, Method
from tests.builders import make_gpu, make_op, make_trace

Z90 = 1.2815515655446004
CONSTANTS = FittedConstants(
    streaming_fraction=0.8,
    reduction_fraction=0.5,
    gemm_fraction={},
    conv_fraction={},
    measured=frozenset({"streaming_fraction"}),
    sources=(),
)


def op_of(method: Method, time_s: float = 1.0, constant: str = "") -> OpTime:
    return OpTime(op=make_op(), family=Family.GEMM, time_s=time_s, method=method, constant=constant)


@pytest.mark.parametrize(
    ("method", "constant", "sigma"),
    [
        (Method.MEASURED, "", 0.03),
        (Method.WAVE, "", 0.25),
        (Method.ROOFLINE, "streaming_fraction", 0.25),
        (Method.ROOFLINE, "", 0.25),  # the PCIe link
        (Method.ROOFLINE, "gemm_fraction.fp32", 0.35),
    ],
)
def test_each_method_has_its_sigma(method: Method, constant: str, sigma: float) -> None:
    assert sigma_of([op_of(method, constant=constant)], CONSTANTS) == pytest.approx(sigma)


def test_sigmas_are_weighed_by_time() -> None:
    times = [op_of(Method.MEASURED, 3.0), op_of(Method.WAVE, 1.0)]
    assert sigma_of(times, CONSTANTS) == pytest.approx((3 * 0.03 + 0.25) / 4)


def test_errors_of_one_method_do_not_cancel() -> None:
    assert sigma_of([op_of(Method.WAVE, 0.1)] * 100, CONSTANTS) == pytest.approx(0.25)


@pytest.mark.parametrize("times", [[], [op_of(Method.MEASURED, 0.0)]])
def test_without_any_time_the_widest_counts(times: list[OpTime]) -> None:
    assert sigma_of(times, CONSTANTS) == pytest.approx(0.35)


def test_a_spread_is_symmetric_in_logarithms() -> None:
    found = spread(2.0, math.log(3) / Z90)
    assert (found.p10, found.p50, found.p90) == pytest.approx((2 / 3, 2.0, 6.0))


def test_no_sigma_is_no_spread() -> None:
    assert spread(2.0, 0.0) == Interval(p10=2.0, p50=2.0, p90=2.0)


def sigma(interval: Interval) -> float:
    assert interval.p50 / interval.p10 == pytest.approx(interval.p90 / interval.p50)
    return math.log(interval.p90 / interval.p50) / Z90


def test_the_host_adds_its_own_variance() -> None:
    # 1,000 measured operators of 1 us: 1 ms of GPU (sigma 0.03) behind 6 ms of host (0.5).
    gpu = make_gpu()
    op = make_op(count=1000, measured_s=1e-6)
    found = predict(make_trace(ops=(op,), origin_gpu=gpu.name), gpu).iteration_s
    gpu_s, total_s = 1e-3, 1000 * HOST_DISPATCH_S
    assert found.p50 == pytest.approx(total_s)
    host_s = total_s - gpu_s
    assert sigma(found) == pytest.approx(math.hypot(0.03 * gpu_s, 0.5 * host_s) / total_s)


def test_communication_adds_its_own_variance() -> None:
    gpu = make_gpu()
    op = make_op(measured_s=0.01)
    found = predict(make_trace(ops=(op,), origin_gpu=gpu.name), gpu, 2)
    parts = math.hypot(0.03 * 0.01, 0.4 * found.communication_s)
    assert found.communication_s > 0
    assert sigma(found.iteration_s) == pytest.approx(parts / (0.01 + found.communication_s))


def test_what_was_measured_is_sure_to_three_percent() -> None:
    gpu = make_gpu()
    found = predict(make_trace(ops=(make_op(measured_s=0.01),), origin_gpu=gpu.name), gpu)
    assert sigma(found.iteration_s) == pytest.approx(0.03)
