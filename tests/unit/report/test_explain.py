"""One option line by line, in figures that differ wherever they could be mixed up."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.report.explain import MOST_OPERATORS, explain
from advisor.types import Interval, Method, Option, Quantiles, Tier
from advisor.units import GIB
from tests.builders import HOUR_S, make_estimate, make_offer, make_plan

ESTIMATE = make_estimate(
    "X",
    Interval(p10=0.1, p50=0.2, p90=0.5),
    by_family={"gemm": 0.1, "norm and softmax": 0.05},
    by_method={Method.WAVE: 0.05, Method.ROOFLINE: 0.1},
    by_operator={f"op{i} (roofline)": 0.1 / 2**i for i in range(10)},
    communication_s=0.05,
    memory_bytes=5 * GIB,
    memory_limit_bytes=16 * GIB,
    assumptions=("first assumption", "second assumption"),
)


def make_option(**changes: Any) -> Option:
    facts: dict[str, Any] = {
        "plan": make_plan("X", 4.0, startup_s=300.0),
        "estimate": ESTIMATE,
        "iterations": 12_345,
        "wait_s": Quantiles(p50=60.0, p90=120.0),
        "train_s": Quantiles(p50=1 * HOUR_S, p90=2 * HOUR_S),
        "time_s": Quantiles(p50=3 * HOUR_S, p90=4 * HOUR_S),
        "cost_usd": Quantiles(p50=5.0, p90=9.0),
        "cost_breakdown_usd": {"training": 4.0, "start-up": 1.0},
        "p_within_budget": None,
        "p_within_deadline": None,
        "risk": "some risk",
        "feasible": True,
        "removed_by": None,
        "script_changes": (),
        "reasons": (),
    }
    return Option(**(facts | changes))


def sections(option: Option) -> dict[str, list[str]]:
    """Lines by title."""
    blocks = [block.splitlines() for block in explain(option).split("\n\n")]
    return {block[0]: block[1:] for block in blocks}


def value(option: Option, title: str, name: str) -> str:
    """What stands behind a name, spaces aside."""
    lines = [line.strip() for line in sections(option)[title]]
    (found,) = [line.removeprefix(name).strip() for line in lines if line.startswith(f"{name}  ")]
    return found


def test_the_headline_says_what_runs_where() -> None:
    first, risk = sections(make_option())["X"]
    for text in ("aws x.xlarge us-east-1 on-demand", "1 x X", "12,345"):
        assert text in first
    assert "some risk" in risk


def test_each_time_stands_in_its_line() -> None:
    option = make_option()
    assert value(option, "Time", "wait") == "1 min (2 min)"
    assert value(option, "Time", "start-up") == "5 min"
    assert value(option, "Time", "training") == "1 h (2 h)"
    assert value(option, "Time", "total") == "3 h (4 h)"


def test_an_unknown_wait_is_not_shown_as_none() -> None:
    assert "unknown" in value(make_option(wait_s=None), "Time", "wait")


def test_odds_appear_with_their_limit_alone() -> None:
    neither = explain(make_option())
    assert "deadline" not in neither
    assert "budget" not in neither
    late = make_option(p_within_deadline=0.25)
    assert value(late, "Time", "by the deadline with p") == "0.25"
    assert "budget" not in explain(late)
    dear = make_option(p_within_budget=0.0)
    assert value(dear, "Money", "within budget with p") == "0.00"
    assert "deadline" not in explain(dear)


def test_each_sum_stands_in_its_line() -> None:
    option = make_option()
    assert value(option, "Money", "rate").startswith("$4.00")
    assert value(option, "Money", "training") == "$4.00"
    assert value(option, "Money", "start-up") == "$1.00"
    assert value(option, "Money", "total") == "$5.00 ($9.00)"
    assert value(option, "Money", "price from") == "a test, 2026-11-01"
    assert not any("includes" in line for line in sections(option)["Money"])


def test_what_the_price_includes() -> None:
    offer = make_offer(includes=("8 vCPU", "32 GiB RAM"))
    option = make_option(plan=make_plan(offer=offer))
    assert value(option, "Money", "includes") == "8 vCPU, 32 GiB RAM"


def test_one_price_is_one_line() -> None:
    offer = make_offer(usd_per_h=4.0)
    text = explain(make_option(plan=make_plan("X", 4.0, offer=offer)))
    assert not any(word in text for word in ("list price", "contracted", "effective"))


def test_list_contracted_and_effective_price_stand_apart() -> None:
    offer = make_offer(usd_per_h=40.0, contracted_usd_per_h=36.0, effective_usd_per_h=30.6)
    option = make_option(plan=make_plan("X", offer.usd_per_h, offer=offer))
    assert value(option, "Money", "rate") == "$30.60 per hour"
    assert value(option, "Money", "list price") == "$40.00 per hour"
    assert value(option, "Money", "contracted price") == "$36.00 per hour"
    assert value(option, "Money", "effective price") == "$30.60 per hour"


def test_a_commitment_without_a_discount_has_no_contracted_price() -> None:
    offer = make_offer(usd_per_h=40.0, effective_usd_per_h=30.0)
    text = explain(make_option(plan=make_plan("X", 30.0, offer=offer)))
    assert "list price" in text
    assert "contracted price" not in text


def test_disks_and_egress_have_lines_with_rate_source_and_date() -> None:
    rates = {"storage": "100 GiB at 0.08 USD per GiB-month; a list, 2025-01-01", "data transfer": "some rate"}
    breakdown = {"training": 3.0, "start-up": 1.0, "storage": 0.25, "data transfer": 0.75}
    option = make_option(plan=make_plan("X", 4.0, rates=rates), cost_breakdown_usd=breakdown)
    assert value(option, "Money", "storage") == "$0.25"
    assert value(option, "Money", "data transfer") == "$0.75"
    assert value(option, "Money", "rate of storage") == rates["storage"]
    assert value(option, "Money", "rate of data transfer") == "some rate"


def test_the_time_of_the_data_set_is_part_of_the_start_up() -> None:
    option = make_option(plan=make_plan("X", 4.0, startup_s=900.0, download_s=600.0))
    assert value(option, "Time", "start-up") == "15 min"
    assert value(option, "Time", "of it the data set") == "10 min"
    assert "data set" not in explain(make_option())


def test_an_own_machine_has_no_source_of_its_price() -> None:
    option = make_option(plan=make_plan("X", None, tier=Tier.CLUSTER))
    assert "unknown" in value(option, "Money", "rate")
    assert "price from" not in explain(option)


def test_shares_of_an_iteration_are_of_its_median() -> None:
    option = make_option()
    title = "One iteration"
    assert value(option, title, "p10 .. p50 .. p90") == "100 ms .. 200 ms .. 500 ms"
    assert value(option, title, "gemm") == "100 ms (50%)"
    assert value(option, title, "norm and softmax") == "50 ms (25%)"
    assert value(option, title, "exposed communication") == "50 ms (25%)"
    assert value(option, title, "methods") == "wave 25%, roofline 50%"


def test_no_communication_is_no_line() -> None:
    assert "communication" not in explain(make_option(estimate=make_estimate("X", 0.2)))


def test_only_the_largest_operators_are_shown() -> None:
    (lines,) = [lines for title, lines in sections(make_option()).items() if "operators" in title]
    assert len(lines) == MOST_OPERATORS == 8
    assert lines[0].split() == ["op0", "(roofline)", "100", "ms", "(50%)"]
    assert "op7 (roofline)" in lines[-1]


def test_memory_needed_and_available() -> None:
    title = "Memory of one GPU"
    assert value(make_option(), title, "needed") == "5 GiB"
    assert value(make_option(), title, "available") == "16 GiB"
    unknown = make_option(estimate=make_estimate(memory_bytes=None))
    assert value(unknown, title, "needed") == "unknown"
    assert value(unknown, title, "available") == "16 GiB"


@pytest.mark.parametrize(
    ("field", "title"),
    [("script_changes", "What to change in the script"), ("reasons", "Notes")],
)
def test_an_empty_section_has_no_title(field: str, title: str) -> None:
    assert title not in explain(make_option())
    filled = make_option(**{field: ("do this", "and that")})
    assert sections(filled)[title] == ["  do this", "  and that"]


def test_every_assumption_is_told() -> None:
    assert sections(make_option())["What the estimate rests on"] == [
        "  first assumption",
        "  second assumption",
    ]


def test_what_never_ends_is_said_in_words() -> None:
    never = Quantiles(p50=float("inf"), p90=float("inf"))
    option = make_option(time_s=never, train_s=never, cost_usd=never, cost_breakdown_usd={})
    assert value(option, "Time", "total") == "never"
    assert "inf" not in explain(option)
    assert "nan" not in explain(option)
