"""A Chart as a Vega-Lite specification.

Colours of a page are names of its stylesheet (``var(--series-1)``), so that it turns dark, or light on paper,
without being drawn again. Pictures for mail have the colours themselves, and their legend inside.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeAlias, TypedDict

from advisor.report.document import DAY, Axis, Chart, Detail, Point, Range, Series, Tone
from advisor.report.plain import shown
from advisor.report.writers.plot import MARKS, Scale, scale_of

Row: TypeAlias = dict[str, float | str]
# Enough for a screen; a figure of a report is read from its text.
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class VegaRows:
    """What layers draw, by the name of its kind, and the two scales."""

    data: Mapping[str, list[Row]]
    """Only what there is; ``ends`` are the last points of lines and of guides."""
    x: Scale
    """Of bars the scale of their lengths."""
    y: Scale
    is_time: bool
    """Whether x is a moment, in milliseconds as JavaScript counts them."""
    bars: tuple[str, ...]
    """Their names."""


def rows_of(chart: Chart) -> VegaRows:
    """All that is drawn. Raises ValueError: nothing is."""
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

    def rows(self) -> VegaRows:
        x, y = self._scales()
        data = {name: rows for name, rows in self._data().items() if rows}
        bars = tuple(map(shown, self._chart.bars))
        return VegaRows(data=data, x=x, y=y, is_time=self._is_time, bars=bars)

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
        if self._chart.until is not None and series.points and not series.stops:
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


Part: TypeAlias = dict[str, object]
"""A part of a specification, as Vega-Lite's schema has it."""


class VegaLayer(TypedDict):
    """A mark for each row of some data."""

    data: Part
    mark: Part
    encoding: Part


class Spec(TypedDict):
    """A whole specification; tests check it by Vega-Lite's schema, which altair has."""

    layer: list[VegaLayer]
    datasets: Mapping[str, list[Row]]
    height: int
    width: str | int
    autosize: Part
    config: Part


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
_AMBER = "series-5"
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
    """The specification of a chart; every text in it is shown text. Raises ValueError: it has no points."""
    rows = rows_of(chart)
    layers = _Drawing(chart, rows, look).layers()
    return {
        "layer": [layer for layer in layers if layer["data"]["name"] in rows.data],
        "datasets": rows.data,
        "height": len(chart.bars) * _BAR_HEIGHT or _HEIGHT,
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": _config(look),
    }


def colour_name(chart: Chart, place: int) -> str:
    """Of a series, a name that a Look and the stylesheet of a page know."""
    match chart.series[place].tone:
        case Tone.BEST:
            return "best"
        case Tone.FAINT:
            return "soft"
        case Tone.DOUBTFUL:
            return _AMBER
        case _:
            # What has not happened yet goes on with what has.
            place -= chart.series[place].is_dashed
            return _SERIES[0 if is_lettered(chart) else place % NUM_COLOURS]


_PLACE, _PART, _HOVER = ({"field": name, "type": "nominal"} for name in ("place", "part", "hover"))


