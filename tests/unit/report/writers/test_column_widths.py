"""Widths of columns: nothing overflows, and no word is broken that need not be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.report.writers.terminal import column_widths, least_widths
from tests.unit.report.printed import on_screen
from tests.unit.report.printed import table as text_table


def widths(*columns: str, available: int, whole: str = "") -> list[int]:
    kept = [str(i) in whole for i in range(len(columns))]
    return column_widths([[text] for text in columns], available, kept_whole=kept)


@pytest.mark.parametrize(
    ("columns", "available", "expected"),
    [
        (("four", "two words"), 20, [4, 9]),
        (("four", "two words"), 12, [4, 8]),
        (("four", "two words"), 9, [4, 5]),
        (("four", "two words"), 8, [4, 4]),
        (("four", "two words"), 2, [1, 1]),
        (("a\nlonger", "b"), 20, [6, 1]),
        (("", ""), 20, [0, 0]),
    ],
)
def test_widths_by_hand(columns, available, expected):
    assert widths(*columns, available=available) == expected


def test_what_must_not_break_keeps_its_line_until_the_others_have_nothing_left():
    assert widths("two words", "two words", available=14, whole="0") == [9, 5]
    assert widths("two words", "two words", available=11, whole="0") == [9, 2]
    assert widths("two words", "two words", available=8, whole="0") == [7, 1]


def test_a_column_gives_what_saves_lines_in_another():
    where, first = "1 x RTX-PRO-6000-Server on-demand", "DDP and checkpoints"
    kept = [False, False]
    # Level, they would have 30 and 15, and both would break.
    assert column_widths([["Where", where, "1 x T4"], ["First", "nothing", first]], 45, kept_whole=kept) in (
        [26, 19],
        [33, 12],
    )
    # What breaks in more rows has its room.
    assert column_widths([["", where, where, ""], ["", "", "", first]], 45, kept_whole=kept)[0] == 33
    assert column_widths([["", where, "", ""], ["", "", first, first]], 45, kept_whole=kept)[1] == 19


WORDS = st.lists(st.text("ab-", min_size=1, max_size=9), max_size=4).map(" ".join)
TABLES = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(WORDS, min_size=1, max_size=3), min_size=n, max_size=n),
        st.lists(st.booleans(), min_size=n, max_size=n),
    )
)


@given(TABLES, st.integers(5, 120))
def test_columns_fit_and_words_break_only_where_they_must(table, available):
    columns, kept_whole = table
    widths = column_widths(columns, available, kept_whole=kept_whole)
    least = least_widths(columns, kept_whole=kept_whole)
    needed = least_widths(columns, kept_whole=[True] * len(columns))
    assert sum(widths) <= available
    assert all(width <= most for width, most in zip(widths, needed, strict=True))
    if sum(needed) <= available:
        assert widths == needed
    elif sum(least) <= available:
        assert all(width >= word for width, word in zip(widths, least, strict=True))
        assert sum(widths) == available


@given(TABLES, st.integers(40, 120))
def test_a_printed_table_is_as_wide_as_the_terminal_at_most(table, width):
    columns = [column[:1] * 3 for column in table[0]]
    rows = [list(row) for row in zip(*columns, strict=True)]
    names = [f"c{i}" for i in range(len(columns))]
    lines = on_screen(text_table(names, rows), width).splitlines()
    assert max(map(len, lines)) <= width
    shown = " ".join(lines).split()
    least = least_widths([[name, *column] for name, column in zip(names, columns, strict=True)],
                         kept_whole=[False] * len(names))  # fmt: skip
    if sum(least) + 2 * len(names) <= width:
        assert all(word in shown for column in columns for text in column for word in text.split())
