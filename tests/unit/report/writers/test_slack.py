"""Blocks for Slack: within its limits, whole, and nothing in them that Slack would act on."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.report.document import USD, Axis, Chart, Lines, Section, Series
from advisor.report.writers.mail import MOST_BLOCKS, MOST_LETTERS, MOST_OF_A_HEADER, to_slack
from tests.unit.report.printed import of, table

HOSTILE = "<!channel> <@U1> <https://evil.test|ok> & :smile: *b* _i_ `c` ```\n@here"


def texts(blocks: Any) -> list[str]:
    return [block["text"]["text"] for block in blocks]


def check(blocks: Any) -> None:
    """Slack's own rules."""
    assert 1 <= len(blocks) <= MOST_BLOCKS
    assert blocks[0]["type"] == "header"
    for block in blocks:
        text = block["text"]
        most = MOST_OF_A_HEADER if block["type"] == "header" else MOST_LETTERS
        assert 1 <= len(text["text"]) <= most
        if text["type"] == "mrkdwn":
            body = text["text"].removeprefix("```\n").removesuffix("\n```")
            assert len(text["text"]) == len(body) + 8
            assert not set("<>`") & set(body)
        else:
            assert text["type"] == "plain_text"
            assert text["emoji"] is False


def test_a_subject_words_and_a_table():
    document = of(Section("What it cost", ("- a lot",)), *table(["GPU", "USD"], [["L4", "1.20"]]).blocks)
    blocks = to_slack(document, "Week 47")
    check(blocks)
    assert texts(blocks)[:2] == ["Week 47", "What it cost\n  - a lot"]
    assert "L4" in texts(blocks)[2]
    assert texts(blocks)[2].startswith("```")


def test_a_chart_is_left_out_and_blank_lines_are_no_blocks():
    chart = Chart(x=Axis(USD), y=Axis(USD), series=(Series("a", ((1.0, 1.0),)),))
    assert len(to_slack(of(chart, Lines(("",)), Section("words", ())), "s")) == 2


def test_nothing_calls_anybody():
    blocks = to_slack(of(Section(HOSTILE, (HOSTILE,)), *table([HOSTILE], [[HOSTILE]]).blocks), HOSTILE)
    check(blocks)


def test_a_long_table_is_several_blocks_with_every_row():
    rows = [[f"row-{number:04}", "x" * 20] for number in range(300)]
    blocks = to_slack(of(*table(["a", "b"], rows).blocks), "s")
    check(blocks)
    shown = "\n".join(texts(blocks))
    assert all(f"row-{number:04}" in shown for number in range(300))


def test_what_is_too_much_for_slack_says_so():
    blocks = to_slack(of(*(Section(f"paragraph {number}", ()) for number in range(80))), "s")
    check(blocks)
    assert len(blocks) == MOST_BLOCKS
    assert texts(blocks)[-1].startswith("The rest is left out")


blocks_of_text = st.one_of(
    st.builds(
        lambda title, entries: Section(title, tuple(entries)), st.text(), st.lists(st.text(), max_size=3)
    ),
    st.builds(lambda lines: Lines(tuple(lines)), st.lists(st.text(max_size=8000), max_size=3)),
    st.builds(lambda cell: table([cell], [[cell]]).blocks[0], st.text(min_size=1, max_size=4000)),
)


@settings(max_examples=40)
@given(st.lists(blocks_of_text, max_size=6), st.text(min_size=1))
def test_any_document_keeps_the_limits(blocks, subject):
    check(to_slack(of(*blocks), subject))
