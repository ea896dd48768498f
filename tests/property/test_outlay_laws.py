"""Bills and runs together: each dollar once, and teams with nobody's money add up to the whole."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from advisor.review.budgets import outlay_of
from advisor.spend.charges import Charge, ChargeCategory
from advisor.spend.outlays import outlays_of
from advisor.store.ledger import Run
from tests.team import MONDAY, make_charge, make_run

PROVIDERS, PROJECTS = st.sampled_from(["aws", "gcp"]), st.sampled_from(["", "resnet", "bert"])
TINY = Decimal("1e-15")


@st.composite
def charges(draw: st.DrawFn) -> Charge:
    day, hours = draw(st.integers(0, 5)), draw(st.sampled_from([1, 1, 24, 72]))
    facts: dict[str, Any] = {"end": MONDAY + timedelta(days=day, hours=hours)}
    if draw(st.booleans()):
        facts["effective_cost"] = draw(st.decimals(0, 100, places=3))
    return make_charge(
        day,
        str(draw(st.decimals(-20, 100, places=3))),
        provider=draw(PROVIDERS),
        project=draw(PROJECTS) or None,
        category=draw(st.sampled_from(list(ChargeCategory))),
        currency=draw(st.sampled_from(["USD", "USD", "EUR"])),
        **facts,
    )


RUNS = st.builds(
    make_run,
    st.integers(0, 6),
    st.integers(1, 50_000).map(lambda cents: cents / 100),
    provider=PROVIDERS,
    project=PROJECTS,
)


def slow_total(bill: list[Charge], runs: list[Run]) -> Decimal:
    """The bill, and the runs on days of which it has no use."""
    counted = [c for c in bill if c.currency == "USD" and c.category is not ChargeCategory.TAX]
    total = sum((c.amortised_cost for c in counted), Decimal(0))
    for run in runs:
        on_bill = any(
            c.category is ChargeCategory.USAGE
            and c.provider == run.provider
            and (c.start.date() == run.started_at.date() or c.start <= run.started_at < c.end)
            for c in counted
        )
        total += 0 if on_bill else Decimal(repr(run.cost_usd))
    return total


@given(st.lists(charges(), max_size=12), st.lists(RUNS, max_size=12))
def test_each_dollar_counts_once(bill: list[Charge], runs: list[Run]) -> None:
    spent = outlays_of(bill, map(outlay_of, runs))
    assert abs(sum((one.usd for one in spent), Decimal(0)) - slow_total(bill, runs)) < TINY
    by_project: dict[str, Decimal] = defaultdict(Decimal)
    for one in spent:
        by_project[one.project] += one.usd
    named: dict[str, Decimal] = defaultdict(Decimal)
    for charge in bill:
        if charge.currency == "USD" and charge.category is not ChargeCategory.TAX:
            named[charge.project or ""] += charge.amortised_cost
    for project in ("resnet", "bert"):
        # A bill's tag is never taken away, and a run adds at most what it cost.
        costs = sum((Decimal(repr(r.cost_usd)) for r in runs if r.project == project), Decimal(0))
        assert named[project] - TINY <= by_project[project] <= named[project] + costs + TINY
