"""The templates of ``report/templates``; every text in them is made harmless and escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from advisor.core.values import Interval, Quantiles
from advisor.report.cells import Cell, Worded, cell_lines
from advisor.report.document import Tone
from advisor.report.plain import shown

# For notebooks and mail, where no stylesheet reaches: only what reads well on light and dark pages alike.
_STYLES: Mapping[Tone, str] = {
    Tone.BEST: "font-weight: bold",
    Tone.GOOD: "",
    Tone.PLAIN: "",
    Tone.FAINT: "opacity: 0.5",
    Tone.DOUBTFUL: "font-style: italic",
    Tone.BAD: "font-weight: bold",
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
        "lines": cell_lines,
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


def sort_value(cell: Cell) -> str | None:
    """What a column is sorted by where it is not the text of the cell: a number, a date, nothing."""
    match cell:
        case tuple():
            return sort_value(cell[0]) if cell else None
        case str():
            return None
        case date():
            return cell.isoformat()
        case Quantiles() | Interval():
            return _number(cell.p50)
        case Worded():
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
