"""A Chart as a Vega-Lite specification.

Colours of a page are names of its stylesheet (``var(--series-1)``), so that it turns dark, or light on paper,
without being drawn again. Pictures for mail have the colours themselves, and their legend inside.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, cast

from advisor.report.document import DAY, Axis, Chart, Detail, Point, Range, Series, Tone
from advisor.report.plain import shown
from advisor.report.writers.plot import MARKS, Scale, scale_of

if TYPE_CHECKING:
    import altair as alt


Row: TypeAlias = dict[str, float | str]
# Enough for a screen; a figure of a report is read from its text.
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What layers draw, by the name of its kind, and the two scales.

    Attributes:
        data: only what there is; ``ends`` are the last points of lines and of guides.
        x: of bars the scale of their lengths.
        is_time: whether x is a moment, in milliseconds as JavaScript counts them.
        bars: their names.
    """

    data: Mapping[str, list[Row]]
    x: Scale
    y: Scale
    is_time: bool
    bars: tuple[str, ...]


def rows_of(chart: Chart) -> Rows:
    """All that is drawn.

    Raises:
        ValueError: nothing is.
    """
    if not chart.others and not any(one.points for one in chart.series):
        raise ValueError("a chart needs points")
    return _Reader(chart).rows()


def is_lettered(chart: Chart) -> bool:
    """Whether each series is one point with a letter beside it, as in a terminal."""
    return chart.until is None and not chart.bars and all(len(one.points) == 1 for one in chart.series)


class _Reader:
    def __init__(self, chart: Chart) -> None:
        self._chart = chart
        self._is_time = chart.x.kind is DAY
        self._is_lettered = is_lettered(chart)

    def rows(self) -> Rows:
        x, y = self._scales()
        data = {name: rows for name, rows in self._data().items() if rows}
        bars = tuple(map(shown, self._chart.bars))
        return Rows(data=data, x=x, y=y, is_time=self._is_time, bars=bars)

    def _data(self) -> dict[str, list[Row]]:
        chart = self._chart
        is_line = chart.until is not None
        points = [row for place, one in enumerate(chart.series) for row in self._points(place, one)]
        return {
            "points": points,
            "ends": [
                row
                for row, after in zip_longest(points, points[1:])
                if after is None or after["place"] != row["place"]
            ],
            "others": [
                {**self._at(point), "hover": self._hover(chart.others_label, point, detail)}
                for point, detail in Series("", chart.others, chart.others_details).detailed()
            ],
            "x_errors": [] if is_line else list(self._errors("y" if chart.bars else "x")),
            "y_errors": [] if is_line or chart.bars else list(self._errors("y")),
            "bands": self._bands(chart.series) if is_line else [],
            "guides": [
                {**self._at(point), "place": i} for i, one in enumerate(chart.guides) for point in one.points
            ],
            "guide_ends": [
                {**self._at(one.points[-1]), "name": shown(one.label)} for one in chart.guides if one.points
            ],
            "guide_bands": self._bands(chart.guides),
        }

    def _points(self, place: int, series: Series) -> Iterator[Row]:
        for point, detail in series.detailed():
            row: Row = {"place": place, "hover": self._hover(series.label, point, detail)}
            if self._chart.bars:
                yield row | {"bar": int(point[0]), "x": _short(point[1])}
            elif self._is_lettered:
                yield row | self._at(point) | {"letter": MARKS[place % len(MARKS)]}
            else:
                yield row | self._at(point)
        if self._chart.until is not None and series.points:
            end = self._chart.until, series.points[-1][1]
            yield {"place": place, "hover": self._hover(series.label, end, Detail()), **self._at(end)}

    def _errors(self, side: Literal["x", "y"]) -> Iterator[Row]:
        for place, one in enumerate(self._chart.series):
            for point, detail in one.detailed():
                span = detail.x_range if side == "x" else detail.y_range
                if span is None or not all(map(math.isfinite, span)):
                    continue
                low, high = self._clipped(span)
                if self._chart.bars:
                    yield {"bar": int(point[0]), "x": low, "x2": high}
                else:
                    yield {**self._at(point), "place": place, side: low, f"{side}2": high}

    def _clipped(self, span: Range) -> Range:
        """On a logarithmic scale a range ends above zero."""
        low, high = span
        return (_short(max(low, high / 1e3) if self._chart.is_log else low), _short(high))

    def _bands(self, series: Sequence[Series]) -> list[Row]:
        """A stretch without a range parts a band in two."""
        rows: list[Row] = []
        for place, one in enumerate(series):
            part = 0
            for i, (point, detail) in enumerate(one.detailed()):
                if detail.y_range is None:
                    part += 1
                    continue
                low, high = self._clipped(detail.y_range)
                row: Row = {**self._at(point), "place": place, "part": part, "y": low, "y2": high}
                rows.append(row)
                if i == len(one.points) - 1 and self._chart.until is not None and one in self._chart.series:
                    rows.append({**row, "x": self._at((self._chart.until, low))["x"]})
        return rows

    def _at(self, point: Point) -> Row:
        x, y = point
        return {"x": round(x * 1000) if self._is_time else _short(x), "y": _short(y)}

    def _hover(self, label: str, point: Point, detail: Detail) -> str:
        if detail.label:
            return "\n".join(map(shown, detail.label.split("\n")))
        chart = self._chart
        x = chart.bars[int(point[0])] if chart.bars else _words(chart.x, point[0])
        return "\n".join(map(shown, (label, f"{x}: {_words(chart.y, point[1])}")))

    def _scales(self) -> tuple[Scale, Scale]:
        chart = self._chart
        if chart.bars:
            lengths = scale_of(chart.y, self._stacked(), is_log=False, has_zero=True)
            return lengths, lengths
        xs, ys = self._extent(0), self._extent(1)
        return scale_of(chart.x, xs, is_log=chart.is_log), scale_of(chart.y, ys, is_log=chart.is_log)

    def _stacked(self) -> list[float]:
        """How far the bars reach to either side."""
        ends = [0.0]
        for bar in range(len(self._chart.bars)):
            parts = [y for one in self._chart.series for x, y in one.points if int(x) == bar]
            ends += [sum(max(part, 0.0) for part in parts), sum(min(part, 0.0) for part in parts)]
        details = (detail for one in self._chart.series for detail in one.details)
        return ends + [end for detail in details for end in detail.y_range or () if math.isfinite(end)]

    def _extent(self, side: int) -> list[float]:
        chart = self._chart
        drawn = (*chart.series, *chart.guides, Series("", chart.others))
        values = [] if side or chart.until is None else [chart.until]
        for one in drawn:
            for point, detail in one.detailed():
                span = detail.y_range if side else detail.x_range
                is_drawn = span is not None and all(map(math.isfinite, span))
                values += [point[side], *(self._clipped(span) if span is not None and is_drawn else ())]
        return values


