"""Which one fact would change the advice, by figures small enough to see."""

from dataclasses import replace
from typing import Any

import pytest

from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import EditScript, SaveCheckpoints
from advisor.core.limits import CHANGE_USD, VALUE_OF_TIME_USD_PER_H
from advisor.core.units import HOUR_S
from advisor.core.values import Interval, Market, Means, Option, PickName, Quantiles, Tier
from advisor.report.words import sentence
from recommender.ranking.value import (
    CHANGE_S,
    Worth,
    break_even_wait_s,
    least_total,
    preference,
    total_usd,
    wait_or_rent,
    why_least,
    worth_for,
)
from recommender.ranking.what_tips import machine, tip_of, what_tips
from tests.builders import make_estimate, make_job, make_plan, make_price
from tests.findings import sample
from tests.recommendations import guessed, make_option

JOB = make_job(value_of_time_usd_per_h=2.0)


def certain(name: str, hours: float, usd: float, **changes: object) -> Option:
    """An option of exact time and cost, on a GPU of its own."""
    facts: dict[str, object] = {
        "time_s": Quantiles(p50=hours * HOUR_S, p90=hours * HOUR_S),
        "cost_usd": Quantiles(p50=usd, p90=usd),
        "plan": make_plan(name, usd / hours),
        "wait_s": Quantiles(p50=0.0, p90=0.0),
    }
    return make_option(name, hours, usd, **(facts | changes))


CHOSEN = certain("A", 5.0, 10.0)  # 20 USD in all
RIVAL = certain("B", 4.0, 14.0)  # 22: 2 more
FAR = certain("C", 1.0, 60.0)


def tipped(chosen: Option, *others: Option, pick: PickName | None = None) -> Any:
    return what_tips([chosen, *others], chosen, replace(JOB, pick=pick))


def instead(tip: Finding) -> object:
    other = tip.facts["instead"]
    assert isinstance(other, Finding)
    return other.facts["plan_id"]


def rising(option: Option, p90: float) -> Option:
    """Its price may come to ``p90`` times the median."""
    usd_per_h = option.plan.usd_per_h or 0.0
    return replace(option, plan=replace(option.plan, price=make_price(usd_per_h, p90 * usd_per_h)))


def test_without_another_nothing_tips():
    assert tipped(CHOSEN) is None
    elsewhere = replace(RIVAL, plan=replace(RIVAL.plan, gpu=CHOSEN.plan.gpu), folded_into="A")
    assert tipped(CHOSEN, elsewhere) is None


def test_a_rival_whose_owner_set_no_cost_has_none():
    own = replace(RIVAL, plan=replace(RIVAL.plan, usd_per_h=None))
    tipping = tipped(CHOSEN, own)
    assert tipping.facts["cost_usd"] is None
    assert "at a cost that is not configured" in sentence(tipping)


def test_other_gpus_tip_though_the_chosen_row_speaks_for_them():
    folded = tipped(CHOSEN, replace(RIVAL, folded_into="A"))
    assert folded == tipped(CHOSEN, RIVAL)
    assert folded is not None
    assert tipped(CHOSEN, certain("D", 6.0, 30.0)) is None


def test_where_all_is_sure_the_worth_of_an_hour_tips():
    """4 USD save an hour: at 4 USD an hour both are as good."""
    tipping = tipped(CHOSEN, RIVAL, FAR)
    assert tipping.by == "value"
    assert tipping.facts["usd_per_h"] == pytest.approx(4.0)
    assert (instead(tipping), tipping.facts["is_above"]) == ("B", True)


def test_so_does_a_lower_one():
    tipping = tipped(CHOSEN, certain("D", 9.0, 5.0), FAR)
    assert tipping.facts["usd_per_h"] == pytest.approx(5.0 / 4.0)
    assert (instead(tipping), tipping.facts["is_above"]) == ("D", False)


@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_there_the_choice_is_another_indeed(factor):
    for others in ((RIVAL, FAR), (certain("D", 9.0, 5.0), FAR)):
        tipping = tipped(CHOSEN, *others)
        worth = tipping.facts["usd_per_h"]
        assert isinstance(worth, float)
        beyond = (factor > 1) == tipping.facts["is_above"]
        best = least_total([CHOSEN, *others], Worth(hour_usd=worth * factor)).plan.id
        assert best == (instead(tipping) if beyond else "A")


@pytest.mark.parametrize(("p90", "code"), [(1.19, "value"), (1.21, "price")])
def test_a_price_tips_that_makes_up_for_the_gap(p90, code):
    """2 USD of 10 are 20 %."""
    tipping = tipped(rising(CHOSEN, p90), RIVAL)
    assert tipping.facts["by"] == code
    assert instead(tipping) == "B"
    if code == "price":
        assert tipping.facts["usd_per_h"] == pytest.approx(2.0 * 1.2)


