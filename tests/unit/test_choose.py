"""Which option of a frontier is taken."""

from __future__ import annotations

import numpy as np

from advisor.core.values import Option, Tier
from recommender.engine import recommend
from recommender.ranking.choose import choose
from tests.builders import make_estimate, make_gpu, make_job, make_plan, make_trace


def options(*points: tuple[str, float, float | None]) -> list[Option]:
    """Options by (name, hours, dollars); None for an unknown cost."""
    plans = [
        make_plan(name, None if usd is None else usd / hours, tier=Tier.CLUSTER)
        for name, hours, usd in points
    ]
    estimates = {(name, 1): make_estimate(name, hours * 3.6) for name, hours, _ in points}
    answer = recommend(
        make_trace(),
        estimates,
        {name: make_gpu(name) for name, _, _ in points},
        plans,
        make_job(iterations=1000),
        rng=np.random.default_rng(0),
    )
    by_id = {option.plan.id: option for option in answer.options}
    return [by_id[plan_id] for plan_id in answer.frontier]


def taken(*points: tuple[str, float, float | None]) -> str:
    found = choose(options(*points))
    assert found is not None
    return found[0].plan.id


def test_nothing_to_choose_from() -> None:
    assert choose([]) is None


def test_the_only_one() -> None:
    assert taken(("A", 1, 1)) == "A"


def test_the_knee_of_four() -> None:
    assert taken(("A", 1, 100), ("B", 1.2, 17), ("C", 4, 15), ("D", 100, 14)) == "B"


def test_three_by_time_times_cost() -> None:
    assert taken(("A", 1, 100), ("B", 2, 10), ("C", 100, 9)) == "B"


def test_seven_minutes_are_not_worth_a_hundred_dollars() -> None:
    assert taken(("A", 0.85, 120), ("B", 0.86, 96), ("C", 0.97, 17), ("D", 4.1, 15.6)) == "C"


def test_an_unknown_cost_does_not_win_whatever_it_takes() -> None:
    assert taken(("local", 720, None), ("A", 1, 17)) == "A"
    assert taken(("local", 2, None), ("A", 1, 17)) == "local"


def test_all_free_is_the_fastest() -> None:
    assert taken(("A", 1, None), ("B", 2, None)) == "A"


def test_a_third_of_a_second_in_five_minutes_is_not_worth_four_times_the_price() -> None:
    start = 300 / 3600
    assert taken(("4 P4", start, 0.0331), ("T4", start * 1.001, 0.0081)) == "T4"


def test_five_per_cent_are_worth_something() -> None:
    points = (("A", 0.94, 2.0), ("B", 1.0, 1.99), ("C", 50, 1.98))
    assert taken(*points) == "A"
    assert taken(("A", 0.96, 2.0), *points[1:]) == "B"


def test_small_savings_add_up() -> None:
    steps = [(f"{i}", 1.0 * 0.97**i, 1.0 + 0.01 * i) for i in range(12)]
    # Each is hardly faster than the one before it, the last is a third faster than the first.
    assert taken(*steps) != "0"
