"""How a month will end, as unsure as it says, and predicted costs against actual ones."""

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from advisor.core.values import Interval, Quantiles, RunStatus
from advisor.review.budgets import LEAST_WEEKS, MOST_WEEKS, Month, month_outlook
from advisor.review.savings import Accuracy, accuracy_of, predicted_s
from advisor.store.ledger import Run
from tests.team import make_entry, make_run

NOW = datetime(2026, 11, 22, tzinfo=UTC)
Spent = list[tuple[datetime, Decimal]]


def every_day(usd: float, days: int, now: datetime = NOW) -> Spent:
    """The same at each noon before a moment."""
    return [(now - timedelta(days=ago + 0.5), Decimal(str(usd))) for ago in range(days)]


def test_even_spending_goes_on_evenly():
    month = month_outlook(every_day(10, 60), NOW)
    assert month.spent_usd == 210
    assert {month.forecast.quantile(share) for share in (0.1, 0.5, 0.9)} == {300.0}
    assert month.forecast.odds_above(299.99) == 1
    assert month.forecast.odds_above(300) == 0


def test_a_part_of_a_day_counts_as_a_part():
    now = NOW + timedelta(hours=6)
    month = month_outlook(every_day(8, 60, now), now)
    # 21.25 days are over, in which 21 noons before now were paid for; 8.75 are to come.
    assert month.forecast.quantile(0.5) == pytest.approx(float(month.spent_usd) + 8 * 8.75)


def test_weekends_stay_quiet():
    spent = [(at, usd) for at, usd in every_day(10, 84) if at.weekday() < 5]
    month = month_outlook(spent, NOW)
    # Sunday the 22nd to Monday the 30th: six days of work.
    assert month.forecast.quantile(0.5) == float(month.spent_usd) + 60


@pytest.mark.parametrize("days", [0, 1, LEAST_WEEKS * 7 - 1])
def test_of_a_short_past_nothing_is_said(days):
    month = month_outlook(every_day(10, days), NOW)
    assert month.forecast is None
    assert month.band == ()
    assert month.spent_usd == 10 * min(days, 21)


def test_old_habits_are_forgotten():
    before = [(at - timedelta(weeks=MOST_WEEKS), 100 * usd) for at, usd in every_day(10, 60)]
    month = month_outlook([*before, *every_day(10, MOST_WEEKS * 7)], NOW)
    assert month.forecast.num_weeks == MOST_WEEKS
    assert month.forecast.quantile(0.9) == 300


def test_what_comes_after_now_does_not_count():
    future = [(NOW, Decimal(1000)), (NOW + timedelta(days=1), Decimal(1000))]
    assert month_outlook([*every_day(10, 60), *future], NOW) == month_outlook(every_day(10, 60), NOW)


def test_at_the_end_of_a_month_it_is_what_was_spent():
    now = datetime(2026, 12, 1, tzinfo=UTC)
    month = month_outlook(every_day(10, 60, now), now)
    assert (month.spent_usd, set(month.forecast.draws), month.band) == (300, {300.0}, ())


def test_days_add_up_and_the_band_begins_where_they_end():
    month = month_outlook(every_day(10, 60), NOW)
    assert [usd for _, usd in month.daily] == [Decimal(10 * day) for day in range(1, 22)]
    assert month.band[0][1] == (220.0, 220.0, 220.0)
    assert month.band[-1] == (month.until, (300.0, 300.0, 300.0))


def test_the_same_past_has_the_same_future():
    spent = every_day(10, 30) + every_day(3, 50)
    assert month_outlook(spent, NOW) == month_outlook(list(reversed(spent)), NOW)


def test_eight_of_ten_months_end_within_the_interval():
    """Days of independent, skewed spending: the interval of 80 % must hold about as often as it says."""
    source = random.Random(1)  # noqa: S311
    held = 0
    for _ in range(60):
        past = [(at, Decimal(str(round(source.lognormvariate(3, 0.8), 2)))) for at, _ in every_day(1, 91)]
        rest = sum(source.lognormvariate(3, 0.8) for _ in range(9))
        month: Month = month_outlook(past, NOW)
        truth = float(month.spent_usd) + rest
        held += month.forecast.quantile(0.1) <= truth <= month.forecast.quantile(0.9)
    assert 40 <= held <= 57


def accuracy(*runs: Run, **changes: object) -> Accuracy:
    return accuracy_of(runs, {"entry": make_entry(**changes)})


def followed(hours: float = 2.0, usd: float | None = 10.0, **changes: object) -> Run:
    return make_run(usd=usd, recommendation_id="entry", duration_s=hours * 3600, **changes)


def test_a_run_at_the_bound_is_within_it():
    held = accuracy(followed(2.0), followed(3.0), followed(3.001)).time
    assert (held.num, held.num_within_p50, held.num_within_p90) == (3, 1, 2)
    assert held.expected_within_p90 == pytest.approx(2.7)
    assert held.median_ratio == 1.5


def test_costs_have_a_record_of_their_own():
    held = accuracy(followed(usd=15.0), followed(usd=16.0), followed(usd=None)).cost
    assert (held.num, held.num_within_p90) == (2, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": RunStatus.FAILED},
        {"status": RunStatus.INTERRUPTED},
        {"status": RunStatus.LOST},
        {"gpu": "L4"},
        {"num_gpus": 2},
        {"provider": "gcp"},
        {"market": None},
    ],
)
def test_who_did_not_finish_or_ran_elsewhere_is_not_compared(changes):
    compared = accuracy(followed(**changes))
    assert compared.comparisons == ()
    assert compared.time is compared.cost is None
    assert compared.num_elsewhere == (0 if "status" in changes else 1)


def test_runs_of_unknown_length_or_recommendation_are_not_compared():
    assert accuracy(make_run(), make_run(recommendation_id="lost")).comparisons == ()
    assert accuracy(make_run(recommendation_id="entry", duration_s=None)).time is None


def test_the_time_of_training_is_compared_where_it_is_known_apart_from_the_wait():
    steps = Interval(p10=0.1, p50=0.5, p90=0.6)
    entry = make_entry(iteration_s=steps, num_iterations=1000)
    assert predicted_s(entry) == Quantiles(p50=500.0, p90=600.0)
    assert predicted_s(make_entry(iteration_s=steps)) == entry.time_s


def test_each_gpu_has_a_record():
    entries = {"a": make_entry("a"), "b": make_entry("b", gpu="L4")}
    runs = make_run(recommendation_id="a"), make_run(recommendation_id="b", gpu="L4")
    assert list(accuracy_of(runs, entries).by_gpu) == ["A10G", "L4"]