def test_what_preemptions_add_on_average_follows_the_price_as_well():
    """Of 10 USD in the median and 14 in the mean, 2 more are a seventh."""
    often = replace(rising(CHOSEN, 1.5), cost_usd=Quantiles(p50=10.0, p90=30.0))
    means = replace(CHOSEN.expected, cost_usd=14.0, counted_usd=14.0)
    tipping = tipped(replace(often, expected=means), certain("B", 4.0, 18.0))
    assert tipping.facts["by"] == "price"
    assert tipping.facts["usd_per_h"] == pytest.approx(2.0 * (1 + 2 / 14))


def test_disks_do_not_follow_the_price_of_the_machine():
    disks = replace(rising(CHOSEN, 1.3), cost_breakdown_usd={"training": 6.0, "storage": 4.0})
    assert tipped(disks, RIVAL).by == "value"
    assert tipped(rising(disks, 1.4), RIVAL).by == "price"


def test_a_bill_of_disks_alone_follows_no_price():
    disks = replace(rising(CHOSEN, 9.0), cost_breakdown_usd={"storage": 10.0})
    assert tipped(disks, RIVAL).by == "value"
    rival = replace(guessed(certain("B", 4.0, 11.9), 20.0), cost_breakdown_usd={"storage": 11.9})
    assert tipped(CHOSEN, rival).by == "value"


def test_of_several_guesses_the_one_that_must_fall_least():
    quoted = guessed(certain("B", 4.0, 14.0), 14.0)  # counts as what it is expected to cost
    far, near = guessed(certain("C", 4.0, 11.9), 20.0), guessed(certain("D", 4.0, 11.0), 20.0)
    assert tipped(CHOSEN, quoted).by == "value"
    assert instead(tipped(CHOSEN, quoted, far, near)) == "D"


def test_a_job_of_cents_follows_prices_like_any_other():
    """0.10 USD of 0.50 are 20 %; a guess of 0.55 counts 0.15 more."""
    cheap = certain("A", 0.25, 0.5)
    assert tipped(cheap, guessed(certain("B", 0.2, 0.55), 0.7)).by == "quote"
    found = tipped(rising(cheap, 1.21), certain("B", 0.2, 0.7))
    assert found.by == "price"
    assert found.facts["usd_per_h"] == pytest.approx(2.0 * 1.2)


@pytest.mark.parametrize(("median", "code"), [(11.9, "quote"), (12.1, "value")])
def test_a_rival_that_nobody_quoted_may_be_cheaper_than_it_counts(median, code):
    """4 h are worth 8 USD: it is as good at 12 USD, and counts at 20."""
    tipping = tipped(CHOSEN, guessed(certain("B", 4.0, median), 20.0))
    assert tipping.facts["by"] == code
    if code == "quote":
        assert tipping.facts["usd_per_h"] == pytest.approx(12.0 / 4.0)


@pytest.mark.parametrize(("p90_h", "code"), [(0.9, "value"), (1.1, "wait")])
def test_a_wait_tips_that_makes_up_for_the_gap(p90_h, code):
    """2 USD are an hour."""
    waiting = replace(CHOSEN, wait_s=Quantiles(p50=0.0, p90=p90_h * HOUR_S))
    tipping = tipped(waiting, RIVAL)
    assert tipping.facts["by"] == code
    if code == "wait":
        assert (tipping.facts["limit_s"], tipping.facts["is_known"]) == (pytest.approx(HOUR_S), True)


def test_an_expected_wait_is_a_part_of_it():
    expected = Means(wait_s=HOUR_S, time_s=5 * HOUR_S, cost_usd=10.0, counted_usd=10.0)
    waiting = replace(CHOSEN, expected=expected, wait_s=Quantiles(p50=HOUR_S, p90=3 * HOUR_S))
    assert tipped(waiting, RIVAL).facts["limit_s"] == pytest.approx(2 * HOUR_S)


def test_an_unknown_wait_may_be_as_long_as_the_job():
    tipping = tipped(replace(CHOSEN, wait_s=None), RIVAL)
    assert (tipping.facts["by"], tipping.facts["is_known"]) == ("wait", False)
    assert tipped(replace(CHOSEN, wait_s=None), certain("B", 4.0, 24.0)).by == "value"


