"""One option line by line, in figures that differ wherever they could be mixed up."""

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings import quoted
from advisor.core.findings.about_options import RemovedByBudget, RemovedBySharding
from advisor.core.units import GIB
from advisor.core.values import Interval, Job, Market, Means, Method, Option, Quantiles, Recommendation, Tier
from advisor.report.explain import MOST_OPERATORS, option_document
from tests.builders import HOUR_S, make_estimate, make_job, make_offer, make_plan
from tests.findings import sample, texts
from tests.recommending import make_script
from tests.unit.report.printed import on_screen

TIME, MONEY = "Time, medians (h:mm:ss)", "Money, medians"

ESTIMATE = make_estimate(
    "X",
    Interval(p10=0.1, p50=0.2, p90=0.5),
    by_family={"gemm": 0.1, "norm and softmax": 0.05},
    by_method={Method.WAVE: 0.05, Method.ROOFLINE: 0.1},
    by_operator={f"op{i} (roofline)": 0.075 / 2 ** min(i, 8) for i in range(10)},
    communication_s=0.05,
    memory_bytes=5 * GIB,
    memory_limit_bytes=16 * GIB,
    assumptions=texts("first assumption", "second assumption"),
)


def make_option(**changes: Any) -> Option:
    facts: dict[str, Any] = {
        "plan": make_plan("X", 4.0, startup_s=300.0),
        "estimate": ESTIMATE,
        "iterations": 12_345,
        "wait_s": Quantiles(p50=60.0, p90=120.0),
        "train_s": Quantiles(p50=1 * HOUR_S, p90=2 * HOUR_S),
        "time_s": Quantiles(p50=1 * HOUR_S + 360, p90=4 * HOUR_S),
        "cost_usd": Quantiles(p50=5.0, p90=9.0),
        "counted_usd": 5.0,
        "expected": Means(wait_s=60.0, time_s=1 * HOUR_S + 360, cost_usd=5.0, counted_usd=5.0),
        "cost_breakdown_usd": {"training": 4.0, "start-up": 1.0},
        "p_within_budget": None,
        "p_within_deadline": None,
        "risk": quoted("some risk"),
        "script_changes": (),
        "reasons": (),
    }
    return Option(**(facts | changes))


LIMITS = make_job(budget_usd=20.0, deadline_s=12 * HOUR_S, confidence=0.8)


def text_of(option: Option, *, job: Job = LIMITS, recommended: bool = False, width: int = 120) -> str:
    ids = (option.plan.id,) if recommended else ()
    recommendation = Recommendation(
        script=make_script(),
        job=job,
        options=(option,),
        frontier=ids,
        recommended=ids[0] if ids else None,
        rule=quoted("the best there is"),
        warnings=(),
    )
    return on_screen(option_document(option, recommendation), width)


def sections(option: Option) -> dict[str, list[str]]:
    """Lines by title."""
    blocks = [block.splitlines() for block in text_of(option).split("\n\n")]
    return {block[0]: block[1:] for block in blocks}


def value(option: Option, title: str, name: str) -> str:
    """What stands behind a name, single spaces between words."""
    lines = [line.strip() for line in sections(option)[title]]
    (text,) = [line.removeprefix(name).strip() for line in lines if line.startswith(f"{name}  ")]
    return " ".join(text.split())


def test_the_headline_says_what_runs_where_and_how_it_stands():
    first, state, rank, risk = sections(make_option())["X"]
    assert rank == "  rank: 1 of 1, the # of tables"
    for text in ("aws x.xlarge us-east-1 on-demand", "1 x X", "12,345"):
        assert text in first
    assert "feasible" in state
    assert "some risk" in risk
    offer = make_offer("X", 4.0, zone="use1-az5", region="us-east-1")
    assert "aws x.xlarge us-east-1 use1-az5 on-demand" in text_of(
        make_option(plan=make_plan("X", 4.0, offer=offer))
    )
    assert "status: recommended: the best there is" in text_of(make_option(), recommended=True)
    assert "status: over budget" in text_of(make_option(reasons=(sample(RemovedByBudget),)))
    assert "status: feasible; in the table it is counted with Y" in text_of(make_option(folded_into="Y"))


