"""A document in a terminal: what stands where, what gives way, and that nothing is wider than it may be."""

import csv
import io
import json
import math
from contextlib import redirect_stdout
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table as RichTable
from rich.text import Text

from advisor.core.values import Quantiles
from advisor.report.document import (
    BLANK,
    COUNT,
    DAY,
    TEXT,
    USD,
    Axis,
    Cell,
    Chart,
    Column,
    Fact,
    Lines,
    Row,
    Section,
    Series,
    Sum,
    Table,
    Tone,
    columns,
)
from advisor.report.printing import Format, print_document, text_of
from advisor.report.writers.terminal import Screen, TableLayout, column_widths, least_widths
from advisor.report.writers.text_formats import SCHEMA_VERSION, row_texts, to_csv, to_json, to_markdown
from tests.unit.report.printed import of, on_screen, table
from tests.unit.report.printed import table as text_table

NARROW = Lines(("one line",))


def wide(*, kind_wraps: bool = False, **changes: object) -> Table:
    table = Table(
        columns=(Column("Name", wraps=kind_wraps), Column("Cost", USD, wraps=False)),
        rows=(Row(("one two", 1.5)), Row(("three", 12.0))),
        narrow=(NARROW,),
    )
    return replace(table, **changes)


# --- tables ------------------------------------------------------------------------------------------


def test_numbers_stand_to_the_right_and_words_to_the_left():
    lines = [line.rstrip() for line in on_screen(of(wide()), 40).splitlines()]
    assert lines[1:5] == [" Name       Cost", " " + "─" * 15, " one two   $1.50", " three    $12.00"]


@pytest.mark.parametrize(
    ("changes", "needed"),
    # A column that wraps breaks between words first; a table may ask for more than it needs.
    [({}, 17), ({"kind_wraps": True}, 15), ({"narrow_below": 50}, 50)],
)
def test_a_table_gives_way_where_it_would_break_a_line(changes, needed):
    assert "one line" not in on_screen(of(wide(**changes)), needed)
    assert "one line" in on_screen(of(wide(**changes)), needed - 1)


def test_a_table_may_rather_break_words_and_does_without_another_form():
    """Names of sources, say, have words longer than any column."""
    text = on_screen(of(wide(keeps_words=False)), 12)
    assert "one line" not in text
    assert "thre " in text
    assert max(map(len, on_screen(of(wide(narrow=())), 12).splitlines())) <= 12


def test_a_cell_of_two_lines_takes_two():
    table = Table(columns=(Column("Jobs", COUNT),), rows=(Row(((1234, "any"),)),))
    assert [line.strip() for line in on_screen(of(table), 40).splitlines()][3:5] == ["1,234", "any"]


CELLS = st.text(alphabet="ab c\né漢-é🙂/.", max_size=30)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(CELLS, CELLS), max_size=4),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.integers(12, 60),
)
@example([], (False, True, False), 16)
def test_a_table_looks_as_rich_would_draw_it(cells, wraps, width):
    kinds = {"Name": TEXT, "Where it is": TEXT, "Cost now": USD}
    titles = tuple(
        Column(name, kind, wraps=may) for (name, kind), may in zip(kinds.items(), wraps, strict=True)
    )
    table = Table(columns=titles, rows=tuple(Row((*pair, 1.5)) for pair in cells))
    screen = Screen(width)
    assert TableLayout(table, screen.console).text() == drawn_by_rich(table, screen.console)