@pytest.mark.parametrize(("factor", "code"), [(1.09, "value"), (1.11, "step")])
def test_a_step_tips_that_takes_longer(factor, code):
    """Both money and time grow: 10 % of 10 USD and of 5 h are the 2 USD."""
    step_s = Interval(p10=0.1, p50=0.1, p90=0.1 * factor)
    tipping = tipped(replace(CHOSEN, estimate=make_estimate("A", step_s)), RIVAL)
    assert tipping.facts["by"] == code
    if code == "step":
        assert tipping.facts["limit_s"] == pytest.approx(0.11)


def test_a_price_that_tips_reads_as_higher_than_the_one_counted():
    words = sentence(tip_of("price", RIVAL, usd_per_h=15.7342, quoted_usd_per_h=15.7311))
    assert words.startswith("if it costs more than $15.7342 an hour when you rent (counted: $15.7311), take")


@pytest.mark.parametrize(
    ("step_s", "words"),
    [
        (0.0342, "more than 34.2 ms a step on it (predicted: 29.2 ms),"),
        (0.029216, "more than 29.22 ms a step on it (predicted: 29.18 ms),"),
        (0.02918101, "more than 29.181 ms a step on it (predicted: 29.18 ms),"),
        (3.4567, "more than 3.46 s a step on it (predicted: 3.4 s),"),
    ],
)
def test_a_step_that_tips_reads_as_longer_than_the_one_predicted(step_s, words):
    """29.18 ms and 3.4 s are predicted, printed as 29.2 ms and 3.4 s."""
    expected_s = 0.02918 if step_s < 1 else 3.4
    found = tip_of("step", RIVAL, limit_s=step_s, expected_s=expected_s)
    assert words in sentence(found)


def test_the_cost_of_changes_counts_where_an_hour_s_worth_tips():
    """10 USD and 25 for the change against 60 and 4 hours less: even at 25 / 3.5 USD an hour."""
    changed = replace(CHOSEN, script_changes=(sample(EditScript, what="wrap-in-ddp"),))
    found = tipped(changed, certain("C", 1.5, 60.0))
    assert found.facts["usd_per_h"] == pytest.approx((60 - 10 - 25) / (5 + 0.5 - 1.5))


def test_what_is_wrong_in_a_prediction_is_wrong_in_every_place_of_a_gpu():
    step_s = Interval(p10=0.1, p50=0.1, p90=0.2)
    wide = replace(CHOSEN, estimate=make_estimate("A", step_s))
    near = replace(RIVAL, plan=replace(RIVAL.plan, id="A-elsewhere", gpu="A"))
    assert instead(tipped(wide, near, FAR)) == "A-elsewhere"
    assert tipped(wide, near).by == "value"


def test_of_several_the_one_that_must_move_least():
    both = replace(rising(CHOSEN, 1.3), wait_s=Quantiles(p50=0.0, p90=10 * HOUR_S))
    assert tipped(both, RIVAL).by == "wait"
    assert tipped(rising(both, 4.0), RIVAL).by == "price"


def test_a_tip_is_where_both_totals_are_equal():
    tipping = tipped(rising(CHOSEN, 2.0), RIVAL)
    usd_per_h = tipping.facts["usd_per_h"]
    assert isinstance(usd_per_h, float)
    dearer = certain("A", 5.0, 5.0 * usd_per_h)
    assert total_usd(dearer, Worth()) == pytest.approx(total_usd(RIVAL, Worth()))


def test_of_a_policys_pick_the_objective_tips():
    tipping = what_tips([CHOSEN, RIVAL], RIVAL, replace(JOB, pick=PickName.FASTEST))
    assert (tipping.facts["by"], instead(tipping)) == ("objective", "A")
    assert tipped(CHOSEN, RIVAL, pick=PickName.CHEAPEST) is None


def test_what_never_ends_tips_nothing_and_is_no_rival():
    inf = float("inf")
    endless = replace(RIVAL, expected=Means(wait_s=0.0, time_s=inf, cost_usd=inf, counted_usd=inf))
    assert tipped(endless, CHOSEN) is None
    assert tipped(CHOSEN, endless) is None


@pytest.mark.parametrize(
    ("plan", "place"),
    [
        (make_plan("A", 1.0), ("a.xlarge", "us-east-1", "on-demand")),
        (make_plan("A", 1.0, tier=Tier.CLUSTER), (None, None, None)),
    ],
)
def test_a_machine_is_named_by_its_facts(plan, place):
    facts = machine(replace(CHOSEN, plan=plan)).facts
    assert (facts["gpu"], facts["num_gpus"], facts["provider"]) == ("A", 1, plan.provider)
    assert (facts["instance_type"], facts["place"], facts["market"]) == place


