"""Laws of checkpoints: restarts from zero cost no less, nothing changes without preemptions, work counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core import values
from advisor.core.findings.about_options import RestartsFromZero
from recommender.outcome.spot import SpotTerms
from recommender.ranking.value import change_total_usd, total_usd, worth_for
from tests.builders import make_estimate, make_gpu, make_job, make_plan, make_trace
from tests.recommending import judge, recommend

USES = st.sampled_from([*values.CheckpointUse, None])
RATES = st.floats(0.01, 2.0)
Places = tuple[list[values.Plan], list[values.IterationEstimate]]


@st.composite
def places(draw: st.DrawFn) -> Places:
    plans, estimates = [], []
    for i in range(draw(st.integers(1, 5))):
        market = draw(st.sampled_from([values.Market.ON_DEMAND, values.Market.SPOT]))
        plans.append(make_plan(f"G{i}", draw(st.floats(0.05, 50)), market=market))
        estimates.append(make_estimate(f"G{i}", draw(st.floats(1e-3, 3))))
    return plans, estimates


def asked(pair: Places, use: values.CheckpointUse | None) -> tuple[object, ...]:
    plans, estimates = pair
    trace = make_trace(checkpoints=None if use is None else values.Checkpoints(use=use))
    by_gpu = {estimate.gpu: make_gpu(estimate.gpu) for estimate in estimates}
    return trace, {(one.gpu, one.layout): one for one in estimates}, by_gpu, plans, make_job()


def decide(pair: Places, use: values.CheckpointUse | None, rate_per_h: float) -> values.Recommendation:
    spot = SpotTerms(preemptions_per_h=rate_per_h)
    return recommend(*asked(pair, use), rng=np.random.default_rng(1), spot=spot)  # type: ignore[arg-type]


def running(option: values.Option) -> tuple[float, float]:
    return option.expected.time_s, option.expected.cost_usd


@given(places(), RATES)
def test_a_restart_from_zero_is_never_cheaper_or_sooner_than_resuming(pair, rate):
    spot = SpotTerms(preemptions_per_h=rate, checkpoint_h=0.0)
    for use in (values.CheckpointUse.NONE, values.CheckpointUse.SAVES):
        rng = np.random.default_rng(1)
        for item in judge(*asked(pair, use), rng=rng, spot=spot):  # type: ignore[arg-type]
            if item.other is None:
                continue
            ways = sorted((item.option, item.other), key=lambda way: values.Work.CHECKPOINTS in way.work)
            (zero_s, zero_usd), (resumed_s, resumed_usd) = map(running, ways)
            assert zero_s >= resumed_s * (1 - 1e-9)
            assert zero_usd >= resumed_usd * (1 - 1e-9)


@given(places(), USES)
def test_without_preemptions_nothing_changes(pair, use):
    here, there = decide(pair, use, 0.0), decide(pair, values.CheckpointUse.RESUMES, 0.0)
    assert here.recommended == there.recommended
    assert list(map(running, here.options)) == list(map(running, there.options))
    assert all(values.Work.CHECKPOINTS not in option.work for option in here.options)


@given(places(), st.sampled_from([values.CheckpointUse.NONE, values.CheckpointUse.SAVES]), RATES)
def test_a_script_that_resumes_never_costs_more_and_work_is_never_free(pair, use, rate):
    here, resumes = decide(pair, use, rate), decide(pair, values.CheckpointUse.RESUMES, rate)
    worth = worth_for(here.job)
    for option, by_itself in zip(here.options, resumes.options, strict=True):
        work_usd = change_total_usd(option, worth)
        if option.feasible and by_itself.feasible:
            restarts = any(isinstance(reason, RestartsFromZero) for reason in option.reasons)
            # A checkpoint takes a minute, which a run that is never preempted could do without.
            least = total_usd(by_itself, worth) * (0.95 if restarts else 1)
            assert total_usd(option, worth) >= least - 1e-9
        if values.Work.CHECKPOINTS in option.work:
            assert work_usd >= 25.0
            assert total_usd(option, worth) == pytest.approx(total_usd(by_itself, worth) + work_usd)


@given(places(), USES, RATES)
def test_the_best_as_it_is_needs_no_work_and_no_option_without_work_goes_before_it(pair, use, rate):
    answer = decide(pair, use, rate)
    worth, as_it_is = worth_for(answer.job), answer.as_it_is
    free = [option for option in answer.options if option.feasible and not option.work]
    if as_it_is is None:
        assert not free
        return
    assert as_it_is.feasible
    assert not as_it_is.work
    assert all(total_usd(as_it_is, worth) <= total_usd(option, worth) for option in free)
    assert answer.chosen is not None
    assert total_usd(answer.chosen, worth) <= total_usd(as_it_is, worth)
    if not answer.chosen.work:
        assert as_it_is.plan.id == answer.chosen.plan.id
