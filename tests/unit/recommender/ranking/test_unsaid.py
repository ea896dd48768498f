"""Facts that nobody gave: the deadline and the data's place, by figures small enough to see."""

from dataclasses import replace
from typing import Any

import pytest

from advisor.core import values
from advisor.core.findings import Finding
from advisor.core.findings.about_answers import Tipping
from advisor.core.units import HOUR_S
from advisor.report.words import sentence
from recommender.ranking.what_tips import what_tips
from tests.builders import ONE_GPU, make_estimate, make_gpu, make_job, make_offer, make_plan, make_trace
from tests.recommendations import make_option
from tests.recommending import recommend

JOB = make_job(value_of_time_usd_per_h=2.0)


def done(name: str, p50_h: float, p90_h: float, usd: float, **changes: object) -> values.Option:
    """An option on a GPU of its own, done after these hours; 2 USD an hour on top of the cost."""
    facts: dict[str, object] = {
        "time_s": values.Quantiles(p50=p50_h * HOUR_S, p90=p90_h * HOUR_S),
        "cost_usd": values.Quantiles(p50=usd, p90=usd),
        "plan": make_plan(name, usd / p50_h),
        "wait_s": values.Quantiles(p50=0.0, p90=0.0),
    }
    return make_option(name, p50_h, usd, **(facts | changes))


CHEAP = done("SPOT", 3.0, 20.0, 25.0)
SURE = done("SURE", 2.0, 4.0, 100.0)


def tipped(*options: values.Option, job: values.Job = JOB) -> Any:
    return what_tips(options, options[0], job)


def named(found: Finding) -> object:
    other = found.facts["instead"]
    assert isinstance(other, Finding)
    return other.facts["plan_id"]


def test_a_deadline_that_looks_met_and_is_not_changes_the_advice():
    found = tipped(CHEAP, SURE)
    assert (found.facts["by"], named(found)) == ("deadline", "SURE")
    assert found.facts["limit_s"] == 20.0 * HOUR_S
    assert sentence(found).startswith(
        "if it must end within less than 20 h, with a chance of 90 % (--deadline), take 1 x SURE"
    )


def test_what_is_done_a_little_earlier_keeps_its_place_before_what_is_surer():
    """From 20 to 18 h another of the same kind, then the surer one: named is what holds for most."""
    found = tipped(CHEAP, done("LIKE", 3.0, 18.0, 30.0), SURE)
    assert (named(found), found.facts["limit_s"]) == ("SURE", 18.0 * HOUR_S)


def test_the_other_way_of_the_chosen_plan_keeps_its_place_before_what_is_surer():
    """From 20 to 17 h the same machine with checkpoints written first."""
    ways = [done("SPOT", 3.0, 17.0, 27.0), done("SURE", 2.0, 3.9, 400.0)]
    found = what_tips([CHEAP, SURE], CHEAP, JOB, ways=ways)
    assert (named(found), found.facts["limit_s"]) == ("SURE", 17.0 * HOUR_S)


def test_what_costs_more_and_is_no_surer_is_never_named():
    assert named(tipped(CHEAP, done("DEAR", 2.0, 5.0, 300.0), SURE)) == "SURE"


@pytest.mark.parametrize(("p90_h", "is_named"), [(11.4, True), (11.6, False)])
def test_half_of_the_deadlines_at_least(p90_h, is_named):
    """Between 3 and 20 h, the middle is 11.5."""
    found = tipped(CHEAP, done("SURE", 2.0, p90_h, 100.0))
    assert (isinstance(found, Tipping) and found.by == "deadline") is is_named


def test_a_deadline_that_was_given_is_no_unknown():
    assert tipped(CHEAP, SURE, job=replace(JOB, deadline_s=30 * HOUR_S)).by == "value"
    # The p90 says nothing of other odds.
    assert tipped(CHEAP, SURE, job=replace(JOB, confidence=0.5)).by == "value"


