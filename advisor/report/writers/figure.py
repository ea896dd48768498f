"""A chart in a page: its drawing, what its marks mean, and its figures for those who do not see it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TypeAlias

from markupsafe import Markup

from advisor.report.cells import TEXT
from advisor.report.document import Chart, Column, Row, Series, Table
from advisor.report.writers.pictures import NOT_INSTALLED, TOO_LITTLE_MEMORY, can_draw, still
from advisor.report.writers.templating import macro, ours
from advisor.report.writers.vega import GLYPHS, colour_name, spec_of
from advisor.report.writers.vega_rows import is_lettered

# Points of a chart that is also drawn for readers without JavaScript, and of one whose figures are listed.
MOST_DRAWN, MOST_LISTED = 500, 300
# A label, the class of its colour, and what stands for its mark.
Sign: TypeAlias = tuple[str, str, str]


def figure_html(chart: Chart) -> Markup:
    """A figure of a page; `page.js` draws what its specification says."""
    lettered, signs, rest = is_lettered(chart), list(_signs(chart)), list(_rest(chart))
    spec = spec_of(chart) if can_draw() else None
    # Of more points a drawing would be larger than all else.
    drawing = still(spec) if spec and _num_points(chart) <= MOST_DRAWN else ""
    undrawn = NOT_INSTALLED if spec is None else TOO_LITTLE_MEMORY if drawing is None else ""
    return macro("figure.html.j2", "figure")(
        chart,
        _in_words(chart),
        ours(_json(spec)) if spec else None,
        ours(drawing or ""),
        undrawn,
        signs if lettered else (),
        rest if lettered else signs + rest,
        _figures(chart),
    )


def _in_words(chart: Chart) -> str:
    """What whoever does not see it is told; the figures and what the marks mean follow."""
    drawn = f"{len(chart.bars)} bars" if chart.bars else "lines" if chart.until is not None else "points"
    names = [one.label for one in chart.series] or [chart.others_label]
    return f"{chart.title or 'Chart'}: {drawn} of {'; '.join(names)}"


def _json(spec: object) -> str:
    """Data that ends no script element."""
    return json.dumps(spec, separators=(",", ":")).replace("<", "\\u003c")


def _num_points(chart: Chart) -> int:
    return len(chart.others) + sum(len(one.points) for one in chart.series)


def _signs(chart: Chart) -> Iterator[Sign]:
    """What the letters or the colours mean."""
    for place, one in enumerate(chart.series):
        glyph = "■" if chart.bars else GLYPHS[place % len(GLYPHS)]
        yield one.label, colour_name(chart, place), glyph


def _rest(chart: Chart) -> Iterator[Sign]:
    """What lies below the series."""
    if chart.others_label:
        yield chart.others_label, "soft", "●"
    yield from ((one.label, "soft", "- -") for one in chart.guides)


def _figures(chart: Chart) -> Table | None:
    """What a chart shows, for whoever cannot see it."""
    if _num_points(chart) > MOST_LISTED:
        return None
    rest = Series(chart.others_label, chart.others, chart.others_details)
    x, y = chart.x, chart.y
    rows = [
        Row((one.label, chart.bars[int(point[0])] if chart.bars else point[0], point[1]))
        for one in (*chart.series, rest)
        for point in one.points
    ]
    return Table(
        columns=(
            Column("Series"),
            Column(x.title or "Across", TEXT if chart.bars else x.kind),
            Column(y.title or "Up", y.kind),
        ),
        rows=tuple(rows),
    )
