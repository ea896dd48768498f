"""Formats of rows, and JSON: well-formed, inert, and null where a number is none."""

import csv
import io
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Quantiles
from advisor.report.document import USD, Cell, Column, Lines, Row, Section, Table
from advisor.report.printing import Format, text_of
from advisor.report.writers.text_formats import SCHEMA_VERSION, to_csv, to_json, to_markdown
from tests.unit.report.printed import of, table

# Whatever shows as itself: tests/security has the rest.
CELLS = st.text(st.characters(categories=["Ll", "Lu", "Nd", "P", "Sc", "Sm"]), max_size=12)
RUNS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


def money(*cells: Cell) -> Table:
    return Table(columns=(Column("Cost", USD),), rows=tuple(Row((cell,)) for cell in cells))


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=5))
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
WORDS = Lines(("*Hello*", "=1"))
FULL = of(money(1.0), WORDS, Section("More", ("words",)), facts={"usd": 1.0}, sheet=SHEET)


def test_formats_of_rows_take_rows_alone_and_json_the_facts():
    assert text_of(FULL, Format.CSV) == "usd\n8.333"
    assert text_of(FULL, Format.MARKDOWN) == "| Cost |\n| --- |\n| $1.00 |"
    assert json.loads(text_of(FULL, Format.JSON)) == {"schema_version": SCHEMA_VERSION, "usd": 1.0}


@pytest.mark.parametrize("output", [Format.CSV, Format.MARKDOWN])
def test_a_sheet_stands_in_for_words_that_a_person_reads(output):
    text = text_of(of(WORDS, sheet=SHEET), output)
    assert "8.333" in text
    assert "Hello" not in text


def test_words_alone_are_text_and_no_markup():
    assert text_of(of(WORDS), Format.MARKDOWN) == "\\*Hello\\*\n=1"
    assert text_of(of(WORDS), Format.CSV) == "*Hello*\n=1"


def test_two_tables_are_two_tables_of_markdown():
    assert to_markdown(of(money(1.0), money(2.0))).count("| Cost |") == 2
    assert to_csv(of(money(1.0), money(2.0))) == "Cost\n$1.00"


@pytest.mark.parametrize("output", [Format.TABLE, Format.CSV, Format.MARKDOWN])
def test_nothing_to_show_is_no_text(output):
    assert text_of(of(), output) == ""