def test_each_time_stands_in_its_line():
    option = make_option()
    assert value(option, TIME, "wait") == "0:01:00 p90 2 min"
    assert value(option, TIME, "boot") == "0:05:00"
    assert value(option, TIME, "training") == "1:00:00 12,345 iterations x 200 ms"
    assert value(option, TIME, "total") == "1:06:00 p90 4 h"


def test_the_lines_of_a_section_are_aligned():
    option = make_option(plan=make_plan("X", 4.0, startup_s=900.0, download_s=600.0))
    for title, pattern in ((TIME, r"\d:\d\d:\d\d"), (MONEY, r"\$\d+\.\d\d"), ("One iteration", r"\d ms")):
        ends = {match.end() for line in sections(option)[title][:4] if (match := re.search(pattern, line))}
        assert len(ends) == 1, title


def test_preemptions_and_dearer_hours_have_lines_of_time_and_money():
    spot = make_plan("X", 4.0, market=Market.SPOT, startup_s=300.0)
    option = make_option(
        plan=spot,
        iterations=9000,
        cost_breakdown_usd={"training": 2.0, "start-up": 1.0, "preemptions": 2.0, "price rise": 2.0},
    )
    assert value(option, TIME, "training") == "0:30:00 9,000 iterations x 200 ms"
    assert value(option, TIME, "preemptions").startswith("0:30:00 ")
    assert value(option, TIME, "total").startswith("1:06:00 ")
    assert value(option, MONEY, "preemptions").startswith("$2.00 ")
    dearer = "$2.00 hours that get dearer than the median, as past prices did"
    assert value(option, MONEY, "price rise") == dearer


def test_what_medians_of_a_sum_differ_by_is_told():
    option = make_option(time_s=Quantiles(p50=1 * HOUR_S + 480, p90=4 * HOUR_S))
    assert value(option, TIME, "wait and run together").startswith("0:02:00 the median of a sum")
    less = make_option(time_s=Quantiles(p50=1 * HOUR_S + 350, p90=4 * HOUR_S))
    assert value(less, TIME, "wait and run together").startswith("-0:00:10 ")
    assert "together" not in text_of(make_option())


def test_what_is_unknown_of_an_own_machine_is_not_shown_as_none():
    option = make_option(plan=make_plan("X", None, tier=Tier.CLUSTER), wait_s=None)
    assert "unknown" in value(option, TIME, "wait")
    assert "unknown" in value(option, "Rates", "rate")
    assert "price from" not in text_of(option)


def test_odds_appear_with_their_limit_alone():
    assert "Odds" not in text_of(make_option())
    late = make_option(p_within_deadline=0.25)
    assert sections(late)["Odds"] == ["  done within 12 h            p 0.25, 0.80 is asked for"]
    dear = make_option(p_within_budget=0.0)
    assert sections(dear)["Odds"] == ["  within $20.00               p 0.00, 0.80 is asked for"]


def test_each_sum_stands_in_its_line():
    option = make_option()
    assert value(option, "Rates", "rate") == "$4.00 per hour"
    assert value(option, MONEY, "training") == "$4.00 41 min at $4.00 per hour"
    assert value(option, MONEY, "boot") == "$1.00 5 min at $4.00 per hour"
    assert value(option, MONEY, "total") == "$5.00 p90 $9.00"
    assert value(option, "Rates", "price from") == "a test, 2026-11-01"
    assert not any("includes" in line for line in sections(option)["Rates"])


@pytest.mark.parametrize(
    ("cause", "words"),
    [("billing minimum", "1 min are billed at least"), ("billing step", "whole steps of 1 h are billed")],
)
def test_what_billing_adds_is_a_line_with_its_rule(cause, words):
    plan = make_plan("X", 4.0, minimum_billed_s=60.0, billed_step_s=HOUR_S)
    option = make_option(plan=plan, cost_breakdown_usd={"training": 4.0, "start-up": 0.0, cause: 1.0})
    assert value(option, MONEY, cause) == f"$1.00 {words}"


