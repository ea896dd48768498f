"""Jobs that would cost less elsewhere, where it is sure and in time, and where money leaks."""

import dataclasses
from typing import Any

import pytest

from advisor.core.findings import Finding
from advisor.core.findings.about_options import RemovedByQuota
from advisor.core.findings.about_spending import Leak
from advisor.core.values import Interval, Market, Plan, Quantiles, QuoteKind, RunStatus
from advisor.report.words import sentence
from advisor.review.budgets import Scope
from advisor.review.savings import Recurring, Saving, accuracy_of, recurring_jobs, savings_of
from advisor.review.spending import billing_of, leaks_of
from advisor.store.ledger import LedgerEntry, Run
from tests.findings import sample
from tests.team import (
    WEEK,
    make_alternative,
    make_bill,
    make_charge,
    make_entry,
    make_market,
    make_rent,
    make_run,
)

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


def leaks(*runs: Run) -> dict[object, Finding]:
    entries = {"entry": make_entry()}
    compared = accuracy_of(runs, entries).comparisons
    found = leaks_of(runs, compared, None, lambda run: run.recommendation_id is not None)
    assert [float(str(one.facts["usd"])) for one in found] == sorted(
        (float(str(one.facts["usd"])) for one in found), reverse=True
    )
    return {one.facts["of"]: one for one in found}


def advised(usd: float | None = 10.0, **changes: object) -> Run:
    return make_run(usd=usd, recommendation_id="entry", **changes)


def test_a_run_that_went_well_leaks_nothing():
    assert leaks(advised()) == {}


def test_runs_that_ended_badly_are_told_by_how():
    found = leaks(
        advised(3.0, status=RunStatus.FAILED, script="a.py"),
        advised(0.1, status=RunStatus.FAILED, script="b.py"),
        advised(None, status=RunStatus.FAILED),
        advised(2.0, status=RunStatus.INTERRUPTED),
        advised(1.0, status=RunStatus.LOST),
    )
    assert found.keys() == {"failed", "interrupted", "lost"}
    scripts = ["a.py", "b.py", "train.py"]
    assert found["failed"] == Leak(of="failed", usd=3.1, num_runs=3, num_unknown=1, scripts=scripts)


def test_runs_nobody_asked_about_are_told_and_own_machines_are_not():
    found = leaks(make_run(usd=4.0), make_run(market=None, provider="local", usd=0.0))
    assert found["unadvised"].facts["num_runs"] == 1


def test_only_what_exceeds_the_p90_leaks():
    found = leaks(advised(15.0), advised(15.5), advised(17.25))
    assert found["above-p90"].facts["usd"] == 2.75
    assert found["above-p90"].facts["num_runs"] == 2


def test_machines_that_no_run_explains_are_idle_and_others_are_not():
    charges = make_charge(usd="12"), make_charge(usd="1", instance_type="g6.xlarge")
    runs = make_run(usd=10.0), make_run(usd=5.0, instance_type="g6.xlarge")
    billing = billing_of([make_bill(*charges)], runs, WEEK, Scope())
    (leak,) = leaks_of(runs, (), billing, lambda _: True)
    machine = {"provider": "aws", "instance_type": "g5.xlarge"}
    assert leak == Leak(of="idle", usd=2.0, amortised_usd=12.0, num_runs=1, **machine)
    assert "aws g5.xlarge cost $12.00 (amortised), and 1 run explains all but $2.00" in sentence(leak)
    (alone,) = leaks_of((), (), billing_of([make_bill(charges[0])], (), WEEK, Scope()), lambda _: True)
    assert "no run explains any of it" in sentence(alone)
