"""Charts as Vega-Lite: valid by its schema, nothing lost, texts only texts, colours that differ enough."""

import json
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources

import altair as alt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.report.document import SHORT_DURATION, USD, Axis, Chart, Detail, Series, Tone
from advisor.report.estimates import iterations_chart
from advisor.report.writers.pictures import png, still
from advisor.report.writers.vega import GLYPHS, PICTURE, SHAPES, colour_name, rows_of, spec_of
from tests.builders import make_estimate
from tests.pages import EVIL, answer_page, burn_down, history_page, predicted_against_actual, spend_by_week

SHOWN_EVIL = EVIL.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")


def svg_of(chart):
    return still(spec_of(chart, PICTURE))


def charts_of(document) -> list[Chart]:
    return [block for block in document.page() if isinstance(block, Chart)]


CHARTS = {
    "answer": charts_of(answer_page())[0],
    "history": charts_of(history_page())[0],
    "estimates": next(iterations_chart([make_estimate("L4"), make_estimate("T4", memory_limit_bytes=1)])),
    "burn-down": burn_down(),
    "runs": predicted_against_actual(),
    "spend": spend_by_week(),
    "only others": Chart(x=Axis(USD), y=Axis(USD), series=(), others=((1.0, 2.0), (3.0, 4.0))),
    "one point": Chart(x=Axis(USD), y=Axis(USD), series=(Series("a", ((1.0, 2.0),)),)),
}


@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_the_schema_allows_what_we_write_and_every_point_can_be_pointed_at(chart):
    for spec in (spec_of(chart), spec_of(chart, PICTURE)):
        alt.LayerChart.from_dict(spec)
        json.dumps(spec, allow_nan=False)
    hovers = list(values(spec_of(chart), "hover"))
    assert len(hovers) >= len(chart.others) + sum(len(one.points) for one in chart.series)
    assert all(isinstance(hover, str) and hover for hover in hovers)


def values(spec: object, key: str) -> Iterator[object]:
    """What stands under a key, wherever it is."""
    if isinstance(spec, dict):
        yield from (value for name, value in spec.items() if name == key)
        spec = list(spec.values())
    if isinstance(spec, list):
        for inner in spec:
            yield from values(inner, key)


@pytest.mark.parametrize(
    "chart",
    [
        burn_down(EVIL),
        predicted_against_actual(name=EVIL),
        replace(spend_by_week(EVIL), bars=(EVIL, "b", "c")),
        replace(CHARTS["one point"], title=EVIL, x=Axis(USD, lowest=EVIL, title=EVIL), others_label=EVIL),
    ],
)
def test_names_neither_end_an_expression_nor_a_script(chart):
    drawing = svg_of(chart)
    assert "<script" not in drawing
    assert "<img" not in drawing
    # Legends and axes cut what is too long; what is left of the name is what was there.
    assert "&lt;script&gt;window.pwned=1&lt;/script" in drawing
    texts = json.dumps(spec_of(chart))
    assert json.dumps(EVIL)[1:-1] not in texts


def test_what_a_name_shows_is_the_whole_name():
    rows = rows_of(replace(spend_by_week(EVIL), bars=(EVIL, "b", "c")))
    assert rows.bars[0] == SHOWN_EVIL
    assert str(rows.data["points"][0]["hover"]).startswith(SHOWN_EVIL)


LOW_HIGH = st.tuples(st.floats(0.5, 1.0), st.floats(1.0, 2.0))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(0.01, 1e6), st.floats(0.01, 1e6), LOW_HIGH), min_size=1), st.booleans())
def test_scales_hold_every_point_and_every_interval(points, is_log):
    details = tuple(
        Detail(x_range=(x * low, x * high), y_range=(y * low, y * high)) for x, y, (low, high) in points
    )
    series = Series("a", tuple((x, y) for x, y, _ in points), details)
    rows = rows_of(Chart(x=Axis(USD), y=Axis(SHORT_DURATION), series=(series,), is_log=is_log))
    assert len(rows.data["points"]) == len(points)
    x_errors, y_errors = rows.data["x_errors"], rows.data["y_errors"]
    assert len(x_errors) == len(y_errors) == len(points)
    for row in (*rows.data["points"], *x_errors, *y_errors):
        for side, scale in (("x", rows.x), ("x2", rows.x), ("y", rows.y), ("y2", rows.y)):
            if side in row:
                assert scale.low * (1 - 1e-5) <= row[side] <= scale.high * (1 + 1e-5)


def test_an_interval_without_an_end_is_not_drawn():
    endless = Series("a", ((1.0, 2.0),), (Detail(x_range=(1.0, float("inf")), y_range=(1.0, 3.0)),))
    rows = rows_of(Chart(x=Axis(USD), y=Axis(USD), series=(endless,)))
    assert "x_errors" not in rows.data
    assert rows.data["y_errors"] == [{"x": 1.0, "place": 0, "y": 1.0, "y2": 3.0}]


def test_a_value_holds_until_the_end_and_a_band_with_it():
    spans = Detail(y_range=(1.0, 2.0)), Detail(), Detail(y_range=(3.0, 4.0))
    line = Series("a", ((0.0, 1.0), (5.0, 2.0), (6.0, 3.0)), spans)
    rows = rows_of(Chart(x=Axis(USD), y=Axis(USD), series=(line,), until=9.0))
    points = [(row["x"], row["y"]) for row in rows.data["points"]]
    assert points == [(0.0, 1.0), (5.0, 2.0), (6.0, 3.0), (9.0, 3.0)]
    assert [(row["x"], row["y"]) for row in rows.data["ends"]] == [(9.0, 3.0)]
    # A moment of which nobody knows the range parts the band.
    assert [(row["part"], row["x"], row["y"], row["y2"]) for row in rows.data["bands"]] == [
        (0, 0.0, 1.0, 2.0), (1, 6.0, 3.0, 4.0), (1, 9.0, 3.0, 4.0),
    ]  # fmt: skip
    assert "y_errors" not in rows.data


