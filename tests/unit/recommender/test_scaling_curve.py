"""A machine over its numbers of GPUs, and where more stop paying."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from advisor.core.errors import InputError
from advisor.core.findings.about_answers import CurveOfNone, CurveStops
from advisor.core.findings.about_estimates import EditScript
from advisor.core.findings.about_options import RemovedByMemory, RemovedByQuota, Unknown
from advisor.core.values import Market, Option
from advisor.report.words import sentence
from recommender.ranking.value import Worth
from recommender.scaling_curve import curve_of, scaling_curve
from tests.builders import make_job, make_offer, make_plan
from tests.findings import sample
from tests.recommendations import make_option, removed

WORTH = Worth(hour_usd=2.0)


def of(num_gpus: int, hours: float, usd: float, *, region: str = "us-east-1", gpu: str = "L4") -> Option:
    plan = make_plan(
        gpu,
        num_gpus=num_gpus,
        id=f"aws/g{num_gpus}/{region}/spot",
        offer=make_offer(gpu, num_gpus=num_gpus, region=region, market=Market.SPOT),
    )
    return make_option(gpu, hours, usd, plan=plan)


def marginals(options: Sequence[Option]) -> list[float | None]:
    return [point.usd_per_h_saved for point in scaling_curve(options, WORTH).points]


CURVE = [of(1, 16, 10), of(2, 8, 11), of(4, 5, 20), of(8, 4, 60)]


def test_a_step_costs_its_dollars_over_the_hours_it_saves():
    assert marginals(CURVE) == [None, pytest.approx(1 / 8), pytest.approx(3.0), pytest.approx(40.0)]


def test_more_gpus_pay_up_to_the_least_of_cost_and_time():
    curve = scaling_curve(CURVE, WORTH)
    assert curve.best == "aws/g2/us-east-1/spot"
    assert isinstance(curve.verdict, CurveStops)
    assert curve.verdict.facts["next_num_gpus"] == 4
    assert curve.verdict.facts["usd_per_h_saved"] == pytest.approx(3.0)
    assert [point.total_usd for point in curve.points] == [42, 27, 30, 68]


def test_whoever_pays_more_for_an_hour_goes_further():
    best = [scaling_curve(CURVE, Worth(hour_usd=usd)).best for usd in (0.1, 2.0, 10.0, 100.0)]
    assert best == [CURVE[i].plan.id for i in (0, 1, 2, 3)]


def test_where_the_largest_pays_nothing_stops():
    curve = scaling_curve(CURVE[:2], WORTH)
    assert (curve.verdict.facts["next_num_gpus"], curve.best) == (None, CURVE[1].plan.id)
    assert sentence(curve.verdict).startswith("more GPUs pay up to the largest number there is")


def test_the_work_of_a_first_step_to_several_gpus_is_told_apart_from_their_rent():
    change = (sample(EditScript, what="wrap-in-ddp"),)
    wrapped = [replace(option, script_changes=change) for option in (of(2, 8, 11), of(4, 5, 20))]
    first = scaling_curve([of(1, 16, 10), wrapped[0]], Worth(hour_usd=2.0)).verdict
    # Half an hour and 25 dollars of work: 26 dollars for 7.5 hours.
    assert (type(first), first.facts["change_usd"]) == (CurveStops, 25.0)
    assert first.facts["usd_per_h_saved"] == pytest.approx(26 / 7.5)
    assert "costs $3.47 for each hour that it saves ($25.00 to change the script counted)," in sentence(first)
    second = scaling_curve(wrapped, Worth(hour_usd=9.0)).verdict
    assert (second.facts["next_num_gpus"], second.facts["change_usd"]) == (None, 0.0)
    assert "counted" not in sentence(second)


def test_a_step_that_saves_no_time_costs_without_end():
    slower = scaling_curve([of(1, 4, 10), of(8, 5, 60)], WORTH)
    assert slower.points[1].usd_per_h_saved == math.inf
    assert slower.verdict.facts["usd_per_h_saved"] is None


def test_what_does_not_do_the_job_is_no_step():
    options = [
        removed(of(1, 16, 10), RemovedByMemory),
        of(2, 8, 11),
        removed(of(4, 5, 20), RemovedByQuota),
        of(8, 4, 60),
    ]
    assert marginals(options) == [None, None, None, pytest.approx(49 / 4)]
    alone = scaling_curve(options[:3], WORTH)
    assert sentence(alone.verdict).startswith("there is one number alone that does the job")
    assert alone.best == options[1].plan.id
    none = scaling_curve(options[:1], WORTH)
    assert (type(none.verdict), none.best) == (CurveOfNone, None)


def test_of_one_number_the_best_place_counts():
    curve = scaling_curve([of(1, 16, 10), of(1, 16, 8, region="eu-west-1")], WORTH)
    assert [point.option.plan.id for point in curve.points] == ["aws/g1/eu-west-1/spot"]


def test_an_unknown_rent_has_no_end_of_paying():
    own = make_option("L4", 4, 0, plan=make_plan("L4", None, num_gpus=4))
    curve = scaling_curve([of(1, 16, 10), own], WORTH)
    assert (type(curve.verdict), curve.best) == (Unknown, None)


@pytest.mark.parametrize("name", ["L4", "L4:2", "aws/g2/us-east-1/spot", "g8", "aws L4 spot"])
def test_any_name_of_the_machine_means_all_its_numbers(name):
    dearer = make_option("L4", 1, 999, plan=make_plan("L4", num_gpus=16, id="aws/g16/us-east-1/on-demand"))
    others = [of(3, 1, 1, gpu="T4"), dearer]
    curve = curve_of(name, [*CURVE, *others], make_job())
    assert [point.option.plan.num_gpus for point in curve.points] == [1, 2, 4, 8]


def test_a_region_that_is_named_is_kept():
    elsewhere = of(8, 4, 1, region="eu-west-1")
    curve = curve_of("L4 us-east-1", [*CURVE, elsewhere], make_job())
    assert {point.option.plan.offer.region for point in curve.points if point.option.plan.offer} == {
        "us-east-1"
    }
    assert curve_of("L4", [*CURVE, elsewhere], make_job()).points[-1].option is elsewhere


def test_a_name_of_no_plan_is_refused():
    with pytest.raises(InputError, match="no plan has 'T4'"):
        curve_of("T4", CURVE, make_job())
