"""The table of what changes bring."""

from dataclasses import replace

import pytest

from advisor.core.findings.about_estimates import NoGain
from advisor.core.values import ChangeGain, Interval, Recommendation
from advisor.report.document import Tone
from advisor.report.printing import Format, text_of
from advisor.report.recommendation import gain_json, gains_table, recommendation_document
from tests.builders import make_job
from tests.recommendations import make_option
from tests.recommending import make_script

OPTION = make_option("A", 5.0, 10.0)
SURE = ChangeGain(
    change="bf16",
    option=OPTION,
    saved_s=3600.0,
    saved_usd=2.5,
    saved_share=Interval(p10=0.2, p50=0.3, p90=0.4),
    p_faster=0.99,
)
UNSURE = ChangeGain(
    change="fused",
    option=OPTION,
    instead=make_option("B", 4.0, 8.0),
    saved_s=-30.0,
    saved_share=Interval(p10=-0.1, p50=0.0, p90=0.1),
    p_faster=0.5,
)
NONE = ChangeGain(change="flash", why_not=NoGain(why="nothing", lacking="attention"))


def recommendation(*gains: ChangeGain) -> Recommendation:
    return Recommendation(
        script=make_script(),
        job=make_job(),
        options=(OPTION,),
        frontier=("A",),
        recommended="A",
        rule=None,
        warnings=(),
        gains=gains,
    )


def test_a_row_says_what_changes_and_how_surely():
    table = gains_table(recommendation(SURE, UNSURE, NONE))
    assert [row.tone for row in table.rows] == [Tone.GOOD, Tone.PLAIN]
    texts = [[getattr(cell, "text", cell) for cell in row.cells] for row in table.rows]
    assert texts == [
        ["bf16", "1 h less", "$2.50 less", "30 % less (20 .. 40)", "99%"],
        ["fused", "30 s more", None, "0 % less (-10 .. 10)", "50%"],
    ]


@pytest.mark.parametrize("columns", ["80", "100"])
def test_what_has_no_figures_is_told_in_whole_lines(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    unlike = replace(NONE, change="packed")
    slower = replace(UNSURE, change="tf32", saved_share=Interval(p10=-0.3, p50=-0.2, p90=-0.1))
    asked = recommendation_document(recommendation(SURE, UNSURE, NONE, unlike, slower), top=None)
    text = text_of(asked, Format.TABLE)
    assert "20 % more (10 .. 30)" in text
    assert "\n  fused: aws " in text
    assert "  flash, packed: the script has no attention\n" in f"{text}\n"


def test_facts_are_null_where_a_change_brings_nothing():
    facts = gain_json(NONE)
    assert [name for name, value in facts.items() if value is not None] == [
        "change",
        "why_not",
        "why_not_finding",
    ]
    assert gain_json(SURE)["option"] == OPTION.plan.id
    assert gain_json(SURE)["saved_share"] == {"p10": 0.2, "p50": 0.3, "p90": 0.4}


def test_the_table_stands_below_an_answer_that_was_asked_for_it():
    asked = recommendation_document(recommendation(SURE), top=None)
    assert "30 % less (20 .. 40)" in text_of(asked, Format.TABLE)
    assert "30 % less (20 .. 40)" in text_of(asked, Format.HTML)
    plain = recommendation_document(recommendation(), top=None)
    assert "Odds" not in text_of(plain, Format.TABLE)
