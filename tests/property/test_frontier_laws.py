"""Laws of the frontier by brute force, and of bills and runs together: each dollar counts once."""

import math
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
from recommender.ranking.frontier import EPSILON, Point, frontier, frontier_of_three, ties
from tests.team import MONDAY, make_charge, make_run

# Few distinct values, so that ties and duplicates are common.
AXIS = st.one_of(st.integers(0, 6).map(float), st.floats(0, 1e6, allow_nan=False), st.just(math.inf))
POINTS = st.lists(st.tuples(AXIS, AXIS), max_size=25)


def dominates(a: Point, b: Point) -> bool:
    return a[0] <= b[0] and a[1] <= b[1] and a != b


def brute_force(points: list[Point]) -> set[int]:
    return {
        i
        for i, point in enumerate(points)
        if all(map(math.isfinite, point)) and not any(dominates(other, point) for other in points)
    }


@given(POINTS)
def test_equals_brute_force(points):
    assert set(frontier(points)) == brute_force(points)


@given(POINTS)
def test_is_sorted_by_time_and_falls_in_cost(points):
    chosen = [points[i] for i in frontier(points)]
    assert chosen == sorted(chosen)
    assert [cost for _, cost in chosen] == sorted((c for _, c in chosen), reverse=True)


Point3 = tuple[float, float, float]
POINTS3 = st.lists(st.tuples(AXIS, AXIS, st.integers(0, 3).map(float)), max_size=25)


@given(POINTS3)
def test_with_risk_it_equals_brute_force_in_three_axes(points):
    def beats(a: Point3, b: Point3) -> bool:
        return all(x <= y for x, y in zip(a, b, strict=True)) and a != b

    expected = {
        i
        for i, point in enumerate(points)
        if all(map(math.isfinite, point)) and not any(beats(other, point) for other in points)
    }
    assert set(frontier_of_three(points)) == expected


@given(POINTS)
def test_with_equal_risk_it_is_the_frontier_of_time_and_cost(points):
    assert frontier_of_three([(*point, 1.0) for point in points]) == frontier(points)


@given(POINTS)
def test_ties_equal_brute_force(points):
    def nearly(a: Point, b: Point) -> bool:
        return all(max(x, y) <= min(x, y) * (1 + EPSILON) for x, y in zip(a, b, strict=True))

    kept = frontier(points)
    tied = ties(points, kept)
    finite = [i for i, point in enumerate(points) if all(map(math.isfinite, point))]
    assert set(tied) == {i for i in finite if any(i != j and nearly(points[i], points[j]) for j in kept)}
    assert all(j in kept and nearly(points[i], points[j]) for i, j in tied.items())


@given(POINTS, st.permutations(range(25)))
def test_the_order_of_offers_does_not_matter(points, order):
    shuffled = [points[i] for i in order if i < len(points)]
    one, other = frontier(points), frontier(shuffled)
    assert [points[i] for i in one] == [shuffled[i] for i in other]
    assert sorted(points[i] for i in ties(points, one)) == sorted(shuffled[i] for i in ties(shuffled, other))


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
