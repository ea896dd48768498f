"""The notebook runs as it stands, from profile to recommendation."""

import nbformat
import pytest

from tools.run_tour import MOST_CHARACTERS, TOUR, executed

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def cells(warm_children):
    return [cell for cell in executed(TOUR).cells if cell.cell_type == "code"]


def test_every_cell_shows_something(cells):
    assert len(cells) >= 8
    assert all(cell.outputs for cell in cells)


def test_the_answer_is_a_table_and_says_what_to_take(cells):
    tables = [output["data"]["text/html"] for cell in cells for output in cell.outputs if "data" in output]
    assert any("<table" in table and "recommended" in table for table in tables)
    printed = "".join(output.get("text", "") for cell in cells for output in cell.outputs)
    assert "Median $" in printed


def test_the_committed_outputs_are_of_this_notebook(cells):
    written = nbformat.reads(TOUR.read_text(), as_version=4)
    shown = [cell for cell in written.cells if cell.cell_type == "code"]
    assert [len(cell.outputs) for cell in shown] == [len(cell.outputs) for cell in cells]
    plain = [output["data"]["text/plain"] for cell in shown for output in cell.outputs if "data" in output]
    assert all(len(text) <= MOST_CHARACTERS + 3 for text in plain)
