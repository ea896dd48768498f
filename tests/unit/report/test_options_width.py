"""The table in a narrow terminal, and with as many offers as there are."""

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings import Removal
from advisor.core.units import format_duration_short, format_usd
from advisor.core.values import Recommendation
from advisor.report.document import NARROW, Column
from advisor.report.option_facts import ranked, selection, status, where
from advisor.report.options_table import OPTION_COLUMNS, Form, OptionColumn, options_table
from advisor.report.printing import Format, text_of
from advisor.report.recommendation import recommendation_document
from tests.recommendations import many_options, removed
from tests.unit.report.printed import json_of, of, on_screen

MANY = many_options(3000)


def table(recommendation: Recommendation, *, width: int, top: int | None) -> list[str]:
    text = on_screen(of(options_table(recommendation, top)), width)
    return [line.rstrip() for line in text.splitlines()]


def test_eighty_columns_show_gpus_above_their_place():
    lines = table(many_options(40), width=80, top=8)
    assert lines == [
        "",
        " Status          #  GPUs, and where                         Time (p90)     Cost",
        " " + "─" * 78,
        " recommended     1  8 x V100-PCIE-32GB on-demand         3.4 h (6.8 h)  $13,121",
        "                    aws Standard_ND96isr_H100_v5",
        "                    us-east-1 europe-central2",
        " frontier        2  8 x H100-SXM-80GB spot                 11 h (23 h)   $1,913",
        "                    aws p6-b200.48xlarge us-east-1",
        "                    apse3-az3",
        " frontier        3  8 x RTX-PRO-6000-Server on-demand     7.6 h (15 h)   $3,635",
        "                    aws a2-ultragpu-8g us-east-1",
        "                    northamerica-northeast1-a",
        " frontier        4  8 x L40S spot                         5.1 h (10 h)   $6,906",
        "                    aws g6e.48xlarge us-east-1",
        "                 8  8 x V100-PCIE-32GB on-demand           21 h (42 h)  $95,261",
        "                    aws Standard_ND96isr_H100_v5",
        "                    us-east-1 europe-central2",
        " another world  30  8 x RTX-PRO-6000-Server on-demand                -        -",
        "                    aws a2-ultragpu-8g us-east-1",
        "                    northamerica-northeast1-a",
        " does not fit   31  8 x L40S spot                          22 h (43 h)  $95,448",
        "                    aws g6e.48xlarge us-east-1",
        " over budget    32  8 x V100-PCIE-32GB on-demand           22 h (44 h)  $95,560",
        "                    aws Standard_ND96isr_H100_v5",
        "                    us-east-1 europe-central2",
        "",
    ]


def test_forty_columns_show_an_option_below_each_other():
    assert table(many_options(40), width=40, top=3)[:10] == [
        "",
        "  #  GPUs, where, time (p90), cost",
        " " + "─" * 38,
        "  1  8 x V100-PCIE-32GB on-demand",
        "     aws Standard_ND96isr_H100_v5",
        "     us-east-1 europe-central2",
        "     3.4 h (6.8 h), $13,121,",
        "     recommended",
        "  2  8 x H100-SXM-80GB spot",
        "     aws p6-b200.48xlarge us-east-1",
    ]


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_every_row_has_its_whole_price_and_time_in_its_first_line(width):
    lines = table(MANY, width=width, top=None)
    assert max(map(len, lines)) <= width
    rows = [line for line in lines if "$" in line or line.startswith(" another world")]
    assert len(rows) == 3000
    for number, (row, option) in enumerate(zip(rows, ranked(MANY), strict=True), start=1):
        state = status(option, MANY)
        assert row.removeprefix(f" {state}").split()[0] == str(number)
        if state == "another world":
            assert "$" not in row
            assert row.endswith("-")
            continue
        assert format_usd(option.cost_usd.p50) in row
        assert format_duration_short(option.time_s.p50) in row
        assert f"({format_duration_short(option.time_s.p90)})" in row
        assert "…" not in row


