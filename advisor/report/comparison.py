"""Two plans line by line, with what decides above them and the notes on either below."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from advisor.core.units import format_signed
from advisor.core.values import Option
from advisor.report.cells import NOTHING
from advisor.report.comparison_lines import Figure, Group, Line, groups_of
from advisor.report.document import Column, Document, Row, Section, Table, Tone, columns
from advisor.report.options import gpus, option_alone, where
from advisor.report.words import finding_json, sentence, sentences, warnings_json
from advisor.service.recommend.comparing import CompareAnswer
from recommender.comparison import PlanComparison

_COLUMNS = (Column("", wraps=False), Column("A"), Column("B"), Column("B beside A", wraps=False))
# Where all four would break words, the difference stands below B.
_NARROW = (Column(""), Column("A"), Column("B, and beside A"))
_SHEET = columns("group", "line", "a", "b", "difference", "ratio")


def comparison_document(answer: CompareAnswer) -> Document:
    """What decides, every line, and the notes on either plan."""
    comparison = answer.comparison
    groups = tuple(groups_of(comparison))
    verdict = sentence(comparison.verdict)
    return Document(
        facts={**_facts(comparison, groups), **warnings_json(answer.warnings)},
        blocks=(
            Section(f"{verdict[:1].upper()}{verdict[1:]}.", ()),
            _table(groups),
            *_notes(comparison),
        ),
        sheet=lambda: _sheet(groups),
        is_letter=True,
        title=f"{_name(comparison.a)} beside {_name(comparison.b)}",
    )


def _name(option: Option) -> str:
    return f"{gpus(option)}, {where(option)}"


def _table(groups: Sequence[Group]) -> Table:
    return Table(
        columns=_COLUMNS,
        rows=tuple(_rows(groups, is_narrow=False)),
        narrow=(Table(columns=_NARROW, rows=tuple(_rows(groups, is_narrow=True))),),
    )


def _rows(groups: Iterable[Group], *, is_narrow: bool) -> Iterator[Row]:
    """Under the title of each group its lines."""
    for group in groups:
        yield Row((group.title, *[""] * (2 if is_narrow else 3)), Tone.BEST)
        for line in group.lines:
            a, b, beside = _text(line, line.a), _text(line, line.b), _beside(line)
            below = (b, beside) if beside and line.difference else b
            last = (below,) if is_narrow else (b, beside)
            yield Row((f"  {line.name}", a, *last))


def _text(line: Line, figure: Figure) -> str:
    if figure is None:
        return NOTHING
    return figure if isinstance(figure, str) else line.kind.words(figure)


def _beside(line: Line) -> str:
    """``+1 h 5 min (1.46 x)``; empty for words that differ, and for what never ends."""
    if line.a == line.b:
        return "same"
    difference, ratio = line.difference, line.ratio
    if difference is None:
        return ""
    signed = format_signed(difference, line.kind.words)
    return signed if ratio is None or math.isinf(ratio) else f"{signed} ({ratio:.2f} x)"


def _notes(comparison: PlanComparison) -> Iterator[Section]:
    for name, option in (("A", comparison.a), ("B", comparison.b)):
        changes = [f"to change: {text}" for text in sentences(option.script_changes)]
        if notes := (*changes, *sentences(option.reasons)):
            yield Section(f"Notes on {name}, {_name(option)}", notes)


def _sheet(groups: Iterable[Group]) -> Table:
    """Every line as plain numbers."""
    cells = (
        (group.title, line.key, line.a, line.b, line.difference, line.ratio)
        for group in groups
        for line in group.lines
    )
    rows = (Row(tuple("" if cell is None else str(cell) for cell in row)) for row in cells)
    return Table(columns=_SHEET, rows=tuple(rows))


def _facts(comparison: PlanComparison, groups: Iterable[Group]) -> Mapping[str, object]:
    """``advisor compare --format json``, see docs/json.md."""
    return {
        "a": option_alone(comparison.a),
        "b": option_alone(comparison.b),
        "lines": [_line_json(group, line) for group in groups for line in group.lines],
        "p_a_cheaper": comparison.p_a_cheaper,
        "p_a_sooner": comparison.p_a_sooner,
        "value_of_time_usd_per_h": comparison.worth.hour_usd,
        "even_usd_per_h": comparison.even_usd_per_h,
        "whole": {name: asdict(whole) for name, whole in zip(("a", "b"), comparison.whole, strict=True)},
        "verdict": sentence(comparison.verdict),
        "verdict_finding": finding_json(comparison.verdict),
    }


def _line_json(group: Group, line: Line) -> Mapping[str, object]:
    return {
        "group": group.title,
        "line": line.key,
        "a": line.a,
        "b": line.b,
        "difference": line.difference,
        "ratio": line.ratio,
    }