def expecting(name: str, hours: float, usd: float, *, wait_h: float = 0.0, **changes: object) -> Option:
    """An option of certain time and cost."""
    facts: dict[str, object] = {
        "time_s": Quantiles(p50=hours * HOUR_S, p90=hours * HOUR_S),
        "cost_usd": Quantiles(p50=usd, p90=usd),
        "expected": Means(wait_s=wait_h * HOUR_S, time_s=hours * HOUR_S, cost_usd=usd, counted_usd=usd),
    }
    return make_option(name, hours, usd, **(facts | changes))


def at(hour_usd: float) -> Worth:
    return Worth(hour_usd=hour_usd)


def taken(*options: Option, worth: Worth = Worth()) -> str:  # noqa: B008
    return least_total(options, worth).plan.id


def test_nobody_has_to_say_what_an_hour_is_worth():
    assert worth_for(make_job()) == Worth(hour_usd=2.0, change_usd=25.0)
    assert worth_for(make_job()) == Worth(hour_usd=VALUE_OF_TIME_USD_PER_H, change_usd=CHANGE_USD)
    said = make_job(value_of_time_usd_per_h=7.0, change_usd=0.0)
    assert worth_for(said) == Worth(hour_usd=7.0, change_usd=0.0)


def test_the_total_is_money_and_the_worth_of_the_time():
    assert total_usd(expecting("A", 5, 35), at(4.0)) == pytest.approx(35 + 4 * 5)


DDP = (sample(EditScript, what="wrap-in-ddp"),)
PARALLEL = expecting("8xA", 1.0, 10, script_changes=DDP)
FREE = Worth(hour_usd=2.0, change_usd=0.0)
NEVER = Means(wait_s=0.0, time_s=float("inf"), cost_usd=float("inf"), counted_usd=float("inf"))
ENDLESS = expecting("A", 9, 9, expected=NEVER), expecting("B", 1, 1, expected=NEVER)


@pytest.mark.parametrize(
    ("options", "worth", "plan_id"),
    [
        # Seven minutes are not worth a hundred dollars, nor a dollar hours.
        ([expecting(*one) for one in (("A", 0.85, 120), ("B", 0.86, 96), ("C", 0.97, 17), ("D", 4.1, 15.6))],
         Worth(), "C"),
        ([expecting("D", 4.1, 15.6), expecting("C", 0.97, 17)], Worth(), "C"),
        # An unknown cost counts as nothing, and time as time.
        ([expecting("local", 720, 0), expecting("A", 1, 17)], Worth(), "A"),
        ([expecting("local", 2, 0), expecting("A", 1, 17)], Worth(), "local"),
        # Of equal totals the faster, then the first by id.
        ([expecting("A", 2, 8), expecting("B", 1, 10)], Worth(), "B"),
        ([expecting("B", 1, 10), expecting("A", 1, 10)], Worth(), "A"),
        # What may never end comes last, and by its medians.
        (ENDLESS, Worth(), "B"),
        ([*ENDLESS, expecting("C", 900, 900)], Worth(), "C"),
        # A price that nobody quoted counts at its p90.
        ([expecting("A", 10, 40.0), guessed(expecting("B", 10, 30.31), 44.70)], Worth(), "A"),
        ([expecting("A", 10, 40.0), guessed(expecting("B", 10, 30.31), 39.00)], Worth(), "B"),
        ([expecting("A", 10, 40.0), expecting("B", 10, 30.31, cost_usd=Quantiles(p50=30.31, p90=44.70))],
         Worth(), "B"),
        # A change takes half an hour and, at 2 USD an hour, 26 USD are 13 hours.
        ([expecting("A", 13.99, 10), PARALLEL], Worth(), "A"),
        ([expecting("A", 14.01, 10), PARALLEL], Worth(), "8xA"),
        ([expecting("A", 1.49, 10), PARALLEL], FREE, "A"),
        ([expecting("A", 1.51, 10), PARALLEL], FREE, "8xA"),
        # GPT-2 on one H100 on demand, or on eight on spot: 6.00 and 2.25 USD, 0.9 and 1.8 h on average.
        ([expecting("H100", 0.9, 6.00), expecting("8xH100", 1.8, 2.25, script_changes=DDP)], Worth(), "H100"),
    ],
)  # fmt: skip
def test_what_costs_least_in_all_is_taken(options, worth, plan_id):
    assert taken(*options, worth=worth) == plan_id


def test_a_script_that_must_be_changed_costs_work_and_is_ready_half_an_hour_later():
    assert CHANGE_S == 0.5 * HOUR_S
    assert total_usd(PARALLEL, at(4.0)) == pytest.approx(10 + 25 + 4 * 1.5)


