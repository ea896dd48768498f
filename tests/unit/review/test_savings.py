"""Jobs that come again, and where they would cost less: only where it is sure, and in time."""

import dataclasses
from typing import Any

import pytest

from advisor.core.findings.about_options import RemovedByQuota
from advisor.core.values import Interval, Market, Plan, Quantiles, QuoteKind, RunStatus
from advisor.review.savings import Recurring, Saving, recurring_jobs, savings_of
from advisor.store.ledger import LedgerEntry, Run
from tests.findings import sample
from tests.team import make_alternative, make_entry, make_market, make_rent, make_run

ENTRY = make_entry(alternatives=(make_alternative("L4", hours=2.0),))
WEEKLY = tuple(make_run(7 * week, recommendation_id="entry") for week in range(4))


def jobs(*runs: Run, entry: LedgerEntry = ENTRY) -> tuple[Recurring, ...]:
    return recurring_jobs(runs or WEEKLY, {"entry": entry})


def saved(*plans: Plan, entry: LedgerEntry = ENTRY, runs: tuple[Run, ...] = WEEKLY) -> list[Saving]:
    return list(savings_of(jobs(*runs, entry=entry), make_market(*plans))[0])


def rent(usd_per_h: float = 1.0, p90: float | None = None, **changes: Any) -> Plan:
    plan = make_rent("L4", usd_per_h, **changes)
    assert plan.price is not None
    price = dataclasses.replace(
        plan.price, usd_per_h=Interval(p10=usd_per_h, p50=usd_per_h, p90=p90 or usd_per_h)
    )
    return dataclasses.replace(plan, price=price)


def test_a_weekly_job_that_costs_less_elsewhere():
    (saving,) = saved(rent(2.0), rent(3.0, region="eu-west-1"), rent(2.1))
    assert saving.plan == rent(2.0)
    assert saving.usd == Quantiles(p50=4.0, p90=6.0)
    assert saving.time_s == Quantiles(p50=7200.0, p90=10_800.0)
    assert saving.share == pytest.approx(0.6)
    assert saving.period_usd == pytest.approx(24.0)
    assert saving.job.every_s == 7 * 86_400


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (rent(3.4), "10.2 dollars at p90 are more than a run costs now"),
        (rent(2.0, p90=4.0), "a price that may rise so far is not sure"),
        (rent(0.1, kind=QuoteKind.DERIVED), "nobody quoted it"),
        (rent(0.1, kind=QuoteKind.FLOOR), "no one was bidding"),
        (rent(2.0, market=Market.SPOT), "the job never lived with spot machines"),
        (rent(2.0, blocked=sample(RemovedByQuota)), "the account may not start it"),
        (make_rent("T4", 0.1), "nobody predicted it there"),
    ],
)
def test_what_is_not_sure_is_no_saving(plan, why):
    assert saved(plan) == [], why


def test_a_saving_below_a_twentieth_is_not_worth_a_line():
    sure = make_alternative("L4", hours=2.0)
    entry = make_entry(alternatives=(dataclasses.replace(sure, train_p90_s=7200.0),))
    assert saved(rent(4.76), entry=entry) == []
    assert len(saved(rent(4.74), entry=entry)) == 1


def test_deadlines_hold_at_p90_the_wait_counted():
    entry = dataclasses.replace(ENTRY, deadline_s=4 * 3600.0)
    for wait_s, num in ((3600.0, 1), (3601.0, 0)):
        assert len(saved(rent(2.0, wait_s=Quantiles(p50=0.0, p90=wait_s)), entry=entry)) == num


def test_disks_start_up_and_data_are_paid():
    plan = rent(2.0, startup_s=3600.0, storage_usd_per_h=0.1, egress_usd=0.25, transfer_usd=0.05)
    assert saved(plan)[0].usd.p50 == pytest.approx(3 * 2.1 + 0.3)


@pytest.mark.parametrize(("took_s", "time_s"), [(2 * 7200.0, 2 * 7200), (60.0, 7200)])
def test_runs_that_took_longer_than_predicted_would_elsewhere_too_and_less_flatters_none(took_s, time_s):
    runs = tuple(make_run(7 * week, recommendation_id="entry", duration_s=took_s) for week in range(3))
    assert saved(rent(1.0), runs=runs)[0].time_s.p50 == time_s


def test_a_policy_may_forbid_the_place():
    found, unpriced = savings_of(jobs(), make_market(rent(2.0), is_allowed=False))
    assert found == unpriced == ()


@pytest.mark.parametrize(
    "runs",
    [
        WEEKLY[:2],
        tuple(make_run(0.1 * number) for number in range(5)),
        tuple(make_run(number, status=RunStatus.FAILED) for number in range(5)),
        tuple(make_run(number, usd=None) for number in range(5)),
        tuple(make_run(number, script=f"{number}.py") for number in range(5)),
    ],
    ids=["twice", "on one day", "failed", "cost unknown", "other scripts"],
)
def test_what_does_not_come_again_is_no_job(runs):
    assert jobs(*runs) == ()


def test_jobs_that_nothing_prices_are_named():
    (job,) = jobs(entry=make_entry())
    assert savings_of([job], make_market(rent(2.0))) == ((), (job,))
    (job,) = jobs()
    assert savings_of([job], make_market()) == ((), (job,))


def test_the_newest_recommendation_tells():
    newer = make_entry("newer", at=ENTRY.at.replace(year=2027), alternatives=(make_alternative("T4"),))
    (job,) = recurring_jobs(WEEKLY, {"newer": newer, "entry": ENTRY})
    assert job.entry == newer