def test_a_surer_place_of_the_same_gpus_stands_before_a_rival_and_is_not_named():
    elsewhere = replace(
        done("HERE", 3.0, 4.0, 26.0), folded_into="SPOT", plan=replace(CHEAP.plan, id="SPOT-elsewhere")
    )
    assert tipped(CHEAP, elsewhere, SURE).by == "value"


def test_an_unsure_fact_that_changes_more_goes_before_a_deadline():
    """The wait tips from a twentieth of its way on, the deadline on 16 of 17 hours."""
    waiting = replace(CHEAP, wait_s=values.Quantiles(p50=0.0, p90=1600 * HOUR_S))
    assert tipped(waiting, SURE).by == "wait"
    assert tipped(replace(CHEAP, wait_s=values.Quantiles(p50=0.0, p90=50 * HOUR_S)), SURE).by == "deadline"


def two_to_choose_from(job: values.Job) -> values.Recommendation:
    """A cheap one that waits for up to 15 h at p90, and a dear one that is there at once."""
    wait_s = {
        "SPOT": values.Quantiles(p50=3 * HOUR_S, p90=15 * HOUR_S),
        "SURE": values.Quantiles(p50=300.0, p90=600.0),
    }
    return recommend(
        make_trace(),
        {(name, ONE_GPU): make_estimate(name, 10.0) for name in wait_s},
        {name: make_gpu(name) for name in wait_s},
        [
            make_plan("SPOT", 2.0, market=values.Market.SPOT, wait_s=wait_s["SPOT"]),
            make_plan("SURE", 40.0, wait_s=wait_s["SURE"]),
        ],
        job,
    )


def test_within_that_deadline_it_is_recommended_indeed():
    job = make_job(iterations=1000, value_of_time_usd_per_h=2.0)
    free = two_to_choose_from(job)
    found = free.summary[2].facts["tipped_by"]
    assert isinstance(found, Finding)
    assert free.recommended == "SPOT"
    assert (found.facts["by"], named(found)) == ("deadline", "SURE")
    below_s = found.facts["limit_s"]
    assert isinstance(below_s, float)
    for share, best in ((0.98, "SURE"), (1.02, "SPOT")):
        within = two_to_choose_from(replace(job, deadline_s=share * below_s))
        assert within.recommended == best


WITHIN_10_H = replace(JOB, deadline_s=10 * HOUR_S)


def later(*late: values.Option, job: values.Job = WITHIN_10_H) -> Any:
    return what_tips([SURE], SURE, job, late)


def test_a_later_deadline_that_saves_money_is_named():
    found = later(CHEAP)
    assert (found.facts["by"], named(found)) == ("later-deadline", "SPOT")
    assert found.facts["limit_s"] == 20.0 * HOUR_S
    assert sentence(found).startswith("if it may take 20 h or longer (--deadline), take 1 x SPOT")


@pytest.mark.parametrize(
    ("late", "job"),
    [
        (done("SPOT", 3.0, 20.1, 25.0), WITHIN_10_H),  # more than twice as late
        (done("SPOT", 3.0, 15.0, 99.0), WITHIN_10_H),  # an hour costs more than it saves
        (CHEAP, replace(WITHIN_10_H, confidence=0.8)),  # of which the p90 says nothing
        (CHEAP, JOB),
        (CHEAP, replace(WITHIN_10_H, pick=values.PickName.FASTEST)),
    ],
)
def test_a_later_deadline_that_brings_nothing_is_not(late, job):
    assert later(late, job=job) is None


def test_of_several_that_are_late_the_best_is_named_with_its_own_deadline():
    found = later(done("NEAR", 3.0, 12.0, 60.0), done("FAR", 3.0, 16.0, 20.0))
    assert (named(found), found.facts["limit_s"]) == ("FAR", 16.0 * HOUR_S)


def test_a_minute_is_never_rounded_away():
    assert later(done("SPOT", 3.0, 12.001, 25.0)).facts["limit_s"] == 12 * HOUR_S + 60