class _Drawing:
    def __init__(self, chart: Chart, rows: VegaRows, look: Look) -> None:
        self._chart, self._rows, self._look = chart, rows, look
        self._is_lettered = is_lettered(chart)
        self._soft: Part = {"value": look.colours["soft"]}

    def layers(self) -> Iterator[VegaLayer]:
        """Of each kind of data, whether there is any or not."""
        if self._chart.bars:
            yield from self._bars()
            return
        yield from self._below()
        if self._chart.until is not None:
            yield from self._lines()
            return
        colour = self._colour()
        if self._is_lettered:
            letter = {
                "type": "text",
                "dx": 8,
                "dy": -8,
                "fontSize": 12,
                "fontWeight": "bold",
                "align": "left",
            }
            yield self._layer("points", letter, text={"field": "letter", "type": "nominal"}, color=colour)
        size = _POINT if self._is_lettered else _SMALL_POINT
        points = {"type": "point", "filled": True, "size": size, "opacity": 0.9}
        yield self._layer("points", points, color=colour, shape=self._shape(), tooltip=_HOVER)

    def _bars(self) -> Iterator[VegaLayer]:
        rows = self._rows
        bar: Part = {"field": "bar", "type": "ordinal"}
        names = {"labelExpr": f"{_literal(rows.bars)}[datum.value]", "ticks": False, "labelLimit": 220}
        length = {"stack": "zero", "axis": _axis(rows.x), "scale": _scale(rows.x), "title": self._title("y")}
        yield {
            "data": {"name": "points"},
            "mark": {"type": "bar", "opacity": 0.75 if "x_errors" in rows.data else 1},
            "encoding": {
                "y": {**bar, "axis": names, "title": self._title("x")},
                "x": {"field": "x", "type": "quantitative", **length},
                "order": {"field": "place", "type": "ordinal"},
                "color": self._colour(),
                "tooltip": _HOVER,
            },
        }
        ends: Part = {"x": {"field": "x", "type": "quantitative"}, "x2": {"field": "x2"}}
        ink: Part = {"value": self._look.colours["ink"]}
        yield {
            "data": {"name": "x_errors"},
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"y": bar, **ends, "color": ink},
        }

    def _below(self) -> Iterator[VegaLayer]:
        """Bands, guides, what has no name of its own, and how far points may be off."""
        band: Part = {"type": "area", "opacity": _FAINT}
        of_band: Part = {"y2": {"field": "y2"}, "detail": [_PLACE, _PART]}
        colour = self._colour()
        yield self._layer("guide_bands", band, color=self._soft, **of_band)
        yield self._layer("bands", {**band, "interpolate": "step-after"}, color=colour, **of_band)
        guides = {"type": "line", "strokeDash": [5, 4], "strokeWidth": 1.5}
        yield self._layer("guides", guides, color=self._soft, detail=_PLACE)
        if self._look.has_legend:  # where no page says what they are
            name = {"type": "text", "align": "right", "dx": -4, "dy": -8}
            text = {"field": "name", "type": "nominal"}
            yield self._layer("guide_ends", name, text=text, color=self._soft)
        others = {"type": "point", "filled": True, "size": _SMALL_POINT, "opacity": 0.45}
        yield self._layer("others", others, color=self._soft, tooltip=_HOVER)
        for side in ("x", "y"):
            error = {"type": "rule", "strokeWidth": 2, "opacity": 0.4}
            yield self._layer(f"{side}_errors", error, color=colour, **{f"{side}2": {"field": f"{side}2"}})

    def _lines(self) -> Iterator[VegaLayer]:
        """Each holds its value until the next, and ends in a mark; what a reader points at is wider."""
        point = {"type": "point", "filled": True}
        line = {"type": "line", "interpolate": "step-after", "strokeWidth": 2}
        yield self._layer("points", line, color=self._colour(), detail=_PLACE, **self._dashes())
        end = {**point, "size": _SMALL_POINT, "opacity": 1}
        yield self._layer("ends", end, color=self._colour(), shape=self._shape())
        yield self._layer("points", {**point, "size": _TARGET, "opacity": 0}, tooltip=_HOVER)

    def _layer(self, data: str, mark: Part, **encoding: object) -> VegaLayer:
        x: Part = {"field": "x", "title": self._title("x")}
        if self._rows.is_time:
            days = {"format": "%Y-%m-%d", "labelOverlap": True, "tickCount": 6}
            x |= {"type": "temporal", "axis": days, "scale": {"type": "utc", "nice": False}}
        else:
            x |= self._axis_and_scale(self._rows.x)
        y = {"field": "y", "title": self._title("y"), **self._axis_and_scale(self._rows.y)}
        return {"data": {"name": data}, "mark": mark, "encoding": {**encoding, "x": x, "y": y}}

    def _axis_and_scale(self, scale: Scale) -> Part:
        drawn = _scale(scale, is_log=self._chart.is_log)
        return {"type": "quantitative", "axis": _axis(scale), "scale": drawn}

    def _title(self, side: Literal["x", "y"]) -> str | None:
        return shown((self._chart.x if side == "x" else self._chart.y).title) or None

    def _colour(self) -> Part:
        names = [colour_name(self._chart, place) for place in range(len(self._chart.series))]
        return self._by_place([self._look.colours[name] for name in names])

    def _shape(self) -> Part:
        shapes = [SHAPES[place % len(SHAPES)] for place in range(len(self._chart.series))]
        if self._is_lettered:
            shapes = ["diamond" if one.tone is Tone.BEST else "circle" for one in self._chart.series]
        return self._by_place(shapes)

    def _dashes(self) -> Part:
        """Nothing where no line is dashed."""
        series = self._chart.series
        if not any(one.is_dashed for one in series):
            return {}
        scale = {
            "domain": list(range(len(series))),
            "range": [[5, 4] if one.is_dashed else [1, 0] for one in series],
        }
        return {"strokeDash": {**_PLACE, "scale": scale, "legend": None}}

    def _by_place(self, values: Sequence[str]) -> Part:
        scale = {"domain": list(range(len(values))), "range": values}
        return {**_PLACE, "scale": scale, "legend": self._legend()}

    def _legend(self) -> Part | None:
        if not self._look.has_legend:
            return None
        names = [one.label for one in self._chart.series]
        if self._is_lettered:
            names = [f"{letter}  {name}" for letter, name in zip(MARKS, names, strict=False)]
        label = f"{_literal([shown(name) for name in names])}[datum.value]"
        place: Part = {"orient": "bottom", "columns": 1, "labelLimit": STILL_WIDTH - 100}
        return {"title": None, **place, "labelExpr": label, "symbolOpacity": 1}


def _axis(scale: Scale) -> Part:
    """The words that we chose beside the values that we chose."""
    words = f"{_literal(list(map(shown, scale.words)))}[indexof({_literal(scale.ticks)}, datum.value)]"
    return {"values": list(scale.ticks), "labelExpr": words, "labelOverlap": True, "labelSeparation": 6}


def _scale(scale: Scale, *, is_log: bool = False) -> Part:
    kind: Part = {"type": "log"} if is_log else {"nice": False, "zero": False}
    return {"domain": [scale.low, scale.high], **kind}


def _literal(values: Sequence[object]) -> str:
    """An array as Vega's expressions write it, which is as JSON does; letters are letters."""
    return json.dumps(values, ensure_ascii=False)


def _config(look: Look) -> Part:
    ink, soft, line = (look.colours[name] for name in ("ink", "soft", "line"))
    colours = {"labelColor": soft, "titleColor": ink}
    colours |= {f"{name}Color": line for name in ("grid", "domain", "tick")}
    fonts = {"titleFontWeight": "normal", "labelFontSize": 12, "titleFontSize": 12}
    return {
        # A figure says in words what it shows; a thousand points would each be read out.
        "mark": {"aria": False},
        "background": look.colours["paper"],
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
        "view": {"continuousWidth": 300, "continuousHeight": 300, "stroke": None},
        "axis": {"aria": False, **colours, **fonts},
        "legend": {"labelColor": ink, "labelFontSize": 12},
    }