def test_list_contracted_and_effective_price_stand_apart_where_they_differ():
    def shown(**prices: float) -> Option:
        offer = make_offer(includes=("8 vCPU", "32 GiB RAM"), **prices)
        return make_option(plan=make_plan("X", offer.usd_per_h, offer=offer))

    assert value(shown(), "Rates", "includes") == "8 vCPU, 32 GiB RAM"
    one_price = text_of(shown(usd_per_h=4.0))
    assert not any(word in one_price for word in ("list price", "contracted", "effective"))
    option = shown(usd_per_h=40.0, contracted_usd_per_h=36.0, effective_usd_per_h=30.6)
    names = ("rate", "list price", "contracted price", "effective price")
    assert [value(option, "Rates", name).split()[0] for name in names] == [
        "$30.60",
        "$40.00",
        "$36.00",
        "$30.60",
    ]
    undiscounted = text_of(shown(usd_per_h=40.0, effective_usd_per_h=30.0))
    assert "list price" in undiscounted
    assert "contracted price" not in undiscounted


def test_disks_and_egress_have_lines_with_rate_source_and_date():
    rates = {"storage": "100 GiB at 0.08 USD per GiB-month; a list, 2025-01-01", "data transfer": "some rate"}
    breakdown = {"training": 3.0, "start-up": 1.0, "storage": 0.25, "data transfer": 0.75}
    option = make_option(plan=make_plan("X", 4.0, rates=rates), cost_breakdown_usd=breakdown)
    assert value(option, MONEY, "storage") == "$0.25"
    assert value(option, MONEY, "data transfer") == "$0.75"
    assert value(option, "Rates", "rate of storage") == rates["storage"]
    assert value(option, "Rates", "rate of data transfer") == "some rate"


def test_the_data_set_has_its_own_lines():
    option = make_option(
        plan=make_plan("X", 4.0, startup_s=900.0, download_s=600.0),
        time_s=Quantiles(p50=HOUR_S + 960, p90=2 * HOUR_S),
        cost_breakdown_usd={"training": 4.0, "start-up": 1.0},
    )
    assert value(option, TIME, "boot") == "0:05:00"
    assert value(option, TIME, "download of the data set") == "0:10:00"
    assert value(option, MONEY, "boot").startswith("$0.33 ")
    assert value(option, MONEY, "download of the data set").startswith("$0.67 ")
    assert "data set" not in text_of(make_option())


def test_shares_of_an_iteration_are_of_its_median():
    option = make_option()
    title = "One iteration"
    assert value(option, title, "p10 .. p50 .. p90") == "100 ms .. 200 ms .. 500 ms"
    assert value(option, title, "gemm") == "100.0 ms 50%"
    assert value(option, title, "norm and softmax") == "50.0 ms 25%"
    assert value(option, title, "exposed communication") == "50.0 ms 25%"
    assert value(option, title, "total") == "200.0 ms"
    assert value(option, title, "methods") == "wave 25%, roofline 50%"
    assert "communication" not in text_of(make_option(estimate=make_estimate("X", 0.2)))


def test_only_the_largest_operators_are_shown_and_the_others_as_one():
    (lines,) = [lines for title, lines in sections(make_option()).items() if "operators" in title]
    assert lines[0].split() == ["op0", "(roofline)", "75.0", "ms", "37%"]
    assert lines[MOST_OPERATORS].split()[:2] == ["2", "others"]
    assert lines[-1].split() == ["total", "200.0", "ms"]


