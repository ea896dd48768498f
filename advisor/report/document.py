"""What a command answers, as frozen values; each writer of ``report/writers`` makes its own text of them.

Nothing here is escaped, aligned, coloured or cut: texts are as scripts and clouds wrote them, and numbers are
numbers with a kind. What a format cannot show it leaves out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from advisor.core.units import format_bytes, format_duration, format_duration_short, format_usd
from advisor.core.values import Interval, Quantiles
from advisor.report.plain import few

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

NOTHING = "-"


def step_text(seconds: float) -> str:
    """``183 ms``, ``87.3 s``: whole minutes would hide a third of a step."""
    return f"{seconds:.3g} s" if 1 <= seconds < 999.5 else format_duration(seconds)


@dataclass(frozen=True, slots=True)
class Kind:
    """How numbers of one sort are written, and on which side of their column they stand."""

    name: str
    words: Callable[[float], str]
    is_right: bool = True


TEXT = Kind("text", str, is_right=False)
COUNT = Kind("count", "{:,}".format)
PLAIN = Kind("plain", str)
ROUNDED = Kind("rounded", "{:,.0f}".format)
FOUR_DIGITS = Kind("four digits", "{:.4g}".format)
DECIMALS = Kind("three decimals", "{:.3f}".format)
SHARE = Kind("share", "{:.1%}".format)
MULTIPLE = Kind("multiple", "{:.2f} x".format)
USD = Kind("USD", format_usd)
CENTS = Kind("USD and cents", lambda usd: f"{'-' if usd < 0 else ''}${abs(usd):,.2f}")
USD_PER_H = Kind("USD per hour", "{:.4f}".format)
BYTES = Kind("bytes", format_bytes)
DURATION = Kind("duration", format_duration)
SHORT_DURATION = Kind("short duration", format_duration_short)
MICROSECONDS = Kind("microseconds", lambda seconds: f"{seconds * 1e6:,.1f} us")
INTERVAL = Kind("interval of durations", format_duration, is_right=False)
STEP = Kind("interval of steps", step_text, is_right=False)
DAY = Kind("day", lambda timestamp: day_text(datetime.fromtimestamp(timestamp, UTC)), is_right=False)


@dataclass(frozen=True, slots=True)
class Worded:
    """A number in words of its own, such as ``3.67, 111 d``; the number is what a column is sorted by."""

    text: str
    value: float | None


@dataclass(frozen=True, slots=True)
class PageLink:
    """A text that a page links to another page of the same site; elsewhere the text alone."""

    text: str
    href: str


Value: TypeAlias = str | float | date | Quantiles | Interval | Worded | PageLink | None
Cell: TypeAlias = Value | tuple[Value, ...]


def cell_lines(cell: Cell, kind: Kind) -> list[str]:
    """The lines of a cell, not yet safe to print; a text stands for itself, whatever the kind.

    >>> cell_lines((1.5, "free", None), USD)
    ['$1.50', 'free', '-']
    """
    return [_line(value, kind) for value in cell] if isinstance(cell, tuple) else [_line(cell, kind)]


def _line(value: Value, kind: Kind) -> str:
    match value:
        case None:
            return NOTHING
        case str():
            return value
        case Worded() | PageLink():
            return value.text
        case date():
            return day_text(value)
        case Quantiles():
            return with_p90(value, kind.words)
        case Interval():
            return interval_text(value, kind.words)
        case _:
            return kind.words(value)


def day_text(day: date) -> str:
    """``2026-11-21``."""
    return f"{day:%Y-%m-%d}"


def interval_text(interval: Interval, words: Callable[[float], str] = step_text) -> str:
    """``120 ms .. 183 ms .. 270 ms``."""
    return " .. ".join(map(words, (interval.p10, interval.p50, interval.p90)))


def with_p90(quantiles: Quantiles, words: Callable[[float], str]) -> str:
    """``median (p90)``; the median alone where both look the same."""
    p50, p90 = words(quantiles.p50), words(quantiles.p90)
    return p50 if p50 == p90 else f"{p50} ({p90})"


Point: TypeAlias = tuple[float, float]
Range: TypeAlias = tuple[float, float]
# Below this many characters most tables that have a narrow form take it.
NARROW = 110
# Characters of the name of a fact, at least.
NAME_WIDTH = 28


class Tone(Enum):
    """How much a row matters, for writers that have colours."""

    BEST = auto()
    GOOD = auto()
    PLAIN = auto()
    FAINT = auto()
    DOUBTFUL = auto()
    BAD = auto()


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, the kind below it, and whether its cells may take more lines where there is no room."""

    name: str
    kind: Kind = TEXT
    wraps: bool = True