def test_moments_are_those_of_javascript():
    rows = rows_of(burn_down())
    assert rows.is_time
    assert rows.data["ends"][0]["x"] == burn_down().until * 1000


def test_bars_reach_as_far_as_their_parts_and_their_intervals():
    assert rows_of(spend_by_week()).x.high >= 410.0
    assert rows_of(spend_by_week()).x.low <= -20.0
    (estimate,) = iterations_chart([make_estimate("L4")])
    interval = make_estimate("L4").iteration_s
    rows = rows_of(estimate)
    assert rows.data["x_errors"] == [
        {"bar": 0, "x": pytest.approx(interval.p10), "x2": pytest.approx(interval.p90)}
    ]
    assert rows.x.high >= interval.p90


def test_nothing_to_draw_is_a_fault_of_ours():
    with pytest.raises(ValueError, match="needs points"):
        spec_of(Chart(x=Axis(USD), y=Axis(USD), series=(Series("a", ()),)))


@pytest.mark.parametrize(
    "name", ["0000000M1f0808\U00018cd6\U0001f000\ud7fc", "x" * 37 + "\U0001f600" * 40], ids=["odd", "emoji"]
)
def test_a_label_may_be_cut_within_an_emoji(name):
    """Before: a ValueError of vl-convert."""
    for width in range(25):
        drawing = svg_of(replace(spend_by_week(), bars=("i" * width + name, "b", "c")))
        assert "iii" in drawing or width < 3


def test_a_picture_is_twice_as_fine_as_its_drawing_and_white_and_holds_only_what_is_seen():
    picture = png(CHARTS["spend"])
    assert picture.startswith(b"\x89PNG")
    width, _ = struct.unpack(">II", picture[16:24])
    assert 1200 <= width <= 1400
    assert 'fill="#ffffff"' in svg_of(CHARTS["spend"])
    drawing = svg_of(burn_down("spent by vision"))
    assert 'opacity="0"' not in drawing
    assert any(layer["mark"].get("opacity") == 0 for layer in spec_of(burn_down())["layer"])
    for name in ("spent by vision", "budget", "forecast", "Spent"):
        assert f">{name}</text>" in drawing


# --- colours -----------------------------------------------------------------------------------------

CSS = resources.files("advisor.report").joinpath("templates", "page.css").read_text()


def scheme(selector: str) -> dict[str, str]:
    """Colours by name, of the first block after a text."""
    block = CSS[CSS.index(selector) :].partition("}")[0]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


LIGHT, DARK, PAPER = scheme(":root"), scheme("@media (prefers-color-scheme: dark)"), scheme("@media print")


def luminance(colour: str) -> float:
    """WCAG 2.2."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK, PAPER], ids=["light", "dark", "paper"])
def test_text_and_marks_stand_out_from_what_is_behind_them(colours):
    for name in ("ink", "soft", "best", "series-1"):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
    for name in colours:
        if name.startswith("series"):
            assert contrast(colours[name], colours["paper"]) >= 3, name
    assert contrast(colours["soft"], colours["card"]) >= 4.5
    assert contrast(colours["ink"], colours["best-paper"]) >= 4.5


def test_every_scheme_has_every_colour_and_pictures_have_those_of_light_pages():
    assert LIGHT.keys() == DARK.keys() | {"focus"}
    assert PAPER.keys() | {"focus"} == LIGHT.keys()
    assert {name: LIGHT[name] for name in PICTURE.colours} == PICTURE.colours


def in_dollars(*series: Series, **facts: object) -> Chart:
    return Chart(x=Axis(USD), y=Axis(USD), series=series, **facts)


def test_series_differ_by_more_than_colour():
    assert len(SHAPES) == len(GLYPHS)
    many = in_dollars(*(Series(str(i), ((1.0, i), (2.0, i))) for i in range(24)))
    assert len({(colour_name(many, i), SHAPES[i % len(SHAPES)]) for i in range(24)}) == 24


def test_a_tone_is_a_colour_of_its_own():
    tones = Tone.BEST, Tone.FAINT, None
    chart = in_dollars(*(Series("a", ((1.0, 1.0), (2.0, 2.0)), (), tone) for tone in tones))
    assert [colour_name(chart, i) for i in range(3)] == ["best", "soft", "series-3"]
    doubtful = in_dollars(Series("a", ((0.0, 1.0),), tone=Tone.DOUBTFUL), bars=("b",))
    assert colour_name(doubtful, 0) == "series-5"  # amber


def test_what_has_not_happened_is_dashed_and_what_has_ends_today():
    spent = Series("spent", ((1.0, 0.0), (2.0, 5.0)), stops=True)
    ahead = Series("forecast", ((2.0, 5.0), (3.0, 9.0)), is_dashed=True)
    chart = in_dollars(spent, ahead, until=4.0)
    spec = spec_of(chart)
    xs = [row["x"] for row in spec["datasets"]["points"] if row["place"] == 0]
    assert xs == [1.0, 2.0]
    (dashes,) = [one["encoding"]["strokeDash"] for one in spec["layer"] if "strokeDash" in one["encoding"]]
    assert dashes["scale"]["range"] == [[1, 0], [5, 4]]
    assert colour_name(chart, 0) == colour_name(chart, 1)
