"""Drawing in a terminal: every point is where it belongs, and nothing leaves the frame."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from advisor.report.writers.plot import MARKS, draw, steps

VALUES = st.floats(0.01, 1e6)
POINTS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=30)


def drawn(series, **changes):
    return draw(series, x_text=lambda x: f"{x:g}", y_text=lambda y: f"{y:g}", **changes)


def grid_of(text: str) -> list[str]:
    """The rows between the scale and the axis."""
    return [line.partition("|")[2] for line in text.splitlines() if "|" in line]


def test_low_is_low_and_right_is_late():
    text = drawn({"price": [(0, 1.0), (10, 3.0)]}, width=30, height=5)
    rows = grid_of(text)
    assert rows[0].rstrip().endswith("A")
    assert rows[-1].startswith("A")
    assert [row for row in rows[1:-1] if row.strip()] == []


def test_scales_and_legend_are_written():
    lines = drawn({"L4 spot": [(1, 0.5), (9, 2.5)], "T4": [(5, 1.0)]}, width=40, height=6).splitlines()
    assert lines[0].startswith("2.5 |")
    assert lines[5].startswith("0.5 |")
    assert lines[6].strip().startswith("+---")
    assert lines[7].split() == ["1", "9"]
    assert lines[8:] == ["A L4 spot", "B T4"]


def test_the_first_series_shows_where_two_meet():
    rows = grid_of(drawn({"a": [(1, 1.0)], "b": [(1, 1.0)]}, height=3))
    assert "".join(rows).strip() == "A"


@given(st.lists(POINTS, min_size=1, max_size=5), st.integers(20, 120), st.integers(2, 30), st.booleans())
def test_nothing_leaves_the_frame_and_no_series_is_lost(series, width, height, is_log):
    named = {f"s{i}": points for i, points in enumerate(series)}
    text = drawn(named, width=width, height=height, is_log=is_log)
    rows = grid_of(text)
    assert len(rows) == height
    margin = max(line.index("|") for line in text.splitlines() if "|" in line)
    assert all(len(row) <= max(width - margin - 2, 10) for row in rows)
    # The first series is never hidden.
    assert MARKS[0] in "".join(rows)


@given(POINTS)
def test_logarithms_keep_the_order(points):
    for is_log in (False, True):
        rows = grid_of(drawn({"all": points}, is_log=is_log))
        top, bottom = max(y for _, y in points), min(y for _, y in points)
        if top > bottom:
            assert "A" in rows[0]
            assert "A" in rows[-1]


@pytest.mark.parametrize("series", [{}, {"empty": []}, {str(i): [(1.0, 1.0)] for i in range(27)}])
def test_what_cannot_be_drawn_is_refused(series):
    with pytest.raises(ValueError, match="between 1 and 26 series"):
        drawn(series)


def test_a_price_holds_until_the_next():
    drawn = steps([(0.0, 1.0), (10.0, 2.0)], 20.0, 5)
    assert drawn == [(0.0, 1.0), (5.0, 1.0), (10.0, 2.0), (15.0, 2.0), (20.0, 2.0)]


@given(st.lists(st.tuples(st.floats(0, 100), VALUES), min_size=1, max_size=8), st.floats(100, 200))
@example([(2.128307595707324, 1.0), (172.15288270271145, 2.0)], 172.15288270271145)
def test_steps_only_hold_values_that_were_there(points, until):
    points = sorted(points)
    drawn = steps(points, until, 50)
    assert {y for _, y in drawn} <= {y for _, y in points}
    assert drawn[-1][1] == points[-1][1]


def test_dots_lie_under_letters_and_widen_the_scale():
    text = drawn({"a": [(1, 1.0)]}, dots=[(1, 1.0), (9, 5.0)], width=30, height=4)
    rows = grid_of(text)
    assert rows[-1].startswith("A")
    assert rows[0].endswith(".")
    assert "".join(rows).count(".") == 1
    assert text.splitlines()[-1] == "A a"
    assert "." in "".join(grid_of(drawn({}, dots=[(1.0, 1.0)])))