def test_from_that_deadline_on_it_is_recommended_indeed():
    free = two_to_choose_from(replace(JOB, iterations=1000, epochs=None))
    spot = next(option for option in free.options if option.plan.id == "SPOT")
    tight = replace(free.job, deadline_s=0.7 * spot.time_s.p90)
    within = two_to_choose_from(tight)
    found = within.summary[2].facts["tipped_by"]
    assert isinstance(found, Finding)
    assert (within.recommended, found.facts["by"]) == ("SURE", "later-deadline")
    from_s = found.facts["limit_s"]
    assert isinstance(from_s, float)
    for deadline_s, best in ((from_s, "SPOT"), (from_s - 120, "SURE")):
        assert two_to_choose_from(replace(tight, deadline_s=deadline_s)).recommended == best


DATA = replace(JOB, data=values.DataSet(gib=3000.0))


def rented(name: str, region: str, usd: float, *, copying_h: float = 5.0) -> values.Option:
    """10 h of which some pass until the data is there."""
    plan = make_plan(name, usd / 10, offer=make_offer(name, usd / 10, region=region))
    return done(name, 10.0, 10.0, usd, plan=replace(plan, download_s=copying_h * HOUR_S))


HERE, THERE = rented("HERE", "us-east-1", 20.0), rented("THERE", "eu-west-1", 30.0)


def test_data_beside_a_dearer_machine_may_make_it_the_better_one():
    """Copying takes 5 h of 3 and 2 USD: 25 of 50 USD, where the chosen one counts 40."""
    found = tipped(HERE, THERE, job=DATA)
    assert (found.facts["by"], named(found)) == ("data-place", "THERE")
    assert (found.facts["data_provider"], found.facts["data_region"]) == ("aws", "eu-west-1")
    assert sentence(found).startswith("if the data is in eu-west-1 of aws (--data), take 1 x THERE")
    # What it takes there, without the copying.
    assert sentence(found).endswith(": 5 h for $15.00")


@pytest.mark.parametrize(("copying_h", "tips"), [(1.9, False), (2.1, True)])
def test_it_must_save_more_than_it_costs(copying_h, tips):
    """10 USD more, at 5 USD for each hour of copying."""
    found = tipped(HERE, rented("THERE", "eu-west-1", 30.0, copying_h=copying_h), job=DATA)
    assert (isinstance(found, Tipping) and found.by == "data-place") is tips


def test_where_the_place_is_known_or_nothing_moves_it_tips_nothing():
    place = values.DataPlace(name="local")
    known = replace(DATA, data=values.DataSet(gib=3000.0, place=place))
    for job in (JOB, known):
        assert not (
            isinstance(tipped(HERE, THERE, job=job), Tipping)
            and tipped(HERE, THERE, job=job).by == "data-place"
        )
    still = [rented(o.plan.id, "eu-west-1", o.cost_usd.p50, copying_h=0.0) for o in (HERE, THERE)]
    assert not (isinstance(tipped(*still, job=DATA), Tipping) and tipped(*still, job=DATA).by == "data-place")


def test_a_machine_of_ones_own_lies_in_no_region():
    own = done("OWN", 10.0, 10.0, 1.0, plan=make_plan("OWN", 0.1, tier=values.Tier.CLUSTER))
    assert not (
        isinstance(tipped(own, THERE, job=DATA), Tipping) and tipped(own, THERE, job=DATA).by == "data-place"
    )
    assert not (
        isinstance(tipped(HERE, replace(own, expected=_counting(50.0)), job=DATA), Tipping)
        and tipped(HERE, replace(own, expected=_counting(50.0)), job=DATA).by == "data-place"
    )


def _counting(usd: float) -> values.Means:
    return values.Means(wait_s=0.0, time_s=10 * HOUR_S, cost_usd=usd, counted_usd=usd)