def columns(*heads: str | tuple[str, Kind], kind: Kind = TEXT, wraps: bool = True) -> tuple[Column, ...]:
    """Columns by their names, those of another kind with it."""
    named = ((head, kind) if isinstance(head, str) else head for head in heads)
    return tuple(Column(name, of, wraps) for name, of in named)


@dataclass(frozen=True, slots=True)
class Row:
    """A cell for each column."""

    cells: tuple[Cell, ...]
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under their columns."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    caption: str = ""
    """Empty for none; where a terminal shows a table, the lines around it say what it is."""
    narrow: tuple[Block, ...] = ()
    """What stands for the table where a terminal is too narrow for it."""
    narrow_below: int = 0
    """Characters of a terminal below which it is too narrow."""
    keeps_words: bool = True
    """Whether it is too narrow also where a word would have to be broken."""
    ends_blank: bool = True
    """Whether a terminal has a blank line behind it."""

    def in_order(self, places: Sequence[int]) -> Table:
        """The same with its columns in another order, and no narrow form."""
        rows = tuple(replace(row, cells=tuple(row.cells[i] for i in places)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[i] for i in places), rows=rows, narrow=())


@dataclass(frozen=True, slots=True)
class Lines:
    """Texts of one line each, never broken; code keeps its tabs."""

    lines: tuple[str, ...]
    are_code: bool = False


BLANK = Lines(("",))


@dataclass(frozen=True, slots=True)
class Fact:
    """A name, what stands behind it, and a remark."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Sum:
    """Facts that add up to their last, and how many characters their names take at least."""

    facts: tuple[Fact, ...]
    name_width: int = NAME_WIDTH


Entry: TypeAlias = str | Fact | Sum


@dataclass(frozen=True, slots=True)
class Section:
    """A title and what belongs to it, broken between words."""

    title: str
    entries: tuple[Entry, ...]


def warnings_of(warnings: Sequence[str]) -> tuple[Section, ...]:
    """A section of their own, for documents that are read without standard error."""
    return (Section("Warnings", tuple(few(warnings))),) if warnings else ()


@dataclass(frozen=True, slots=True)
class Axis:
    """The kind of its values; ``lowest`` stands for the least of them, such as ``free``.

    ``title`` says what they are, where there is room for it.
    """

    kind: Kind
    lowest: str | None = None
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What is known of a point beyond its place."""

    label: str = ""
    """What a reader sees who points at it; may have several lines."""
    x_range: Range | None = None
    """Low and high, an error bar."""
    y_range: Range | None = None
    """The same; along a line those of all its points are a band."""


NO_DETAIL = Detail()


@dataclass(frozen=True, slots=True)
class Series:
    """Points with a name; in a line chart a value holds until the next.

    ``details`` has one for each point, or is empty. ``tone`` is for writers that have colours; without one,
    series differ by colour alone. ``stops`` says that nothing holds after its last point, ``is_dashed`` that
    it has not happened yet.
    """

    label: str
    points: tuple[Point, ...]
    details: tuple[Detail, ...] = ()
    tone: Tone | None = None
    stops: bool = False
    is_dashed: bool = False

    def detailed(self) -> Iterator[tuple[Point, Detail]]:
        """Each point with what else is known of it."""
        return zip(self.points, self.details or (NO_DETAIL,) * len(self.points), strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Points (scatter), values over time (line), or bars."""

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    """The first lies on top; of bars the first is at the bottom, the others stand on it."""
    until: float | None = None
    """Where the last value of each series ends, in a line chart."""
    bars: tuple[str, ...] = ()
    """A name for each bar, in their order; a point's x is the place of its bar, the first 0."""
    is_log: bool = False
    """Both axes logarithmic, for values above 0."""
    title: str = ""
    """Empty for none."""
    others: tuple[Point, ...] = ()
    """Points that have no name of their own, below all series."""
    others_label: str = ""
    """What they are."""
    others_details: tuple[Detail, ...] = ()
    """One for each of them, or empty."""
    guides: tuple[Series, ...] = ()
    """Straight lines from point to point below all else, such as a frontier, a budget, a forecast."""
    note: str = ""
    """About what is not drawn."""


Block: TypeAlias = Table | Lines | Section | Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A figure that is read first."""

    name: str
    figure: str
    note: str = ""
    share: float | None = None
    """Of a bar below it that is full; None for no bar."""
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What to do, what that is worth, and a command to copy."""

    figure: str
    text: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLayout:
    """A page of figures first."""

    tiles: tuple[Tile, ...]
    top: tuple[Block, ...]
    """What stands below them, such as one chart."""
    title: str
    cards: tuple[Card, ...]
    tabs: tuple[tuple[str, tuple[Block, ...]], ...]
    """Names, and the blocks of each."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks in order."""
        return (*self.top, *(block for _, blocks in self.tabs for block in blocks))


def facts_of(value: object, names: str) -> dict[str, object]:
    """Attributes as JSON has them: values within values as objects, moments as text, money as numbers.

    Args:
        value: any object; of None each is None.
        names: of the attributes, in their order, with spaces between.

    >>> facts_of(Fact("needed", "unknown"), "name value")
    {'name': 'needed', 'value': 'unknown'}
    """
    return {name: None if value is None else _plain(getattr(value, name)) for name in names.split()}


def all_facts_of(value: DataclassInstance) -> dict[str, object]:
    """The same of all fields of a dataclass."""
    return facts_of(value, " ".join(field.name for field in fields(value)))


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, date) else value


