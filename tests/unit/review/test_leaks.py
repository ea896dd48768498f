"""Where money leaks: each kind with its sum, the dearest first."""

from advisor.core.findings import Finding
from advisor.core.findings.about_spending import Leak
from advisor.core.values import RunStatus
from advisor.report.words import sentence
from advisor.review.budgets import Scope
from advisor.review.savings import accuracy_of
from advisor.review.spending import billing_of, leaks_of
from advisor.store.ledger import Run
from tests.team import WEEK, make_bill, make_charge, make_entry, make_run


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
