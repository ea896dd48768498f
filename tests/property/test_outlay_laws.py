"""Bills and runs together: each dollar once, and teams with nobody's money add up to the whole."""

from collections import defaultdict
from datetime import date, timedelta
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
        instance_type=draw(st.sampled_from(["g5.xlarge", None])),
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
    """The bill, and the runs on days of which it has no machine."""
    counted = [c for c in bill if c.currency == "USD" and c.category is not ChargeCategory.TAX]
    machines = [c for c in counted if c.category is ChargeCategory.USAGE and c.instance_type is not None]
    total = sum((c.amortised_cost for c in counted), Decimal(0))
    for run in runs:
        of_cloud = [c for c in machines if c.provider == run.provider]
        on_bill = any(run.started_at.date() <= _last_day(c, of_cloud) for c in of_cloud if _begun(c, run))
        total += 0 if on_bill else Decimal(repr(run.cost_usd))
    return total


def _begun(charge: Charge, run: Run) -> bool:
    return charge.start.date() <= run.started_at.date()


def _last_day(charge: Charge, of_cloud: list[Charge]) -> date:
    """Of a charge of an hour or a day its first; else that of the last such charge within it, if any."""
    if charge.end - charge.start <= timedelta(days=1):
        return charge.start.date()
    shorter = [c.start.date() for c in of_cloud if c.end - c.start <= timedelta(days=1)]
    end = (charge.end - timedelta(seconds=1)).date()
    return max((day for day in shorter if charge.start.date() <= day <= end), default=end)


@given(st.lists(charges(), max_size=12), st.lists(RUNS, max_size=12))
def test_each_dollar_counts_once(bill, runs):
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