class Late(Mapping[str, object]):
    """Facts that are made when someone first asks: most formats never do."""

    def __init__(self, make: Callable[[], Mapping[str, object]]) -> None:
        self._make = make

    @cached_property
    def _facts(self) -> Mapping[str, object]:
        return self._make()

    def __getitem__(self, name: str) -> object:
        return self._facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An answer."""

    facts: Mapping[str, object]
    """What JSON holds, by contract (docs/json.md); made from the values, not from the blocks."""
    blocks: tuple[Block, ...]
    """What a person reads, in order."""
    sheet: Table | Callable[[], Table] | None = None
    """The rows for a spreadsheet, or what makes them, where they are not those of the first table."""
    is_letter: bool = False
    """Is read as a whole, so that Markdown has its words and not its tables alone."""
    title: str = ""
    """Of a page."""
    subject: str = ""
    """Of a mail; "" for the title."""
    page: Callable[[], tuple[Block, ...]] | None = None
    """Makes what mail shows, and a page without a layout, where it is not what a terminal shows, such as a
    chart beside a table."""
    layout: Callable[[], PageLayout] | None = None
    """Makes what a page shows."""
    of_moment: frozenset[str] = frozenset()
    """Facts that differ each time someone asks; with any, the others say all that the blocks do."""

    def tables(self) -> Iterator[Table]:
        """The tables among the blocks."""
        return (block for block in self.blocks if isinstance(block, Table))

    def spreadsheet(self) -> Table | None:
        """The rows for a spreadsheet where they are not those of the first table."""
        return self.sheet() if callable(self.sheet) else self.sheet


Words = Callable[[int], str]


def rounded(parts: Mapping[str, float], total: float, unit: float) -> dict[str, int]:
    """Whole units of each part, together those of the rounded total; none is off by a unit or more.

    The method of largest remainders: all parts are rounded down, and those that lost most are rounded up.
    Parts must add up to the total.

    >>> rounded({"a": 1.4, "b": 1.4, "c": 0.2}, 3.0, 1.0)
    {'a': 2, 'b': 1, 'c': 0}
    """
    exact = {name: part / unit for name, part in parts.items()}
    whole = {name: math.floor(value) for name, value in exact.items()}
    missing = round(total / unit) - sum(whole.values())
    by_loss = sorted(exact, key=lambda name: whole[name] - exact[name])
    return {name: whole[name] + (name in by_loss[: max(missing, 0)]) for name in whole}


def with_rest(parts: Mapping[str, float], total: float, unit: float, name: str) -> dict[str, float]:
    """The parts, and what they lack of the total where that is worth a line."""
    rest = total - sum(parts.values())
    if abs(rest) < unit / 2 and parts:
        return dict(parts)
    return {**parts, name: rest}


def clock(total_s: float) -> tuple[float, Words]:
    """Unit in seconds, and how a number of units is written: ``h:mm:ss``; thousandths below a minute.

    >>> unit, words = clock(5400.0)
    >>> words(5400)
    '1:30:00'
    """
    if total_s >= 60:
        return 1.0, _clock_words
    return 0.001, lambda units: f"{units / 1000:.3f} s"


def _clock_words(seconds: int) -> str:
    minutes, rest_s = divmod(abs(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{'-' * (seconds < 0)}{hours:,}:{minutes:02}:{rest_s:02}"


def dollars(total_usd: float) -> tuple[float, Words]:
    """Unit in dollars, and how a number of units is written: cents, four digits below a dollar.

    >>> unit, words = dollars(1234.5)
    >>> words(123450)
    '$1,234.50'
    """
    digits = 2 if total_usd >= 1 else 4
    return 10.0**-digits, lambda units: f"{'-' * (units < 0)}${abs(units) / 10**digits:,.{digits}f}"


def short_times(total_s: float) -> tuple[float, Words]:
    """Unit in seconds, and how a number of units is written: ms or s with four digits of the total.

    >>> unit, words = short_times(0.0355)
    >>> words(3550)
    '35.50 ms'
    """
    name, size = ("s", 1.0) if total_s >= 1 else ("ms", 1e-3)
    digits = max(3 - math.floor(math.log10(total_s / size)), 0)
    return size * 10.0**-digits, lambda units: f"{units / 10**digits:,.{digits}f} {name}"
