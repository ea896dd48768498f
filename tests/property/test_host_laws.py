"""Laws of launching: more calls take no less, a step takes no less than its kernels or their launches."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import load_gpus
from advisor.core.values import Launch, Phase
from advisor.predict.host import host_costs, launched, launching, launching_s, step_s
from advisor.predict.iteration import predict
from tests.builders import make_op, make_trace

Seconds = Mapping[Phase, float]
Waits = Mapping[Phase, int]

PHASES = st.fixed_dictionaries({phase: st.floats(1e-3, 1.0) for phase in Phase})
WAITS = st.dictionaries(st.sampled_from(Phase), st.integers(1, 4))
LAUNCHES = st.sampled_from(Launch)
FASTER = st.floats(1, 100)
OPS = st.lists(
    st.builds(
        make_op,
        st.sampled_from(["aten::mm", "aten::add.Tensor", "aten::_foreach_add_.List", "advisor::d2h_copy"]),
        flops=st.integers(0, 10**11),
        num_bytes=st.integers(1, 10**8),
        count=st.integers(1, 1000),
        phase=st.sampled_from(Phase),
    ),
    min_size=1,
    max_size=6,
)
GPUS = st.sampled_from(list(load_gpus().values()))


def scaled(seconds: Seconds, factor: float) -> Seconds:
    return {phase: value * factor for phase, value in seconds.items()}


@given(OPS, LAUNCHES, st.integers(0, 5), st.integers(1, 1000))
def test_more_calls_never_take_the_host_less(ops, launch, index, more):
    index %= len(ops)
    busier = (*ops[:index], replace(ops[index], count=ops[index].count + more), *ops[index + 1 :])
    before, after = (make_trace(ops=each, launch=launch) for each in (tuple(ops), busier))
    assert launching_s(after).p50 > launching_s(before).p50


@given(OPS)
def test_a_graph_is_never_launched_longer_than_its_kernels_one_by_one(ops):
    eager, compiled, graph = (
        launching_s(make_trace(ops=tuple(ops), launch=launch)).p50
        for launch in (Launch.EAGER, Launch.COMPILED, Launch.GRAPH)
    )
    assert graph <= min(eager, compiled) * (1 + 1e-12)


@given(PHASES, PHASES, WAITS)
def test_a_step_takes_no_less_than_kernels_or_launches_and_no_more_than_both(host_s, gpu_s, waits):
    both = sum(host_s.values()), sum(gpu_s.values())
    assert max(both) * (1 - 1e-9) <= step_s(host_s, gpu_s, waits) <= sum(both) * (1 + 1e-9)


@given(PHASES, PHASES, WAITS, FASTER)
def test_a_faster_gpu_or_host_never_makes_a_step_slower(host_s, gpu_s, waits, faster):
    before_s = step_s(host_s, gpu_s, waits) * (1 + 1e-12)
    assert step_s(host_s, scaled(gpu_s, 1 / faster), waits) <= before_s
    assert step_s(scaled(host_s, 1 / faster), gpu_s, waits) <= before_s


@given(PHASES, PHASES, WAITS, st.sampled_from(Phase))
def test_a_further_wait_never_makes_a_step_faster(host_s, gpu_s, waits, another):
    before_s = step_s(host_s, gpu_s, waits)
    more = {**waits, another: waits.get(another, 0) + 1}
    assert step_s(host_s, gpu_s, more) >= before_s * (1 - 1e-12)


@given(PHASES, PHASES, FASTER)
def test_a_step_bound_by_its_host_gains_nothing_from_a_faster_gpu(host_s, gpu_s, faster):
    waiting_s = scaled(gpu_s, 0.9 * sum(host_s.values()) / sum(gpu_s.values()))
    assert step_s(host_s, scaled(waiting_s, 1 / faster)) == step_s(host_s, waiting_s)


def simulated_s(host_s: Seconds, gpu_s: Seconds, waits: Waits, kernels: int, steps: int) -> float:
    """Seconds of a late step: each kernel starts when it is launched and the one before is done."""
    launched_at = done_at = 0.0
    ends = []
    for _ in range(steps):
        for phase in Phase:
            for kernel in range(1, kernels + 1):
                launched_at += host_s[phase] / kernels
                done_at = max(done_at, launched_at) + gpu_s[phase] / kernels
                if kernel * waits.get(phase, 0) % kernels == 0 and phase in waits:
                    launched_at = max(launched_at, done_at)
        ends.append(max(done_at, launched_at) if waits else done_at)
    half = steps // 2
    return (ends[-1] - ends[half - 1]) / (steps - half)


@given(PHASES, PHASES, WAITS)
def test_a_step_is_what_a_queue_of_kernels_takes(host_s, gpu_s, waits):
    expected_s = simulated_s(host_s, gpu_s, waits, kernels=120, steps=24)
    # The queue of a step without a wait fills up over the first steps; a kernel in 30 starts late.
    assert step_s(host_s, gpu_s, waits) == pytest.approx(expected_s, rel=0.06)


@given(OPS, PHASES, st.floats(0.01, 0.6))
def test_quantiles_of_a_step_keep_to_those_of_its_kernels_and_launches(ops, gpu_s, sigma):
    trace = make_trace(ops=tuple(ops))
    step, own = launched(trace, gpu_s, sigma), launching_s(trace)
    assert step.p10 >= own.p10 * (1 - 1e-9)
    assert step.p50 >= max(own.p50, sum(gpu_s.values())) * (1 - 1e-9)
    assert step.p90 >= own.p90 * (1 - 1e-9)


@given(OPS, GPUS)
def test_no_gpu_takes_less_than_the_host_needs(ops, gpu):
    trace = make_trace(ops=tuple(ops))
    estimate = predict(trace, gpu)  # type: ignore[arg-type]
    assert estimate.device_s.p50 >= sum(launching(trace).values()) * (1 - 1e-9)
    assert estimate.device_s.p90 >= launching_s(trace).p90 * (1 - 1e-9)


@given(OPS, st.floats(1e-6, 1.0))
def test_launching_takes_no_longer_than_a_measured_step(ops, iteration_s):
    trace = make_trace(ops=tuple(ops), iteration_s=iteration_s)
    assert launching_s(trace).p50 <= iteration_s * (1 + 1e-9)


def test_a_call_costs_something_and_so_does_not_to_know_the_cpu():
    costs = host_costs()
    assert all(0 < seconds < 1e-3 for seconds in costs.call_s.values())
    assert costs.sigma > 0
