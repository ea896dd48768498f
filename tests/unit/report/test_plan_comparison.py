"""Two plans line by line, and a machine over its numbers of GPUs, as documents in every format."""

import csv
import io
import json
import math
from dataclasses import replace

import pytest

from advisor.core.findings.about_estimates import EditScript
from advisor.core.findings.about_options import RemovedByMemory, RemovedBySpot
from advisor.core.findings.about_spending import PricesNotLive
from advisor.core.values import Option, Quantiles, Recommendation
from advisor.report.option_charts import curve_document
from advisor.report.plan_comparison import Line, comparison_document, groups_of
from advisor.report.printing import Format, text_of
from advisor.report.writers.terminal import Screen, to_terminal
from advisor.service.recommend.comparing import CompareAnswer
from recommender.ranking.value import Worth
from recommender.scaling_curve import scaling_curve
from tests.builders import make_estimate, make_job, make_plan, make_trace
from tests.findings import sample
from tests.recommendations import make_option, removed
from tests.recommending import make_script
from tests.unit.recommender.test_comparison import CURVE, FAST, SLOW, of, pair

WORTH = Worth(hour_usd=2.0)


def answer_of(a: Option, b: Option) -> CompareAnswer:
    return CompareAnswer(comparison=pair(a, b), trace=make_trace(), warnings=(sample(PricesNotLive),))


def lines_of(a: Option, b: Option) -> dict[str, Line]:
    return {line.key: line for _, lines in groups_of(pair(a, b)) for line in lines}


def test_a_line_has_a_difference_and_a_ratio_where_both_are_numbers():
    line = Line(key="time_s_p50", name="Until done", a=2.0, b=5.0)
    assert (line.difference, line.ratio) == (3.0, 2.5)
    assert replace(line, a=0.0).difference == 5.0
    for a, b in ((None, 5.0), ("yes", "no"), (0.0, 5.0), (2.0, math.inf), (math.inf, math.inf)):
        assert replace(line, a=a, b=b).ratio is None


@pytest.mark.parametrize(
    ("usd", "shown"),
    [(250.0, "2.50 x"), (10.0, "0.10 x"), (3.1, "0.031 x"), (0.3, "0.003 x"), (0.0123, "0.00012 x")],
)
def test_a_small_ratio_keeps_two_digits(usd, shown):
    dear = replace(SLOW, cost_breakdown_usd={"training": 100.0})
    cheap = replace(FAST, cost_breakdown_usd={"training": usd})
    text = to_terminal(comparison_document(answer_of(dear, cheap)), Screen(200))
    assert f"({shown})" in text


def test_what_an_iteration_waits_for_adds_up_to_it():
    waits = {"waiting for the host (roofline)": 0.0, "waiting for the host": 0.01}
    estimate = make_estimate(iteration=0.1, communication_s=0.02, by_operator=waits)
    lines = lines_of(FAST, replace(SLOW, estimate=estimate))
    names = ("computing_s", "waiting for the host (s)", "exposed communication (s)", "waiting for data (s)")
    parts = [lines[name].b for name in names]
    assert parts == [pytest.approx(0.07), 0.01, 0.02, 0.0]
    assert sum(part for part in parts if isinstance(part, float)) == pytest.approx(0.1)


def test_the_parts_of_a_cost_stand_under_each_other_whichever_plan_has_them():
    spot = replace(FAST, cost_breakdown_usd={"training": 100.0, "preemptions": 40.0})
    lines = lines_of(spot, SLOW)
    assert (lines["preemptions (USD)"].a, lines["preemptions (USD)"].b) == (40.0, 0.0)
    assert (lines["training (USD)"].a, lines["training (USD)"].b) == (100.0, 100.0)


def test_an_unknown_rent_is_no_number():
    lines = lines_of(FAST, make_option("Own", 30, 0, plan=make_plan("Own", None)))
    assert lines["usd_per_h"].b is lines["cost_usd_p50"].b is lines["cost_usd_p90"].b is None
    assert "p_cheaper" not in lines


def test_changing_the_script_has_lines_where_one_plan_asks_for_it():
    changed = replace(FAST, script_changes=(sample(EditScript, what="wrap-in-ddp"),))
    assert (lines_of(changed, SLOW)["change_s"].a, lines_of(changed, SLOW)["change_s"].b) == (1800.0, 0.0)
    assert "change_s" not in lines_of(FAST, SLOW)


