"""The plot of time over cost: every option is somewhere, the frontier by letters, nothing over the edge."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings import quoted
from advisor.core.findings.about_options import RemovedByBudget, RemovedByDeadline, RemovedByMemory
from advisor.core.values import Quantiles, Recommendation
from advisor.report.document import Chart, Tone
from advisor.report.option_charts import time_over_cost
from advisor.report.printing import Format, text_of
from advisor.report.runs import frontier_chart
from advisor.report.writers.plot import DOT, MARKS
from tests.builders import HOUR_S, make_job
from tests.recommendations import make_option, many_options, removed
from tests.recommending import make_script
from tests.team import make_offered
from tests.unit.report.printed import of, on_screen

FAST, MIDDLE, CHEAP = make_option("FAST", 1, 100), make_option("MIDDLE", 10, 10), make_option("CHEAP", 100, 1)
WORSE = make_option("WORSE", 100, 100)


def answer(*options, frontier=("FAST", "MIDDLE", "CHEAP"), recommended="MIDDLE") -> Recommendation:
    return Recommendation(
        script=make_script(),
        job=make_job(),
        options=options,
        frontier=frontier,
        recommended=recommended,
        rule=quoted("a rule"),
        warnings=(),
    )


def scatter(recommendation: Recommendation, *, width: int) -> str:
    return on_screen(of(time_over_cost(recommendation, None)), width)


def rows_of(text: str) -> list[str]:
    return [line.partition("|")[2] for line in text.splitlines() if "|" in line]


def test_the_frontier_falls_from_the_dear_and_fast_to_the_cheap_and_slow():
    text = scatter(answer(CHEAP, MIDDLE, FAST, WORSE), width=60)
    rows = rows_of(text)
    assert rows[-1].rstrip().endswith("A")  # fast and dear: low and right
    assert rows[0].startswith("C")  # slow and cheap: high and left
    assert rows[0].endswith(DOT)  # slow and dear
    (middle,) = [row for row in rows if "B" in row]
    # A tenth of one and ten times the other: on log axes that is the middle of both.
    assert abs(middle.index("B") - len(rows[0]) / 2) <= 1
    assert abs(rows.index(middle) - len(rows) / 2) <= 1


def test_letters_lead_to_row_numbers_places_and_the_recommended():
    lines = scatter(answer(CHEAP, MIDDLE, FAST, WORSE), width=100).splitlines()
    assert lines[-4:] == [
        "A #2  1.0 h  $100.00: 1 x FAST, aws fast.xlarge us-east-1 on-demand",
        "B #1  10 h  $10.00, recommended: 1 x MIDDLE, aws middle.xlarge us-east-1 on-demand",
        "C #3  4.2 d  $1.00: 1 x CHEAP, aws cheap.xlarge us-east-1 on-demand",
        ". 1 more, over budget or too late included",
    ]


def test_what_cannot_run_or_never_ends_is_counted_and_not_drawn():
    never = Quantiles(p50=float("inf"), p90=float("inf"))
    small = removed(WORSE, RemovedByMemory, RemovedByBudget)
    endless = removed(make_option("ENDLESS", 1, 1, time_s=never), RemovedByDeadline)
    late = removed(make_option("LATE", 200, 3), RemovedByDeadline)
    lines = scatter(answer(CHEAP, MIDDLE, FAST, small, endless, late), width=70).splitlines()
    assert lines[-2:] == [
        ". 1 more, over budget or too late included",
        "  2 not drawn: they cannot run, or never end",
    ]


def test_nothing_to_draw_is_said_and_one_option_is_a_plot_too():
    small = removed(WORSE, RemovedByMemory)
    text = scatter(answer(small, frontier=(), recommended=None), width=70)
    assert text == "There is nothing to plot: no option runs and ends."
    rows = rows_of(scatter(answer(FAST, frontier=("FAST",), recommended="FAST"), width=70))
    assert "".join(rows).strip() == "A"


def test_what_is_free_stands_at_the_left_edge():
    free = replace(CHEAP, cost_usd=Quantiles(p50=0.0, p90=0.0))
    text = scatter(answer(FAST, MIDDLE, free), width=70)
    assert next(row for row in rows_of(text) if "C" in row).startswith("C")
    axis = text.splitlines()[text.splitlines().index(next(li for li in text.splitlines() if "+--" in li)) + 1]
    assert axis.split() == ["free", "$100.00"]


@given(st.integers(3, 400), st.integers(30, 200), st.integers(1, 40))
def test_nothing_leaves_the_terminal_and_the_first_letter_shows(num_options, width, num_frontier):
    recommendation = many_options(max(num_options, num_frontier + 1), num_frontier=num_frontier)
    text = scatter(recommendation, width=width)
    assert max(map(len, text.splitlines())) <= width
    marks = set("".join(rows_of(text))) - {" "}
    assert "A" in marks
    assert marks <= {*MARKS[:num_frontier], DOT}


@pytest.mark.parametrize("columns", ["80", "132"])
def test_it_takes_the_width_of_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    lines = text_of(of(time_over_cost(many_options(300), 15)), Format.TABLE).splitlines()
    assert max(map(len, lines)) == int(columns) - 1


def test_the_values_are_numbers_and_names_that_any_writer_can_draw():
    chart = time_over_cost(answer(CHEAP, MIDDLE, FAST, WORSE), None)
    assert isinstance(chart, Chart)
    assert [series.points for series in chart.series] == [
        ((100.0, HOUR_S),), ((10.0, 10 * HOUR_S),), ((1.0, 100 * HOUR_S),)
    ]  # fmt: skip
    assert chart.others == ((100.0, 100 * HOUR_S),)
    assert (chart.is_log, chart.until, chart.x.lowest) == (True, None, None)


def test_what_is_folded_is_a_dot_and_has_no_name():
    alike = replace(FAST, folded_into="MIDDLE")
    chart = time_over_cost(answer(CHEAP, MIDDLE, alike), 15)
    assert isinstance(chart, Chart)
    assert [series.label.split()[0] for series in chart.series] == ["#1", "#3"]
    assert chart.others == ((100.0, HOUR_S),)


def test_whoever_points_at_an_option_reads_what_it_is():
    chart = time_over_cost(answer(CHEAP, MIDDLE, FAST, removed(WORSE, RemovedByBudget)), None)
    assert isinstance(chart, Chart)
    middle = chart.series[1].details[0]
    assert middle.label.splitlines() == [
        "1 x MIDDLE, aws middle.xlarge us-east-1 on-demand",
        "recommended",
        "time 10 h, p90 20 h",
        "cost $10.00, p90 $20.00",
        "$1.00 an hour",
    ]
    assert "over budget" in chart.others_details[0].label


def test_error_bars_reach_to_p90_where_there_is_one():
    endless = replace(FAST, time_s=Quantiles(p50=HOUR_S, p90=float("inf")))
    chart = time_over_cost(answer(CHEAP, MIDDLE, endless), None)
    assert isinstance(chart, Chart)
    ends = [(one.details[0].x_range, one.details[0].y_range) for one in chart.series]
    assert ends == [
        ((100.0, 200.0), None),
        ((10.0, 20.0), (10 * HOUR_S, 20 * HOUR_S)),
        ((1.0, 2.0), (100 * HOUR_S, 200 * HOUR_S)),
    ]
    assert [one.tone for one in chart.series] == [Tone.GOOD, Tone.BEST, Tone.GOOD]


def test_the_frontier_is_one_line_from_the_cheapest_to_the_fastest():
    chart = time_over_cost(answer(FAST, CHEAP, WORSE, MIDDLE), None)
    assert isinstance(chart, Chart)
    (frontier,) = chart.guides
    assert frontier.points == ((1.0, 100 * HOUR_S), (10.0, 10 * HOUR_S), (100.0, HOUR_S))
    alone = time_over_cost(answer(FAST, WORSE, frontier=("FAST",), recommended="FAST"), None)
    assert isinstance(alone, Chart)
    assert alone.guides == ()


def test_what_is_recommended_has_a_name_however_long_the_frontier_is():
    ids = [f"P{i}" for i in range(30)]
    options = [make_option(name, i + 1, 100 - i) for i, name in enumerate(ids)]
    kept = [make_offered(name, i + 1, 100 - i) for i, name in enumerate(ids)]
    for chart in (
        time_over_cost(answer(*options, frontier=tuple(ids), recommended="P29"), None),
        frontier_chart(kept, "P29"),
    ):
        assert isinstance(chart, Chart)
        assert [one.tone for one in chart.series].count(Tone.BEST) == 1