def drawn_by_rich(table: Table, console: Console) -> str:
    rows = [row_texts(row, table) for row in table.rows]
    texts = list(zip([column.name for column in table.columns], *rows, strict=True))
    room = console.width - 2 - 2 * (len(texts) - 1)
    widths = column_widths(texts, room, kept_whole=[not column.wraps for column in table.columns])
    drawn = RichTable(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column, width in zip(table.columns, widths, strict=True):
        side: JustifyMethod = "right" if column.kind.is_right else "left"
        drawn.add_column(column.name, justify=side, overflow="fold", no_wrap=not column.wraps, width=width)
    for row in rows:
        drawn.add_row(*map(Text, row))
    with console.capture() as capture:
        console.print(drawn)
    return capture.get().removesuffix("\n")


def test_a_terminal_without_unicode_gets_a_rule_of_hyphens():
    console = Console(width=40, file=io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    lines = TableLayout(wide(), console).text().splitlines()
    assert lines[2].strip() == "-" * 15


def test_tones_are_colours_of_a_terminal_alone(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    rows = tuple(Row((tone.name,), tone) for tone in Tone)
    document = of(Table(columns=columns("Tone"), rows=rows))
    with redirect_stdout(Terminal()) as terminal:
        print_document(document, Format.TABLE)
    colours = {line.split("m")[0] for line in terminal.getvalue().splitlines() if "\x1b" in line}
    assert len(colours) >= len(Tone) - 1
    assert "\x1b" not in on_screen(document, 40)


@pytest.mark.parametrize(("columns", "width"), [("", 80), ("0", 80), ("60", 60), ("200", 160)])
def test_a_pipe_is_as_wide_as_columns_says_or_eighty(columns, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    rows = (Row(("word " * 30,)),)
    print_document(of(Table(columns=(Column("Text"),), rows=rows), Section("word " * 32, ())), Format.TABLE)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert width - 10 < max(map(len, lines)) <= width


# --- words -------------------------------------------------------------------------------------------


def test_blocks_follow_each_other_with_blanks_where_there_are_some():
    document = of(Lines(("first",)), BLANK, Section("Title", ("second",)))
    assert on_screen(document, 80) == "first\n\nTitle\n  second"


def test_facts_stand_below_each_other_and_a_sum_to_the_right():
    entries = (Fact("rate", "$1.50"), Sum((Fact("a", "1"), Fact("total", "100", "in all")), name_width=10))
    assert on_screen(of(Section("Money", entries)), 80).splitlines() == [
        "Money",
        "  rate                        $1.50",
        "  a           1",
        "  total     100  in all",
    ]


def test_further_lines_of_a_value_begin_below_it():
    first, *others = on_screen(of(Section("T", (Fact("name", "word " * 20),))), 60).splitlines()[1:]
    assert first.startswith("  name" + " " * 24 + "word")
    assert others
    assert {len(line) - len(line.lstrip()) for line in others} == {30}


def test_lines_are_never_broken_and_names_stay_whole():
    path = "/a/very-long/path-with-hyphens/" * 4
    assert on_screen(of(Lines((path,))), 50) == path
    assert path in on_screen(of(Section("T", (f"see {path} for more",))), 50)


WORDS = st.text("ab ", min_size=1, max_size=80)


@given(WORDS, st.lists(st.one_of(WORDS, st.builds(Fact, WORDS, WORDS)), max_size=5), st.integers(50, 100))
def test_a_section_keeps_to_the_width_wherever_its_words_do(title, entries, width):
    text = on_screen(of(Section(title, tuple(entries))), width)
    for line in text.splitlines():
        assert len(line) <= width or len(line.split()) == 1


# --- charts ------------------------------------------------------------------------------------------

CHART = Chart(
    title="Prices",
    x=Axis(DAY),
    y=Axis(USD, lowest="free"),
    series=(Series("L4", ((0.0, 1.0), (86400.0, 2.0))),),
    until=2 * 86400.0,
    others_label="others",
    note="a note",
)


def test_a_line_chart_names_its_axes_series_and_notes():
    lines = on_screen(of(CHART), 80).splitlines()
    assert lines[0] == "Prices"
    assert lines[1].startswith("$2.00 |")
    assert lines[-4].split() == ["1970-01-01", "1970-01-03"]
    assert "free |AAA" in "".join(lines)
    assert lines[-3:] == ["A L4", ". others", "  a note"]


@pytest.mark.parametrize("width", [40, 60, 78, 120])
def test_a_line_chart_is_as_wide_as_a_terminal_and_never_wider_than_it_is_readable(width):
    lines = on_screen(of(CHART), width).splitlines()
    assert min(width, 78) - 3 <= max(map(len, lines)) <= min(width, 78)


def test_a_value_holds_until_the_next_and_a_point_does_not():
    assert on_screen(of(CHART), 80).count("A") > 50
    points = on_screen(of(replace(CHART, until=None, y=Axis(USD))), 80)
    assert points.count("A") == 3  # two points and the legend
    # The lowest value has its number where it has no name.
    assert "$1.00 |" in points
    assert "free" not in points


def test_what_a_chart_calls_things_is_text():
    hostile = replace(CHART, title="\x1b[2J", note="\u202e", series=(Series("\x07", ((1.0, 1.0),)),))
    text = on_screen(of(hostile), 80)
    assert "\\x1b[2J" in text
    assert "\\u202e" in text
    assert "A \\x07" in text


def test_columns_share_kind_and_wrapping():
    assert columns("a", "b", kind=USD, wraps=False) == (Column("a", USD, False), Column("b", USD, False))
    assert columns("a") == (Column("a", TEXT, True),)


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


WORDS_THAT_WRAP = st.lists(st.text("ab-", min_size=1, max_size=9), max_size=4).map(" ".join)
TABLES = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(WORDS_THAT_WRAP, min_size=1, max_size=3), min_size=n, max_size=n),
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


# Whatever shows as itself: tests/security has the rest.
CELLS_OF_ROWS = st.text(st.characters(categories=["Ll", "Lu", "Nd", "P", "Sc", "Sm"]), max_size=12)
RUNS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


def money(*cells: Cell) -> Table:
    return Table(columns=(Column("Cost", USD),), rows=tuple(Row((cell,)) for cell in cells))


@given(st.lists(st.lists(CELLS_OF_ROWS, min_size=2, max_size=2), max_size=5))
def test_csv_reads_back(rows):
    back = list(csv.reader(io.StringIO(to_csv(table(("a", "b"), rows)))))
    assert back[0] == ["a", "b"]
    for row, cells in zip(back[1:], rows, strict=True):
        for read, cell in zip(row, cells, strict=True):
            assert read in (cell, f"'{cell}")
            # Numbers below zero stay numbers.
            assert (read == cell) or cell.startswith(RUNS)
            assert not read.startswith(RUNS) or read.startswith("-")


def test_csv_cells_do_not_run_as_formulas_in_any_line_of_a_cell():
    assert "'=1+1" in to_csv(table(("a",), [["=1+1"]]))
    assert to_csv(of(money(("=1+1", "x")))) == 'Cost\n"\'=1+1\nx"'


def test_markdown_escapes_pipes_and_keeps_a_cell_of_two_lines_in_one_row():
    assert to_markdown(table(("a",), [["x|y"]])) == "| a |\n| --- |\n| x\\|y |"
    assert to_markdown(of(money((1.5, "free")))).splitlines()[-1] == "| $1.50<br>free |"


def test_cells_are_written_by_the_kind_of_their_column():
    document = of(money(8.333, Quantiles(p50=1.0, p90=2.0), None, "unknown"))
    assert to_csv(document).splitlines() == ["Cost", "$8.33", "$1.00 ($2.00)", '""', "unknown"]


def test_json_has_a_version_first_and_no_infinities():
    text = to_json({"a": math.inf, "b": [1.5, math.nan], "c": {"d": (1, None)}})
    document = json.loads(text, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert next(iter(document)) == "schema_version"
    assert document == {"schema_version": SCHEMA_VERSION, "a": None, "b": [1.5, None], "c": {"d": [1, None]}}


# --- Which part of a document a format takes ---------------------------------------------------------

SHEET = Table(columns=(Column("usd"),), rows=(Row(("8.333",)),))
NAMES = Lines(("*Hello*", "=1"))
FULL = of(money(1.0), NAMES, Section("More", ("words",)), facts={"usd": 1.0}, sheet=SHEET)


def test_formats_of_rows_take_rows_alone_and_json_the_facts():
    assert text_of(FULL, Format.CSV) == "usd\n8.333"
    assert text_of(FULL, Format.MARKDOWN) == "| Cost |\n| --- |\n| $1.00 |"
    assert json.loads(text_of(FULL, Format.JSON)) == {"schema_version": SCHEMA_VERSION, "usd": 1.0}


@pytest.mark.parametrize("output", [Format.CSV, Format.MARKDOWN])
def test_a_sheet_stands_in_for_words_that_a_person_reads(output):
    text = text_of(of(NAMES, sheet=SHEET), output)
    assert "8.333" in text
    assert "Hello" not in text


def test_words_alone_are_text_and_no_markup():
    assert text_of(of(NAMES), Format.MARKDOWN) == "\\*Hello\\*\n=1"
    assert text_of(of(NAMES), Format.CSV) == "*Hello*\n=1"


def test_two_tables_are_two_tables_of_markdown():
    assert to_markdown(of(money(1.0), money(2.0))).count("| Cost |") == 2
    assert to_csv(of(money(1.0), money(2.0))) == "Cost\n$1.00"


@pytest.mark.parametrize("output", [Format.TABLE, Format.CSV, Format.MARKDOWN])
def test_nothing_to_show_is_no_text(output):
    assert text_of(of(), output) == ""
