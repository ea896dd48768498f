"""The table of what changes bring."""

from __future__ import annotations

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


def test_a_row_says_what_is_saved_how_surely_and_what_would_be_taken() -> None:
    table = gains_table(recommendation(SURE, UNSURE, NONE))
    assert [row.tone for row in table.rows] == [Tone.GOOD, Tone.PLAIN, Tone.FAINT]
    change, time, usd, share, odds, then = table.rows[0].cells
    assert (change, usd, then) == ("bf16", 2.5, "")
    assert [getattr(cell, "text", None) for cell in (time, share, odds)] == ["1 h", "30 % (20 .. 40)", "99%"]
    assert getattr(table.rows[1].cells[1], "text", None) == "-30 s"
    assert str(table.rows[1].cells[-1]).startswith("would be recommended: ")
    assert table.rows[2].cells == ("flash", None, None, None, None, "the script has no attention")


def test_facts_are_null_where_a_change_brings_nothing() -> None:
    facts = gain_json(NONE)
    assert [name for name, value in facts.items() if value is not None] == [
        "change",
        "why_not",
        "why_not_finding",
    ]
    assert gain_json(SURE)["option"] == OPTION.plan.id
    assert gain_json(SURE)["saved_share"] == {"p10": 0.2, "p50": 0.3, "p90": 0.4}


def test_the_table_stands_below_an_answer_that_was_asked_for_it() -> None:
    asked = recommendation_document(recommendation(SURE), top=None)
    assert "30 % (20 .. 40)" in text_of(asked, Format.TABLE)
    assert "30 % (20 .. 40)" in text_of(asked, Format.HTML)
    plain = recommendation_document(recommendation(), top=None)
    assert "Odds" not in text_of(plain, Format.TABLE)