@pytest.mark.parametrize("width", [60, 80, 110, 200])
def test_a_terminal_shows_what_decides_first_and_every_line(width):
    document = comparison_document(answer_of(FAST, removed(SLOW, RemovedByMemory)))
    text = to_terminal(document, Screen(width))
    assert text.startswith("Only A does the job: B does not (")
    assert "Notes on B" in text
    for word in ("Machine", "Nodes", "Iterations", "median", "p90", "Risk"):
        assert word in text
    if width >= 110:
        assert "+10 h (2.00 x)" in text
        assert "-$40.00 (0.71 x)" in text


def test_the_sheet_and_json_have_the_same_lines_as_numbers():
    document = comparison_document(answer_of(FAST, SLOW))
    rows = list(csv.DictReader(io.StringIO(text_of(document, Format.CSV))))
    facts = json.loads(text_of(document, Format.JSON))
    assert [row["line"] for row in rows] == [line["line"] for line in facts["lines"]]
    time = next(line for line in facts["lines"] if line["line"] == "time_s_p50")
    assert (time["a"], time["b"], time["difference"], time["ratio"]) == (36000.0, 72000.0, 36000.0, 2.0)
    assert (facts["p_a_cheaper"], facts["p_a_sooner"], facts["even_usd_per_h"]) == (0.0, 1.0, 4.0)
    assert facts["times_as_fast"] == pytest.approx({"p10": 0.5, "p50": 0.5, "p90": 0.5})
    assert next(row["b"] for row in rows if row["line"] == "times_as_fast") == "0.50 x (0.50 to 0.50)"
    assert facts["verdict_finding"]["facts"]["by"] == "trade"
    assert not {"on_frontier", "recommended"} & {*facts["a"]}
    assert facts["warnings"]


def test_markdown_is_a_letter_and_nothing_in_it_is_active():
    evil = replace(FAST, plan=make_plan("<b>x</b>|y"))
    text = text_of(comparison_document(answer_of(evil, SLOW)), Format.MARKDOWN)
    assert text.startswith("### ")
    assert "**Notes on" not in text or "<b>" not in text
    assert "<b>" not in text.replace("&lt;b>", "")


# --- Over numbers of GPUs --------------------------------------------------------------------------


def curve_text(options: list[Option], output: Format) -> str:
    answer = Recommendation(
        script=make_script(),
        job=make_job(),
        options=tuple(options),
        frontier=(),
        recommended=None,
        rule=None,
        warnings=(),
    )
    return text_of(curve_document(scaling_curve(options, WORTH), answer), output)


def test_a_curve_says_where_more_stop_paying_and_draws_it():
    text = curve_text(CURVE, Format.TABLE)
    words = " ".join(text.split())
    assert words.startswith("More GPUs stop paying after 2 x L4 (aws l4.xlarge us-east-1 spot):")
    assert "the step to 4 GPUs costs $3.00 for each hour that it saves" in words
    bars = [line for line in text.splitlines() if line.startswith("4 x L4 |")]
    assert [line.split()[-1] for line in bars] == ["h", "$20.00"]
    assert all(set(line.partition("|")[2].split()[0]) == {"B"} for line in bars)


@pytest.mark.parametrize("output", [Format.CSV, Format.MARKDOWN, Format.JSON])
def test_a_curve_has_every_format(output):
    options = [*CURVE[:2], removed(of(4, 5, 20), RemovedByMemory)]
    text = curve_text(options, output)
    if output is Format.JSON:
        facts = json.loads(text)
        assert [point["num_gpus"] for point in facts["points"]] == [1, 2, 4]
        assert facts["points"][1]["usd_per_h_saved"] == pytest.approx(1 / 8)
        assert facts["points"][2]["removed_by"] == "memory"
        assert (facts["best"], facts["value_of_time_usd_per_h"]) == (CURVE[1].plan.id, 2.0)
    elif output is Format.CSV:
        assert [row["num_gpus"] for row in csv.DictReader(io.StringIO(text))] == ["1", "2", "4"]
    else:
        assert "does not fit" in text


def test_what_never_ends_is_in_the_table_and_not_drawn():
    never = Quantiles(p50=math.inf, p90=math.inf)
    endless = replace(removed(of(8, 4, 60), RemovedBySpot), time_s=never, cost_usd=never)
    text = curve_text([*CURVE[:2], endless], Format.TABLE)
    assert "8 x L4 |" not in text
    assert "never" in text


def test_in_a_notebook_it_is_a_table_with_what_decides():
    html = pair(FAST, SLOW)._repr_html_()
    assert html is not None
    assert "<table" in html
    assert "What decides" in html
    assert "PlanComparison(" not in html