def _words(axis: Axis, value: float) -> str:
    return axis.kind.words(int(value) if float(value).is_integer() else value)


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


class Layer(TypedDict):
    """What is read again of a layer."""

    mark: dict[str, object]


class Spec(TypedDict):
    """What is read again of a specification; it holds much more."""

    layer: list[Layer]
    width: str | int


NUM_COLOURS = 8
# Vega's shapes, and the letters that look like them.
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
GLYPHS = "●■▲◆✚▼"
_HEIGHT, _BAR_HEIGHT = 320, 26
STILL_WIDTH = 640
_POINT, _SMALL_POINT, _TARGET = 80, 40, 220
_FAINT = 0.18


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Colours by name, and whether a chart holds its own legend."""

    colours: Mapping[str, str]
    has_legend: bool


_SERIES = tuple(f"series-{i}" for i in range(1, NUM_COLOURS + 1))
PAGE = Look(
    colours={name: f"var(--{name})" for name in ("paper", "ink", "soft", "line", "best", *_SERIES)},
    has_legend=False,
)
# As templates/page.css has them for light pages.
PICTURE = Look(
    colours={
        "paper": "#ffffff", "ink": "#1b2129", "soft": "#59636e", "line": "#d9dee4", "best": "#b3420a",
        "series-1": "#0b5cad", "series-2": "#c2410c", "series-3": "#047857", "series-4": "#7e22ce",
        "series-5": "#a16207", "series-6": "#be185d", "series-7": "#0e7490", "series-8": "#475569",
    },
    has_legend=True,
)  # fmt: skip


def spec_of(chart: Chart, look: Look = PAGE) -> Spec:
    """The specification of a chart; every text in it is shown text.

    Raises:
        ValueError: it has no points.
    """
    import altair as alt
    from altair.utils.schemapi import debug_mode

    rows = rows_of(chart)
    # Tests validate every kind of chart; to do so each time takes longer than all else.
    with debug_mode(False):
        whole = alt.LayerChart(
            layer=_Drawing(chart, rows, look).layers(),
            datasets=dict(rows.data),
            height=len(chart.bars) * _BAR_HEIGHT or _HEIGHT,
            width="container",
            autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
            config=_config(look),
        )
        return cast("Spec", whole.to_dict(validate=False))


def colour_name(chart: Chart, place: int) -> str:
    """Of a series, a name that a Look and the stylesheet of a page know."""
    match chart.series[place].tone:
        case Tone.BEST:
            return "best"
        case Tone.FAINT | Tone.DOUBTFUL:
            return "soft"
        case _:
            return _SERIES[0 if is_lettered(chart) else place % NUM_COLOURS]


class _Drawing:
    """Layers of one chart, the lowest first."""

    def __init__(self, chart: Chart, rows: Rows, look: Look) -> None:
        self._chart, self._rows, self._look = chart, rows, look
        self._is_lettered = is_lettered(chart)

    def layers(self) -> list[alt.Chart]:
        """Of each kind of data that there is."""
        return [draw() for name, draw in self._plan() if name in self._rows.data]

    def _plan(self) -> Iterator[tuple[str, Callable[[], alt.Chart]]]:
        if self._chart.bars:
            yield from (("points", self._bars), ("x_errors", self._bar_errors))
            return
        yield from (("guide_bands", self._guide_band), ("bands", self._band), ("guides", self._guides))
        if self._look.has_legend:
            yield "guide_ends", self._guide_names
        yield "others", self._others
        yield from (("x_errors", partial(self._errors, "x")), ("y_errors", partial(self._errors, "y")))
        if self._chart.until is not None:
            yield from (("points", self._lines), ("ends", self._ends), ("points", self._targets))
            return
        if self._is_lettered:
            yield "points", self._letters
        yield "points", self._points

    def _bars(self) -> alt.Chart:
        import altair as alt

        rows = self._rows
        names = alt.Axis(labelExpr=f"{_literal(rows.bars)}[datum.value]", ticks=False, labelLimit=220)
        bars: alt.Chart = _drawn("points").mark_bar(opacity=0.75 if "x_errors" in rows.data else 1)
        drawn: alt.Chart = bars.encode(
            y=alt.Y("bar:O", axis=names, title=self._title("x")),
            x=alt.X("x:Q", stack="zero", axis=_axis(rows.x), scale=_scale(rows.x), title=self._title("y")),
            order=alt.Order("place:O"),
            color=self._colour(),
            tooltip=alt.Tooltip("hover:N"),
        )
        return drawn

    def _bar_errors(self) -> alt.Chart:
        import altair as alt

        mark: alt.Chart = _drawn("x_errors").mark_rule(strokeWidth=2)
        drawn: alt.Chart = mark.encode(
            y=alt.Y("bar:O"), x=alt.X("x:Q"), x2="x2:Q", color=_value(self._look.colours["ink"])
        )
        return drawn

    def _band(self) -> alt.Chart:
        mark = _drawn("bands").mark_area(interpolate="step-after", opacity=_FAINT)
        return self._placed(mark.encode(y2="y2:Q", color=self._colour(), detail=["place:N", "part:N"]))

    def _guide_band(self) -> alt.Chart:
        mark = _drawn("guide_bands").mark_area(opacity=_FAINT)
        return self._placed(mark.encode(y2="y2:Q", color=self._soft(), detail=["place:N", "part:N"]))

    def _guides(self) -> alt.Chart:
        mark = _drawn("guides").mark_line(strokeDash=[5, 4], strokeWidth=1.5)
        return self._placed(mark.encode(color=self._soft(), detail="place:N"))

    def _guide_names(self) -> alt.Chart:
        """At their ends, where no page says what they are."""
        mark = _drawn("guide_ends").mark_text(align="right", dx=-4, dy=-8)
        return self._placed(mark.encode(text="name:N", color=self._soft()))

    def _others(self) -> alt.Chart:
        mark = _drawn("others").mark_point(filled=True, size=_SMALL_POINT, opacity=0.45)
        return self._placed(mark.encode(color=self._soft(), tooltip="hover:N"))

    def _errors(self, side: Literal["x", "y"]) -> alt.Chart:
        mark = _drawn(f"{side}_errors").mark_rule(strokeWidth=2, opacity=0.4)
        return self._placed(mark.encode(color=self._colour(), **{f"{side}2": f"{side}2:Q"}))

    def _points(self) -> alt.Chart:
        size = _POINT if self._is_lettered else _SMALL_POINT
        mark = _drawn("points").mark_point(filled=True, size=size, opacity=0.9)
        return self._placed(mark.encode(color=self._colour(), shape=self._shape(), tooltip="hover:N"))

    def _letters(self) -> alt.Chart:
        mark = _drawn("points").mark_text(dx=8, dy=-8, fontSize=12, fontWeight="bold", align="left")
        return self._placed(mark.encode(text="letter:N", color=self._colour()))

    def _lines(self) -> alt.Chart:
        """Each holds its value until the next."""
        mark = _drawn("points").mark_line(interpolate="step-after", strokeWidth=2)
        return self._placed(mark.encode(color=self._colour(), detail="place:N"))

    def _ends(self) -> alt.Chart:
        mark = _drawn("ends").mark_point(filled=True, size=_SMALL_POINT, opacity=1)
        return self._placed(mark.encode(color=self._colour(), shape=self._shape()))

    def _targets(self) -> alt.Chart:
        """What a reader points at: a line alone is too thin."""
        mark = _drawn("points").mark_point(filled=True, size=_TARGET, opacity=0)
        return self._placed(mark.encode(tooltip="hover:N"))

    def _placed(self, mark: alt.Chart) -> alt.Chart:
        import altair as alt

        rows, is_time = self._rows, self._rows.is_time
        x_axis = alt.Axis(format="%Y-%m-%d", labelOverlap=True, tickCount=6) if is_time else _axis(rows.x)
        x_scale = alt.Scale(type="utc", nice=False) if is_time else _scale(rows.x, is_log=self._chart.is_log)
        placed: alt.Chart = mark.encode(
            x=alt.X("x:T" if is_time else "x:Q", axis=x_axis, scale=x_scale, title=self._title("x")),
            y=alt.Y(
                "y:Q",
                axis=_axis(rows.y),
                scale=_scale(rows.y, is_log=self._chart.is_log),
                title=self._title("y"),
            ),
        )
        return placed

    def _title(self, side: Literal["x", "y"]) -> str | None:
        return shown((self._chart.x if side == "x" else self._chart.y).title) or None

    def _soft(self) -> Mapping[str, object]:
        return _value(self._look.colours["soft"])

    def _colour(self) -> alt.Color:
        import altair as alt

        names = [colour_name(self._chart, place) for place in range(len(self._chart.series))]
        scale = alt.Scale(domain=list(range(len(names))), range=[self._look.colours[name] for name in names])
        return alt.Color("place:N", scale=scale, legend=self._legend())

    def _shape(self) -> alt.Shape:
        import altair as alt

        shapes = [SHAPES[place % len(SHAPES)] for place in range(len(self._chart.series))]
        if self._is_lettered:
            shapes = ["diamond" if one.tone is Tone.BEST else "circle" for one in self._chart.series]
        scale = alt.Scale(domain=list(range(len(shapes))), range=shapes)
        return alt.Shape("place:N", scale=scale, legend=self._legend())

    def _legend(self) -> alt.Legend | None:
        import altair as alt

        if not self._look.has_legend:
            return None
        names = [one.label for one in self._chart.series]
        if self._is_lettered:
            names = [f"{letter}  {name}" for letter, name in zip(MARKS, names, strict=False)]
        label = f"{_literal([shown(name) for name in names])}[datum.value]"
        return alt.Legend(
            title=None,
            orient="bottom",
            columns=1,
            labelExpr=label,
            labelLimit=STILL_WIDTH - 100,
            symbolOpacity=1,
        )


def _drawn(data: str) -> alt.Chart:
    import altair as alt

    return alt.Chart(alt.NamedData(name=data))


def _value(colour: str) -> Mapping[str, object]:
    import altair as alt

    return alt.value(colour)


def _axis(scale: Scale) -> alt.Axis:
    """The words that we chose beside the values that we chose."""
    import altair as alt

    words = f"{_literal(list(map(shown, scale.words)))}[indexof({_literal(scale.ticks)}, datum.value)]"
    return alt.Axis(values=list(scale.ticks), labelExpr=words, labelOverlap=True, labelSeparation=6)


def _scale(scale: Scale, *, is_log: bool = False) -> alt.Scale:
    import altair as alt

    domain = [scale.low, scale.high]
    return (
        alt.Scale(type="log", domain=domain) if is_log else alt.Scale(domain=domain, nice=False, zero=False)
    )


def _literal(values: Sequence[object]) -> str:
    """An array as Vega's expressions write it, which is as JSON does; letters are letters."""
    return json.dumps(values, ensure_ascii=False)


def _config(look: Look) -> alt.Config:
    import altair as alt

    ink, soft, line = (look.colours[name] for name in ("ink", "soft", "line"))
    return alt.Config(
        # A figure says in words what it shows; a thousand points would each be read out.
        mark=alt.MarkConfig(aria=False),
        background=look.colours["paper"],
        font="system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            aria=False,
            labelColor=soft,
            titleColor=ink,
            titleFontWeight="normal",
            gridColor=line,
            domainColor=line,
            tickColor=line,
            labelFontSize=12,
            titleFontSize=12,
        ),
        legend=alt.LegendConfig(labelColor=ink, labelFontSize=12),
    )
