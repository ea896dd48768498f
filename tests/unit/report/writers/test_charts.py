"""What a chart may hold beside points: details, guides and bars, and what a terminal makes of them."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from advisor.report import document as doc
from advisor.report.document import COUNT, DURATION, SHORT_DURATION, TEXT, USD, USD_PER_H, Axis
from advisor.report.writers.plot import MARKS, draw, scale_of, steps
from tests.unit.report.printed import of, on_screen

POINTS = doc.Chart(
    x=doc.Axis(doc.USD), y=doc.Axis(doc.USD), series=(doc.Series("a", ((1.0, 1.0), (2.0, 3.0))),)
)
WEEKS = doc.Chart(
    title="Spend by week",
    x=doc.Axis(doc.TEXT, title="Week"),
    y=doc.Axis(doc.USD, title="Spent"),
    bars=("1", "2", "10"),
    series=(doc.Series("vision", ((0, 30.0), (1, 10.0))), doc.Series("speech", ((0, 10.0), (2, 5.0)))),
    note="one bill is missing",
)


def test_each_point_goes_with_its_detail_or_with_none():
    (series,) = POINTS.series
    assert list(series.detailed()) == [((1.0, 1.0), doc.NO_DETAIL), ((2.0, 3.0), doc.NO_DETAIL)]
    known = doc.Detail(label="L4", x_range=(0.5, 2.0))
    both = replace(series, details=(known, doc.NO_DETAIL))
    assert [detail for _, detail in both.detailed()] == [known, doc.NO_DETAIL]
    with pytest.raises(ValueError, match="shorter"):
        list(replace(series, details=(doc.NO_DETAIL,)).detailed())


def test_a_terminal_leaves_out_what_it_cannot_draw():
    series = replace(
        POINTS.series[0], details=(doc.Detail(label="hover", y_range=(0.1, 90.0)), doc.NO_DETAIL)
    )
    more = replace(POINTS, series=(series,), guides=(doc.Series("frontier", ((0.0, 0.0), (9.0, 9.0))),))
    assert on_screen(of(more), 80) == on_screen(of(POINTS), 80)


def test_bars_stand_beside_their_names_one_series_on_the_other():
    lines = on_screen(of(WEEKS), 26).splitlines()
    assert lines == [
        "Spend by week",
        "1  |" + "A" * 11 + "B" * 4 + " $40.00",
        "2  |" + "A" * 4 + " $10.00",
        "10 |" + "B" * 2 + " $5.00",
        "A vision",
        "B speech",
        "  one bill is missing",
    ]


def test_a_credit_has_no_bar_and_counts_in_the_sum_and_nothing_has_no_length():
    series = doc.Series("a", ((0, 30.0),)), doc.Series("b", ((0, -10.0),))
    line = on_screen(of(replace(WEEKS, bars=("1",), series=series)), 40).splitlines()[1]
    assert line.endswith("A $20.00")
    assert "B" not in line
    nothing = replace(WEEKS, series=(doc.Series("a", ((0, 0.0),)),))
    assert on_screen(of(nothing), 40).splitlines()[1] == "1  | $0.00"


HEIGHTS = st.lists(st.floats(0, 1e9), min_size=3, max_size=3)


@given(st.lists(HEIGHTS, min_size=1, max_size=26), st.integers(40, 120))
def test_bars_keep_to_the_width_and_to_their_order(stacks, width):
    series = tuple(doc.Series(str(i), tuple(enumerate(heights))) for i, heights in enumerate(stacks))
    lines = on_screen(of(replace(WEEKS, title="", series=series)), width).splitlines()[:3]
    assert max(map(len, lines)) <= width
    sums = [sum(heights[bar] for heights in stacks) for bar in range(3)]
    lengths = [sum(map(str.isupper, line)) for line in lines]
    for one in range(3):
        for other in range(3):
            if sums[one] <= sums[other]:
                assert lengths[one] <= lengths[other]


def test_more_series_than_letters_are_refused():
    too_many = replace(WEEKS, series=tuple(doc.Series(str(i), ((0, 1.0),)) for i in range(27)))
    with pytest.raises(ValueError, match="got 27"):
        on_screen(of(too_many), 80)


def test_columns_change_places_with_their_cells():
    table = doc.Table(
        columns=doc.columns("a", "b", "c"),
        rows=(doc.Row((1, 2, 3), doc.Tone.BEST), doc.Row((4, 5, 6))),
        caption="kept",
        narrow=(doc.Lines(("narrow",)),),
    )
    turned = table.in_order((2, 0, 1))
    assert [column.name for column in turned.columns] == ["c", "a", "b"]
    assert turned.rows == (doc.Row((3, 1, 2), doc.Tone.BEST), doc.Row((6, 4, 5)))
    assert (turned.caption, turned.narrow) == ("kept", ())


KINDS = st.sampled_from([USD, USD_PER_H, DURATION, SHORT_DURATION, COUNT, TEXT])
POSITIVE = st.lists(st.floats(1e-4, 1e9), min_size=1, max_size=20)
ANY = st.lists(st.floats(-1e6, 1e9), min_size=1, max_size=20)


@given(KINDS, POSITIVE)
def test_a_log_scale_holds_all_values_and_few_ticks(kind, values):
    scale = scale_of(Axis(kind), values, is_log=True)
    check(scale, values)
    assert scale.low > 0


@given(KINDS, ANY, st.booleans())
@example(USD, [5e-324], False)
@example(USD, [-1 / 3], False)
def test_a_linear_scale_holds_all_values_and_few_ticks(kind, values, has_zero):
    scale = scale_of(Axis(kind), values, is_log=False, has_zero=has_zero)
    check(scale, values)
    assert len(scale.ticks) >= 2
    step = scale.ticks[1] - scale.ticks[0]
    steps = {round((later - tick) / step, 6) for tick, later in pairwise(scale.ticks)}
    assert steps == {1.0}
    if has_zero:
        assert scale.low <= 0 <= scale.high


def check(scale, values) -> None:
    assert scale.low <= min(values) <= max(values) <= scale.high
    assert len(scale.ticks) == len(scale.words) <= 8
    assert list(scale.ticks) == sorted(set(scale.ticks))
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks)
    assert all(isinstance(word, str) for word in scale.words)


def words(axis: Axis, *values: float, is_log: bool = False) -> list[str]:
    return list(scale_of(axis, values, is_log=is_log).words)


def test_durations_are_cut_as_clocks_cut_them():
    assert words(Axis(SHORT_DURATION), 0.0, 5 * 3600.0) == [
        "0 ms", "1.0 h", "2.0 h", "3.0 h", "4.0 h", "5.0 h",
    ]  # fmt: skip
    assert words(Axis(SHORT_DURATION), 60.0, 3 * 86400.0, is_log=True) == [
        "1 min", "5 min", "30 min", "2.0 h", "12 h", "2.0 d",
    ]  # fmt: skip
    assert words(Axis(DURATION), 0.1, 1.8) == ["0 ms", "500 ms", "1 s", "1.5 s"]


def test_dollars_are_cut_in_tens():
    assert words(Axis(USD), 3.0, 4000.0, is_log=True) == ["$10.00", "$100.00", "$1,000"]
    assert words(Axis(USD), 0.0, 1000.0) == ["$0.00", "$200.00", "$400.00", "$600.00", "$800.00", "$1,000"]


def test_a_scale_far_from_zero_need_not_begin_there_but_bars_do():
    assert scale_of(Axis(USD), [90.0, 100.0], is_log=False).low > 80
    assert scale_of(Axis(USD), [90.0, 100.0], is_log=False, has_zero=True).low == 0
    assert scale_of(Axis(USD), [10.0, 100.0], is_log=False).low == 0


def test_the_least_value_may_have_a_name():
    scale = scale_of(Axis(USD, lowest="free"), [0.1, 10.0, 100.0], is_log=True)
    assert (scale.ticks[0], scale.words[0]) == (0.1, "free")
    assert "free" not in scale.words[1:]


def test_whole_numbers_are_counted_without_decimals():
    assert words(Axis(COUNT), 0.0, 10.0)[:3] == ["0", "2", "4"]


VALUES = st.floats(0.01, 1e6)
PLOTTED = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=30)


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


@given(st.lists(PLOTTED, min_size=1, max_size=5), st.integers(20, 120), st.integers(2, 30), st.booleans())
def test_nothing_leaves_the_frame_and_no_series_is_lost(series, width, height, is_log):
    named = {f"s{i}": points for i, points in enumerate(series)}
    text = drawn(named, width=width, height=height, is_log=is_log)
    rows = grid_of(text)
    assert len(rows) == height
    margin = max(line.index("|") for line in text.splitlines() if "|" in line)
    assert all(len(row) <= max(width - margin - 2, 10) for row in rows)
    # The first series is never hidden.
    assert MARKS[0] in "".join(rows)


@given(PLOTTED)
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