@pytest.mark.parametrize("width", [36, 40, 60, 80, NARROW])
def test_names_are_broken_between_words_alone(width):
    text = " ".join("\n".join(table(MANY, width=width, top=60)).split())
    for _, option in selection(MANY, 60):
        for word in where(option).split():
            assert word in text


def test_the_whole_frontier_is_among_fifteen_of_three_thousand():
    lines = table(MANY, width=120, top=15)
    states = [line[1:13].strip() for line in lines if "$" in line]
    assert states[0] == "recommended"
    assert states.count("frontier") == len(MANY.frontier) - (MANY.recommended in MANY.frontier)


@given(st.integers(8, 200), st.integers(1, 220))
def test_a_selection_keeps_the_order_and_the_recommended_and_the_numbers_of_the_ranking(num_options, top):
    recommendation = many_options(num_options)
    chosen = selection(recommendation, top)
    everything = list(enumerate(ranked(recommendation), start=1))
    assert chosen == [numbered for numbered in everything if numbered in chosen]
    assert recommendation.recommended in {option.plan.id for _, option in chosen}
    assert len(chosen) >= min(top, num_options)
    numbers = [row.cells[1] for row in options_table(recommendation, top).rows]
    assert numbers == [number for number, _ in chosen]


def test_json_of_three_thousand_options_is_complete():
    document = json_of(recommendation_document(MANY, top=None))
    assert [option["id"] for option in document["options"]] == [o.plan.id for o in ranked(MANY)]
    assert len({option["id"] for option in document["options"]}) == 3000
    assert document["frontier"] == list(MANY.frontier)
    assert sum(option["on_frontier"] for option in document["options"]) == 7


def calls_of(write: Callable[[Recommendation], object], recommendation: Recommendation) -> int:
    """How many functions run, a measure of work that no busy machine disturbs."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        write(recommendation)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    "write",
    [
        lambda recommendation: recommendation_document(recommendation, top=None),
        lambda recommendation: selection(recommendation, 15),
    ],
)
def test_the_work_grows_no_faster_than_the_options(write):
    few, many = many_options(300, num_frontier=40), many_options(3000, num_frontier=400)
    assert calls_of(write, many) < 12 * calls_of(write, few)


@pytest.mark.parametrize("kind", Removal.__subclasses__())
def test_whatever_removes_an_option_has_a_status(kind):
    assert status(removed(MANY.options[0], kind), replace(MANY, frontier=(), recommended=None))


def test_a_sheet_has_no_figures_of_another_number_of_ranks():
    few = many_options(40)
    document = recommendation_document(few, top=None)
    assert document.sheet is not None
    sheet = document.sheet()
    names = [column.name for column in sheet.columns]
    rows = [dict(zip(names, row.cells, strict=True)) for row in sheet.rows]
    for row in rows:
        figures = {row[name] for name in ("iteration_s_p50", "time_s_p50", "time_s_p90", "cost_usd_p50")}
        assert ("" in figures) == (row["status"] == "another world")
        assert figures == {""} or "" not in figures
    assert {"another world", "does not fit"} <= {row["status"] for row in rows}


def test_a_new_column_is_one_entry(monkeypatch):
    """Every table that it names, the page and CSV have it; the others are as before."""
    entry = OptionColumn(
        heading=Column("MFU"),
        cell=lambda row: row.option.estimate.mfu,
        forms=Form.WIDE | Form.NARROW,
        keys=("mfu",),
        is_outcome=True,
    )
    monkeypatch.setattr("advisor.report.options_table.OPTION_COLUMNS", (*OPTION_COLUMNS, entry))
    recommendation = many_options(3)
    document = recommendation_document(recommendation, top=3)
    wide = options_table(recommendation, 3)
    middle, narrow = wide.narrow[0], wide.narrow[0].narrow[0]
    for table in (wide, narrow):
        assert table.columns[-1].name == "MFU"
        assert {len(row.cells) for row in table.rows} == {len(table.columns)}
    assert "MFU" not in [column.name for column in middle.columns]
    assert text_of(document, Format.CSV).splitlines()[0].endswith(",work_usd,mfu")
    assert "MFU" in text_of(document, Format.MARKDOWN)
    assert "MFU" in text_of(document, Format.HTML)
