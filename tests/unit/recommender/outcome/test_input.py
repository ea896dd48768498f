"""What a machine's vCPUs make of a plan's time and cost, and what that does to the choice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings.about_options import InputBound
from advisor.core.values import Bound, InputWork, Interval, IterationEstimate, Option, Plan, Recommendation
from advisor.predict.interval import spread
from recommender.outcome.draws import make_draws
from recommender.outcome.spot import SpotTerms
from tests.builders import (
    HOUR_S,
    ONE_GPU,
    exactly,
    make_estimate,
    make_gpu,
    make_job,
    make_offer,
    make_plan,
    make_trace,
)
from tests.recommending import evaluated as evaluate_all
from tests.recommending import recommend

CALM = SpotTerms(preemptions_per_h=0.0)


def samples(cpu_s: Interval, num_workers: int | None = 32, wait_s: float = 0.0) -> InputWork:
    return InputWork(cpu_s=cpu_s, wait_s=wait_s, num_workers=num_workers, num_samples=64)


def machine(name: str, gpu: str, usd_per_h: float, num_vcpus: int) -> Plan:
    return make_plan(gpu, usd_per_h, id=name, offer=make_offer(gpu, usd_per_h, num_vcpus=num_vcpus))


def decide(plans: list[Plan], estimates: list[IterationEstimate]) -> Recommendation:
    return recommend(
        make_trace(),
        {(e.gpu, e.layout): e for e in estimates},
        {e.gpu: make_gpu(e.gpu) for e in estimates},
        plans,
        make_job(),
        spot=CALM,
    )


def case_12(work: InputWork) -> Recommendation:
    """A sample costs 20 ms of CPU, a batch has 64, and there are 100,000 iterations."""
    plans = [machine("X", "X", 6.0, 8), machine("Y", "Y", 1.0, 8), machine("X32", "X", 8.0, 32)]
    return decide(plans, [make_estimate("X", 0.04, input=work), make_estimate("Y", 0.15, input=work)])


def test_eight_vcpus_deliver_400_samples_a_second():
    answer = case_12(samples(exactly(64 * 0.02)))
    options = {option.plan.id: option for option in answer.options}
    figures = {
        name: (o.estimate.iteration_s.p50, o.time_s.p50 / HOUR_S, o.cost_usd.p50)
        for name, o in options.items()
    }
    assert figures["X"] == pytest.approx((0.16, 4.4444, 26.67), abs=0.005)
    assert figures["Y"] == pytest.approx((0.16, 4.4444, 4.44), abs=0.005)
    assert figures["X32"] == pytest.approx((0.04, 1.1111, 8.89), abs=0.005)
    assert set(answer.frontier) == {"X32", "Y"}
    assert [options[name].estimate.binds for name in ("X", "Y")] == [Bound.INPUT, Bound.INPUT]
    notes = [note for note in options["X"].reasons if isinstance(note, InputBound)]
    assert notes[0].facts["samples_per_s"] == pytest.approx(400)


def test_what_was_measured_elsewhere_is_as_uncertain_and_no_slower():
    options = {o.plan.id: o for o in case_12(samples(spread(64 * 0.02, 0.5))).options}
    assert options["Y"].time_s.p50 / HOUR_S == pytest.approx(4.4444, rel=1e-4)
    assert options["Y"].time_s.p90 > 1.5 * options["Y"].time_s.p50


def test_four_workers_are_all_that_load_however_many_vcpus_there_are():
    options = {o.plan.id: o for o in case_12(samples(exactly(64 * 0.02), num_workers=4)).options}
    assert {name: o.estimate.iteration_s.p50 for name, o in options.items()} == pytest.approx(
        {"X": 0.32, "Y": 0.32, "X32": 0.32}
    )


seconds = st.floats(1e-3, 10.0)
sigmas = st.floats(0.0, 0.8)
vcpus = st.integers(1, 128)


def options_of(plans: list[Plan], work: InputWork, iteration: Interval) -> list[Option]:
    estimates = {("X", ONE_GPU): make_estimate("X", iteration, input=work)}
    draws = make_draws(np.random.default_rng(0))
    judged = evaluate_all(
        plans, estimates, {"X": make_gpu("X")}, make_trace(), make_job(deadline_s=3e5), draws, lambda _: CALM
    )
    return [one.option for one in judged]


def figures(option: Option) -> tuple[float, ...]:
    # The odds of being late, not those of being in time: less is better throughout.
    late = 1 - (option.p_within_deadline or 0.0)
    time_s, cost_usd = option.time_s, option.cost_usd
    return time_s.p50, time_s.p90, cost_usd.p50, cost_usd.p90, option.estimate.iteration_s.p50, late


def is_no_better(slow: Option, quick: Option) -> bool:
    return all(s >= q * (1 - 1e-9) for s, q in zip(figures(slow), figures(quick), strict=True))


@given(seconds, sigmas, sigmas, seconds, st.sampled_from([None, 0, 1, 8, 64]), vcpus, vcpus)
def test_more_vcpus_are_never_slower(cpu_s, sigma, own, gpu_s, workers, one, other):
    few, many = sorted((one, other))
    plans = [machine("few", "X", 1.0, few), machine("many", "X", 1.0, many)]
    work = samples(spread(cpu_s, sigma), workers, wait_s=cpu_s / 3)
    slow, quick = options_of(plans, work, spread(gpu_s, own))
    assert is_no_better(slow, quick)


@given(seconds, st.floats(1.0, 10.0), sigmas, seconds, st.sampled_from([None, 0, 1, 8]), vcpus)
def test_more_loader_seconds_are_never_faster(cpu_s, factor, sigma, gpu_s, workers, num_vcpus):
    plans = [machine("it", "X", 1.0, num_vcpus)]
    quick, slow = (
        options_of(plans, samples(spread(each_s, sigma), workers), spread(gpu_s, 0.2))[0]
        for each_s in (cpu_s, cpu_s * factor)
    )
    assert is_no_better(slow, quick)


@given(seconds, seconds, sigmas, vcpus)
def test_an_iteration_is_never_shorter_than_either_of_both(cpu_s, gpu_s, sigma, num_vcpus):
    work = samples(spread(cpu_s, sigma))
    (option,) = options_of([machine("it", "X", 1.0, num_vcpus)], work, spread(gpu_s, 0.2))
    assert option.estimate.iteration_s.p50 >= max(gpu_s, cpu_s / min(32, num_vcpus)) * (1 - 1e-9)
    assert option.train_s.p50 == pytest.approx(option.iterations * option.estimate.iteration_s.p50)
