"""A document as HTML: blocks for notebooks and mail, or a page of its own that opens offline."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache, partial
from importlib import metadata, resources
from itertools import groupby, takewhile
from typing import Literal, TypeAlias, assert_never

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from advisor.core.files import write_atomically
from advisor.core.values import Interval, Quantiles
from advisor.report import document as doc
from advisor.report.plain import Shown, shown
from advisor.report.writers.pictures import NOT_INSTALLED, TOO_LITTLE_MEMORY, can_draw, still
from advisor.report.writers.plot import draw_chart
from advisor.report.writers.vega import GLYPHS, colour_name, is_lettered, spec_of

# For notebooks and mail, where no stylesheet reaches: only what reads well on light and dark pages alike.
_STYLES: Mapping[doc.Tone, str] = {
    doc.Tone.BEST: "font-weight: bold",
    doc.Tone.GOOD: "",
    doc.Tone.PLAIN: "",
    doc.Tone.FAINT: "opacity: 0.5",
    doc.Tone.DOUBTFUL: "font-style: italic",
    doc.Tone.BAD: "font-weight: bold",
}


@cache
def templates() -> Environment:
    """Where a name that is not known is an error, not an empty text."""
    environment = Environment(
        loader=PackageLoader("advisor.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    environment.filters |= {
        "lines": doc.cell_lines,
        "sort_value": sort_value,
        "style": _STYLES.__getitem__,
        "zip": lambda left, right: zip(left, right, strict=True),
    }
    return environment


def macro(template: str, name: str) -> Callable[..., Markup]:
    """A macro of a template, to be called as a function."""
    written: Callable[..., Markup] = getattr(templates().get_template(template).module, name)
    return written


def ours(text: str) -> Markup:
    """What we wrote ourselves and goes into a template as it is."""
    return Markup(text)  # noqa: S704 - the one place; callers hand over scripts, styles and escaped data


def sort_value(cell: doc.Cell) -> str | None:
    """What a column is sorted by where it is not the text of the cell: a number, a date, nothing."""
    match cell:
        case tuple():
            return sort_value(cell[0]) if cell else None
        case str() | doc.PageLink():
            return None
        case date():
            return cell.isoformat()
        case Quantiles() | Interval():
            return _number(cell.p50)
        case doc.Worded():
            return _number(cell.value)
        case _:
            return _number(cell)


def _number(value: float | None) -> str:
    """As JavaScript reads it; empty where nothing is known."""
    if value is None or value != value:
        return ""
    return repr(value).replace("inf", "Infinity")


def _harmless(value: object) -> object:
    return value if isinstance(value, Markup) else shown(str(value))


_BLOCKS = "blocks.html.j2"
Piece: TypeAlias = tuple[Literal["texts", "facts", "sum"], Sequence[str | doc.Fact]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockWriter:
    """How blocks become HTML."""

    draw: Callable[[doc.Chart], Markup]
    inline: bool
    """Whether attributes say what matters, where no stylesheet does."""
    heading: int

    def html(self, blocks: Iterable[doc.Block]) -> Markup:
        """Every block, one below the other."""
        return Markup("\n").join(filter(None, map(self._block, blocks)))

    def _block(self, block: doc.Block) -> Markup:
        match block:
            case doc.Table():
                written = macro(_BLOCKS, "table")(block, self.inline)
            case doc.Lines():
                written = macro(_BLOCKS, "lines")(block)
            case doc.Section():
                written = macro(_BLOCKS, "section")(block, list(_pieces(block.entries)), self.heading)
            case doc.Chart():
                written = self.draw(block)
            case _:
                assert_never(block)
        return written.strip()


def to_html(document: doc.Document) -> str:
    """Every block for a notebook."""
    return str(BlockWriter(draw=_letters, inline=True, heading=4).html(document.blocks))


def _pieces(entries: Sequence[doc.Entry]) -> Iterator[Piece]:
    """Texts and facts that follow each other are a list each, and so is every sum."""
    for kind, alike in groupby(entries, type):
        if kind is str:
            # In a terminal a dash stands before an item of a list.
            yield "texts", [text.removeprefix("- ") for text in alike if isinstance(text, str)]
        elif kind is doc.Fact:
            yield "facts", [fact for fact in alike if isinstance(fact, doc.Fact)]
        else:
            yield from (("sum", one.facts) for one in alike if isinstance(one, doc.Sum))


def _letters(chart: doc.Chart) -> Markup:
    return Markup("<pre>{}</pre>").format("\n".join(draw_chart(chart, 100)))


# Points of a chart that is also drawn for readers without JavaScript, and of one whose figures are listed.
MOST_DRAWN, MOST_LISTED = 500, 300
# A label, the class of its colour, and what stands for its mark.
Sign: TypeAlias = tuple[str, str, str]


def figure_html(chart: doc.Chart, *, is_served: bool = False) -> Markup:
    """A figure of a page; `page.js` draws what its specification says.

    A request starts no program, so a page that is served has no picture for readers without JavaScript: they
    have the figures.
    """
    lettered, signs, rest = is_lettered(chart), list(_signs(chart)), list(_rest(chart))
    spec = spec_of(chart) if can_draw() else None
    # Of more points a drawing would be larger than all else.
    drawing = still(spec) if spec and not is_served and _num_points(chart) <= MOST_DRAWN else ""
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


def _in_words(chart: doc.Chart) -> str:
    """What is said to anyone who cannot see it; the figures and what the marks mean follow."""
    drawn = f"{len(chart.bars)} bars" if chart.bars else "lines" if chart.until is not None else "points"
    names = [one.label for one in chart.series] or [chart.others_label]
    return f"{chart.title or 'Chart'}: {drawn} of {'; '.join(names)}"


def _json(spec: object) -> str:
    """Data that ends no script element."""
    return json.dumps(spec, separators=(",", ":")).replace("<", "\\u003c")


def _num_points(chart: doc.Chart) -> int:
    return len(chart.others) + sum(len(one.points) for one in chart.series)


def _signs(chart: doc.Chart) -> Iterator[Sign]:
    for place, one in enumerate(chart.series):
        glyph = "■" if chart.bars else "- -" if one.is_dashed else GLYPHS[place % len(GLYPHS)]
        yield one.label, colour_name(chart, place), glyph


def _rest(chart: doc.Chart) -> Iterator[Sign]:
    if chart.others_label:
        yield chart.others_label, "soft", "●"
    yield from ((one.label, "soft", "- -") for one in chart.guides)


def _figures(chart: doc.Chart) -> doc.Table | None:
    if _num_points(chart) > MOST_LISTED:
        return None
    rest = doc.Series(chart.others_label, chart.others, chart.others_details)
    x, y = chart.x, chart.y
    rows = [
        doc.Row((one.label, chart.bars[int(point[0])] if chart.bars else point[0], point[1]))
        for one in (*chart.series, rest)
        for point in one.points
    ]
    return doc.Table(
        columns=(
            doc.Column("Series"),
            doc.Column(x.title or "Across", doc.TEXT if chart.bars else x.kind),
            doc.Column(y.title or "Up", y.kind),
        ),
        rows=tuple(rows),
    )


_NAMELESS = "advisor"


def to_page(document: doc.Document, links: Sequence[doc.PageLink] = (), runtime: str | None = None) -> Shown:
    """A whole HTML document; what its texts say is shown and never run.

    Links are to the pages of a site, which serves ``runtime``, what `vega_runtime` returns; a file has none
    and holds it.
    """
    layout = None if document.layout is None else document.layout()
    if layout is not None:
        blocks = layout.blocks
    else:
        blocks = document.blocks if document.page is None else document.page()
    lead = [block.title for block in takewhile(_is_sentence, blocks) if isinstance(block, doc.Section)]
    draw = partial(figure_html, is_served=bool(links))
    write = BlockWriter(draw=draw, inline=False, heading=2).html
    style, scripts = _template("page.css"), [_template("page.js")]
    has_charts = any(isinstance(block, doc.Chart) for block in blocks)
    if has_charts and runtime is None and not links and can_draw() and (inlined := vega_runtime()):
        scripts.insert(0, inlined)
    page = templates().get_template("page.html.j2")
    return Shown(
        page.render(
            title=document.title or _NAMELESS,
            lead=lead,
            links=links,
            kind="plain" if layout is None else "report",
            body=write(blocks[len(lead) :]) if layout is None else _laid_out(layout, write),
            style=ours(style),
            runtime=runtime if has_charts else None,
            scripts=map(ours, scripts),
            policy=_policy(style, ["'self'"] * bool(has_charts and runtime) + [*map(_hash, scripts)]),
            version=metadata.version("gpu-advisor"),
            day=doc.day_text(datetime.now(UTC)),
        )
    )


def _laid_out(layout: doc.PageLayout, write: Callable[[Iterable[doc.Block]], Markup]) -> Markup:
    tabs = [(name, write(blocks)) for name, blocks in layout.tabs]
    written = macro("layout.html.j2", "layout")
    return written(layout.tiles, write(layout.top), layout.title, layout.cards, tabs)


def _is_sentence(block: doc.Block) -> bool:
    return isinstance(block, doc.Section) and not block.entries


def _policy(style: str, scripts: Sequence[str]) -> str:
    """Nothing is loaded from elsewhere or sent, and nothing runs but the scripts that we wrote."""
    return (
        f"default-src 'none'; script-src {' '.join(scripts)}; style-src {_hash(style)}; base-uri 'none';"
        " form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _template(name: str) -> str:
    return resources.files("advisor.report").joinpath("templates", name).read_text("utf-8")


def vega_runtime() -> str | None:
    """Vega, Vega-Lite and Vega-Embed as one script; made once for each version, which takes seconds.

    None where memory is too scarce for it.
    """
    import platformdirs

    version = metadata.version("vl-convert-python")
    path = platformdirs.user_cache_path("advisor") / f"vega-{version}.js"
    with suppress(OSError):
        return path.read_text("utf-8")
    from advisor.report.writers.pictures import javascript

    bundle = javascript("window.vegaEmbed = vegaEmbed;")
    if bundle is None:
        return None
    script = bundle.replace("</script", "<\\/script")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, script.encode(), private=True)
    return script
