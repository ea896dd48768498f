"""What a chart may hold beside points: details, guides and bars, and what a terminal makes of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.report import document as doc
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
