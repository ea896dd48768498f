"""Formats: well-formed, inert, and null where a number is none."""

from __future__ import annotations

import csv
import io
import json
import math

from hypothesis import given
from hypothesis import strategies as st

from advisor.report.rows import SCHEMA_VERSION, to_csv, to_json, to_markdown

# Whatever shows as itself: tests/security has the rest.
CELLS = st.text(st.characters(categories=["Ll", "Lu", "Nd", "P", "Sc", "Sm"]), max_size=12)
RUNS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=5))
def test_csv_reads_back(rows: list[list[str]]) -> None:
    back = list(csv.reader(io.StringIO(to_csv(("a", "b"), rows))))
    assert back[0] == ["a", "b"]
    for row, cells in zip(back[1:], rows, strict=True):
        for read, cell in zip(row, cells, strict=True):
            assert read in (cell, f"'{cell}")
            # Numbers below zero stay numbers.
            assert (read == cell) or cell.startswith(RUNS)
            assert not read.startswith(RUNS) or read.startswith("-")


def test_csv_cells_do_not_run_as_formulas() -> None:
    assert "'=1+1" in to_csv(("a",), [["=1+1"]])


def test_markdown_escapes_pipes() -> None:
    assert to_markdown(("a",), [["x|y"]]) == "| a |\n| --- |\n| x\\|y |"


def test_json_has_a_version_first_and_no_infinities() -> None:
    text = to_json({"a": math.inf, "b": [1.5, math.nan], "c": {"d": (1, None)}})
    document = json.loads(text, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert next(iter(document)) == "schema_version"
    assert document == {
        "schema_version": SCHEMA_VERSION,
        "a": None,
        "b": [1.5, None],
        "c": {"d": [1, None]},
    }