@given(
    st.dictionaries(
        st.sampled_from(["training", "start-up", "storage", "data transfer", "price rise", "preemptions"]),
        st.floats(0, 1e5),
        min_size=2,
    ),
    st.floats(0, 1e6),
    st.floats(1, 1e6),
    st.sampled_from([Market.SPOT, Market.ON_DEMAND]),
)
def test_what_is_printed_adds_up_to_what_is_printed(breakdown, wait_s, train_s, market):
    startup_s, usd = 900.0, sum(breakdown.values())
    option = make_option(
        plan=make_plan("X", 4.0, market=market, startup_s=startup_s, download_s=600.0),
        wait_s=Quantiles(p50=wait_s, p90=2 * wait_s),
        train_s=Quantiles(p50=train_s, p90=2 * train_s),
        time_s=Quantiles(p50=1.02 * (wait_s + train_s + startup_s), p90=9e9),
        cost_usd=Quantiles(p50=usd, p90=2 * usd + 1),
        cost_breakdown_usd=breakdown,
    )
    parts = sections(option)
    seconds = [as_seconds(re.search(r"-?[\d,]+:\d\d:\d\d", line)[0]) for line in parts[TIME]]
    assert sum(seconds[:-1]) == seconds[-1] == round(option.time_s.p50)
    cents = [Decimal(re.search(r"\$([\d,.]+)", line)[1].replace(",", "")) for line in parts[MONEY]]
    assert sum(cents[:-1]) == cents[-1]
    assert float(cents[-1]) == pytest.approx(usd, abs=0.0051)
    for title in ("One iteration", "Its largest operators, and how their time was found"):
        times = [
            Decimal(m[1]) for line in parts[title] if (m := re.search(r" {2,}([\d.]+) ms(  \d|$)", line))
        ]
        assert len(times) > 3
        assert sum(times[:-1]) == times[-1] == Decimal("200.0")


def as_seconds(text: str) -> int:
    hours, minutes, seconds = map(int, text.lstrip("-").replace(",", "").split(":"))
    return (-1 if text.startswith("-") else 1) * (3600 * hours + 60 * minutes + seconds)


def test_long_lines_are_broken_where_the_terminal_ends():
    rates = {"storage": "100 GiB at 0.08 USD per GiB-month; written down by hand; see https://example.org"}
    option = make_option(plan=make_plan("X", 4.0, rates=rates), reasons=texts("a reason of many words " * 9))
    text = text_of(option, width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert "https://example.org" in text
    assert " ".join(text.split()).count("a reason of many words") == 9
    after = text.partition("rate of storage")[2].splitlines()[1]
    assert after.startswith(" " * 30)
    assert after[30] != " "


def test_memory_needed_and_available():
    title = "Memory of one GPU"
    assert value(make_option(), title, "needed") == "5 GiB (5 GiB .. 5 GiB)"
    assert value(make_option(), title, "available") == "16 GiB"
    unknown = make_option(estimate=make_estimate(memory_bytes=None))
    assert value(unknown, title, "needed") == "unknown"
    assert value(unknown, title, "available") == "16 GiB"


@pytest.mark.parametrize(
    ("field", "title"), [("script_changes", "What to change in the script"), ("reasons", "Notes")]
)
def test_an_empty_section_has_no_title(field, title):
    assert title not in text_of(make_option())
    filled = sections(make_option(**{field: texts("do this", "and that")}))
    assert filled[title] == ["  do this", "  and that"]
    assert filled["What the estimate rests on"] == ["  first assumption", "  second assumption"]


def test_what_never_ends_is_said_in_words():
    never = Quantiles(p50=float("inf"), p90=float("inf"))
    option = make_option(time_s=never, train_s=never, cost_usd=never, cost_breakdown_usd={})
    assert value(option, TIME, "total") == "never"
    assert value(option, MONEY, "total") == "unbounded"
    assert "inf" not in text_of(option)
    assert "nan" not in text_of(option)


def test_of_another_number_of_ranks_no_time_and_no_cost_are_shown():
    option = make_option(reasons=(sample(RemovedBySharding),), p_within_budget=0.9, p_within_deadline=0.9)
    shown = sections(option)
    assert not {"Odds", "Time, medians (h:mm:ss)", "Money, medians", "One iteration"} & set(shown)
    assert "Notes" in shown
    assert "status: another world" in text_of(option)
    assert "$5.00" not in text_of(option)
