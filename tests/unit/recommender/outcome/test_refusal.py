"""Spot plans that preemptions make hopeless, and where the rate of preemptions comes from."""

from dataclasses import replace
from datetime import date

import pytest

from advisor.core.findings import Finding
from advisor.core.findings.about_options import PreemptionRate, RemovedBySpot
from advisor.core.values import Job, Layout, Market, Option, Plan
from advisor.pricing.spot_odds import Interruptions, load_interruptions
from advisor.report.words import sentence
from recommender.outcome.reasons import refusal, risk_of
from recommender.outcome.spot import SpotTerms, terms_of_plans
from tests.builders import HOUR_S, make_job, make_offer, make_plan
from tests.findings import said
from tests.unit.recommender.outcome.test_evaluate import option_of

SPOT = make_plan("X", 1.0, market=Market.SPOT)
UNSAVED = SpotTerms(preemptions_per_h=0.4, checkpoint_interval_h=None, checkpoint_h=0.02, reacquire_h=0.5)


def refused(
    work_h: float,
    terms: SpotTerms = UNSAVED,
    *,
    plan: Plan = SPOT,
    deadline_h: float | None = None,
    p: float | None = None,
) -> Finding | None:
    return refusal(
        plan, work_h * HOUR_S, terms, median_time_s=1.0, p_within_deadline=p,
        deadline_s=None if deadline_h is None else deadline_h * HOUR_S,
    )  # fmt: skip


def test_on_demand_and_own_machines_are_never_refused():
    assert refused(1000, plan=make_plan("X", 1.0)) is None


def test_more_than_five_times_as_long_is_hopeless():
    # (e^(0.4 (8 + 0.1)) - e^0.04) / 0.4 x (1 + 0.4 x 0.5): the expected makespan of 8 h is 73.5 h.
    text = said(filter(None, [refused(8.0)]))
    assert "73.5 h of training and $61.23 are expected without checkpoints, against 8.0 h on demand" in text
    assert "with one every 19 min: 11.4 h and $9.48" in text
    assert refused(4.0) is None  # 12.2 h: three times


def test_checkpoints_that_hardly_help_are_refused_as_well():
    text = said(
        filter(None, [refused(20.0, replace(UNSAVED, preemptions_per_h=3.0, checkpoint_interval_h=2.0))])
    )
    assert "with a checkpoint every 2 h" in text


def test_no_end_is_no_number():
    text = said(filter(None, [refused(500.0)]))
    assert "more than a century of training and unbounded are expected" in text


def test_a_deadline_that_no_draw_meets_is_hopeless_without_checkpoints_alone():
    assert refused(4.0, deadline_h=5.0, p=0.0) is not None
    assert refused(4.0, deadline_h=5.0, p=0.01) is None
    # The work itself is too long: that is the deadline's fault.
    assert refused(4.0, deadline_h=3.0, p=0.0) is None
    saved = replace(UNSAVED, checkpoint_interval_h=0.5)
    assert refused(4.0, saved, deadline_h=5.0, p=0.0) is None


def test_an_option_that_is_refused_says_so_and_is_no_near_miss():
    option = option_of(SPOT, job=make_job(iterations=288_000), terms=UNSAVED)
    assert (option.feasible, option.removed_by) == (False, (RemovedBySpot.code,))
    assert sentence(option.reasons[0]).startswith("refused: 73.5 h")


def job_of(hours: float, **limits: float) -> Job:
    return make_job(iterations=round(hours * 36_000), **limits)


@pytest.mark.parametrize("hours", [1.0, 100.0])
def test_with_checkpoints_nothing_is_refused_by_default(hours):
    option: Option = option_of(SPOT, job=job_of(hours))
    assert option.feasible


def test_nodes_of_a_gang_are_one_unit():
    four = replace(SPOT, layout=Layout(gpus_per_node=1, num_nodes=4))
    one, gang = option_of(SPOT, job=job_of(10)), option_of(four, job=job_of(40))
    assert gang.time_s == one.time_s
    assert "of any of 4 nodes, which stops all, 0.33 per hour" in sentence(gang.risk)
    assert "nodes" not in sentence(one.risk)


BUCKET = Interruptions(
    instance_type="x.xlarge", region="us-east-1", low_pct=20, high_pct=100, as_of=date(2025, 6, 28),
    source="AWS Spot Advisor",
)  # fmt: skip
BUCKETS = {("x.xlarge", "us-east-1"): BUCKET}


def test_a_published_floor_does_not_lower_what_is_assumed():
    terms = terms_of_plans(SpotTerms(preemptions_per_h=0.1), BUCKETS)(SPOT)
    assert terms.preemptions_per_h == 0.1
    risk = sentence(risk_of(SPOT, terms))
    assert risk.startswith("preemption, 0.1 per hour assumed; AWS Spot Advisor of 2025-06-28: 20 to 100 %")
    assert "at least 0.0003 per hour" in risk


def test_a_floor_above_what_is_assumed_counts():
    terms = terms_of_plans(SpotTerms(preemptions_per_h=1e-6), BUCKETS)(SPOT)
    assert terms.preemptions_per_h == pytest.approx(BUCKET.least_preemptions_per_h)
    assert "floor" in sentence(risk_of(SPOT, terms))


@pytest.mark.parametrize(
    "plan",
    [
        make_plan("X", 1.0),
        make_plan("Y", 1.0, market=Market.SPOT),
        make_plan("X", 1.0, offer=make_offer("X", market=Market.SPOT, provider="gcp")),
        make_plan("X", 1.0, offer=make_offer("X", market=Market.SPOT, region="eu-west-1")),
    ],
)
def test_without_a_bucket_the_assumption_stays(plan):
    assert terms_of_plans(SpotTerms(), BUCKETS)(plan) == SpotTerms()


def test_a_configured_rate_has_no_floor():
    configured = SpotTerms(preemptions_per_h=0.02, rate_source=PreemptionRate(of="configured"))
    assert terms_of_plans(configured, None)(SPOT) == configured
    assert sentence(risk_of(SPOT, configured)) == "preemption, 0.02 per hour configured"


def test_the_shipped_floors_stay_below_the_assumption():
    """Buckets are monthly: none of them says more than measured rates do."""
    assert max(b.least_preemptions_per_h for b in load_interruptions().values()) < 0.1
