"""The one rule of the choice, and what an hour is worth unless somebody says."""

from dataclasses import replace

import pytest

from advisor.core.findings.about_estimates import EditScript, SaveCheckpoints
from advisor.core.limits import CHANGE_USD, VALUE_OF_TIME_USD_PER_H
from advisor.core.values import Market, Means, Option, Quantiles, Tier
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
from tests.builders import HOUR_S, make_job, make_plan
from tests.findings import sample
from tests.recommendations import guessed, make_option


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


def test_seven_minutes_are_not_worth_a_hundred_dollars():
    points = [("A", 0.85, 120), ("B", 0.86, 96), ("C", 0.97, 17), ("D", 4.1, 15.6)]
    assert taken(*(expecting(*point) for point in points)) == "C"


def test_hours_are_not_waited_for_a_dollar():
    assert taken(expecting("D", 4.1, 15.6), expecting("C", 0.97, 17)) == "C"


def test_an_unknown_cost_counts_as_nothing_and_time_as_time():
    assert taken(expecting("local", 720, 0), expecting("A", 1, 17)) == "A"
    assert taken(expecting("local", 2, 0), expecting("A", 1, 17)) == "local"


def test_of_equal_totals_the_faster_then_the_first_by_id():
    assert taken(expecting("A", 2, 8), expecting("B", 1, 10)) == "B"
    assert taken(expecting("B", 1, 10), expecting("A", 1, 10)) == "A"


def test_what_may_never_end_is_taken_last_and_by_its_medians():
    inf = float("inf")
    endless = Means(wait_s=0.0, time_s=inf, cost_usd=inf, counted_usd=inf)
    slow, fast = expecting("A", 9, 9, expected=endless), expecting("B", 1, 1, expected=endless)
    assert taken(slow, fast) == "B"
    assert taken(slow, fast, expecting("C", 900, 900)) == "C"


def test_a_price_that_nobody_quoted_counts_at_its_p90():
    quoted = expecting("A", 10, 40.0)
    assert taken(quoted, guessed(expecting("B", 10, 30.31), 44.70)) == "A"
    assert taken(quoted, guessed(expecting("B", 10, 30.31), 39.00)) == "B"
    assert taken(quoted, expecting("B", 10, 30.31, cost_usd=Quantiles(p50=30.31, p90=44.70))) == "B"


def test_a_script_that_must_be_changed_costs_work_and_is_ready_half_an_hour_later():
    parallel = expecting("8xA", 1.0, 10, script_changes=(sample(EditScript, what="wrap-in-ddp"),))
    assert CHANGE_S == 0.5 * HOUR_S
    assert total_usd(parallel, at(4.0)) == pytest.approx(10 + 25 + 4 * 1.5)
    # At 2 USD an hour, 26 USD are 13 hours.
    assert taken(expecting("A", 13.99, 10), parallel) == "A"
    assert taken(expecting("A", 14.01, 10), parallel) == "8xA"


def test_who_changes_scripts_for_nothing_says_so():
    free = Worth(hour_usd=2.0, change_usd=0.0)
    parallel = expecting("8xA", 1.0, 10, script_changes=(sample(EditScript, what="wrap-in-ddp"),))
    assert taken(expecting("A", 1.49, 10), parallel, worth=free) == "A"
    assert taken(expecting("A", 1.51, 10), parallel, worth=free) == "8xA"


def test_several_changes_are_made_in_one_go():
    both = (sample(EditScript, what="wrap-in-ddp"), sample(EditScript, what="use-no-sync"))
    one, two = (expecting("8xA", 1.0, 10, script_changes=some) for some in (both[:1], both))
    assert total_usd(one, at(2.0)) == total_usd(two, at(2.0))


def test_a_job_of_an_hour_is_not_rewritten_to_save_four_dollars():
    """GPT-2 on one H100 on demand, or on eight on spot: 6.00 and 2.25 USD, 0.9 and 1.8 h on average."""
    eight = expecting("8xH100", 1.8, 2.25, script_changes=(sample(EditScript, what="wrap-in-ddp"),))
    assert taken(expecting("H100", 0.9, 6.00), eight) == "H100"


def test_the_reason_names_what_a_change_costs():
    changed = expecting("8xA", 1.0, 10, script_changes=(sample(EditScript, what="wrap-in-ddp"),))
    assert sentence(why_least(changed, at(2.0))) == (
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
    eight = expecting("8xA", 1 / 60, usd_per_h / 60, script_changes=(sample(EditScript, what="wrap-in-ddp"),))
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
    changed = replace(own, script_changes=(sample(EditScript, what="wrap-in-ddp"),))
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