def test_several_changes_are_made_in_one_go():
    both = (sample(EditScript, what="wrap-in-ddp"), sample(EditScript, what="use-no-sync"))
    one, two = (expecting("8xA", 1.0, 10, script_changes=some) for some in (both[:1], both))
    assert total_usd(one, at(2.0)) == total_usd(two, at(2.0))


def test_the_reason_names_what_a_change_costs():
    assert sentence(why_least(PARALLEL, at(2.0))) == (
        "the least expected cost and time at $2/h, work on the script counted: $10.00 and 1 h on average, and"
        " $25.00 and 30 min for DDP"
    )
    assert sentence(why_least(expecting("A", 1.0, 10), at(2.0))).endswith("1 h on average")


@pytest.mark.parametrize(
    "change",
    [EditScript(what="use-autocast"), EditScript(what="install-for-cuda-12"), sample(SaveCheckpoints)],
)
def test_a_line_takes_no_work_nor_do_checkpoints_that_the_settings_take_for_granted(change):
    assert total_usd(expecting("A", 1.0, 10, script_changes=(change,)), at(4.0)) == pytest.approx(14)


@pytest.mark.parametrize("value", [0.1, 2.0, 50.0, 1000.0])
@pytest.mark.parametrize("usd_per_h", [0.0, 0.4, 12.0, 98.0])
def test_a_job_of_five_minutes_never_leads_with_eight_gpus(value, usd_per_h):
    """Not even with free ones, however short the job becomes, nor where changes cost nothing."""
    worth = Worth(hour_usd=value, change_usd=0.0)
    eight = expecting("8xA", 1 / 60, usd_per_h / 60, script_changes=DDP)
    assert taken(eight, expecting("A", 5 / 60, usd_per_h / 8 * 5 / 60), worth=worth) == "A"


def queued(hours: float, usd: float, *, wait_h: float, name: str = "LAB", **changes: object) -> Option:
    wait_s = Quantiles(p50=wait_h * HOUR_S, p90=wait_h * HOUR_S)
    plan = make_plan(name, 1.0, tier=Tier.CLUSTER, wait_s=wait_s)
    return expecting(name, hours, usd, wait_h=wait_h, plan=plan, wait_s=wait_s, **changes)


def test_at_the_break_even_wait_both_cost_the_same():
    rented, own = expecting("R", 2.0, 9.0), queued(8.0, 2.0, wait_h=5.0)
    wait_h = break_even_wait_s(own, rented, at(2.0)) / HOUR_S
    assert wait_h == pytest.approx((9.0 - 2.0) / 2.0 + 2.0 - 3.0)
    then = queued(3.0 + wait_h, 2.0, wait_h=wait_h)
    assert total_usd(then, at(2.0)) == pytest.approx(total_usd(rented, at(2.0)))
    assert least_total([own, rented], at(2.0)) is rented
    assert least_total([own, rented], at(1.0)) is own


def test_changes_shorten_the_wait_that_pays_by_what_they_cost():
    own = queued(8.0, 2.0, wait_h=5.0)
    changed = replace(own, script_changes=DDP)
    rented = expecting("R", 2.0, 9.0)
    lost_s = break_even_wait_s(own, rented, at(2.0)) - break_even_wait_s(changed, rented, at(2.0))
    assert lost_s == pytest.approx(CHANGE_S + 25.0 / 2.0 * HOUR_S)


def test_the_best_rented_plan_is_told_of_the_best_of_each_cluster():
    options = [
        queued(8.0, 2.0, wait_h=5.0, name="LAB"),
        queued(9.0, 2.0, wait_h=5.0, name="OLD"),
        expecting("R", 2.0, 9.0),
        expecting("DEAR", 2.0, 90.0, plan=make_plan("DEAR", market=Market.SPOT)),
    ]
    advice = wait_or_rent(options, at(2.0))
    assert set(advice) == {"LAB", "OLD", "R"}
    assert [item.facts["own_id"] for item in advice["R"]] == ["LAB"]
    assert {item.facts["rented_id"] for one in advice.values() for item in one} == {"R"}


def test_there_is_nothing_to_tell_without_both():
    assert wait_or_rent([expecting("R", 2.0, 9.0)], at(2.0)) == {}
    assert wait_or_rent([queued(8.0, 2.0, wait_h=5.0)], at(2.0)) == {}


def test_the_preference_is_of_the_option_alone():
    one = expecting("A", 5, 35)
    assert preference(one, at(4.0)) == (55.0, 5 * HOUR_S, 55.0, False, "A")
