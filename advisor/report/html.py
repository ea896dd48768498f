"""Values as plain HTML tables for notebooks; every text in them is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from advisor.core.values import Recommendation, Trace
from advisor.report.options import COLUMNS, RIGHT, table_rows, where
from advisor.report.plain import few, shown
from advisor.report.trace import rows_of
from advisor.report.words import rule_text, sentences

MOST_ROWS = 15
# Only what reads well on light and dark pages alike.
_STYLES = {"recommended": "font-weight: bold", "frontier": "", "": "opacity: 0.75"}
_REMOVED = "opacity: 0.5"


def recommendation_html(recommendation: Recommendation) -> str:
    """The table of ``advisor recommend``, the frontier first, with what is recommended and why."""
    shown = table_rows(recommendation, MOST_ROWS)
    rows = [[cells[name] for name in COLUMNS] for cells in shown]
    styles = [_STYLES.get(cells["Status"], _REMOVED) for cells in shown]
    hidden = len(recommendation.options) - len(shown)
    notes = [f"{hidden} more options are not shown."] if hidden else []
    return "\n".join(
        [
            _table(COLUMNS, rows, title=_title(recommendation), right=RIGHT, styles=styles),
            *(f"<p>{_plain(note)}</p>" for note in notes),
            _list("Warnings", sentences(recommendation.warnings)),
        ]
    ).rstrip()


def trace_html(trace: Trace) -> str:
    """What a trace holds, in short."""
    rows = rows_of(trace)
    table = _table(("Trace", ""), rows, title=trace.script, right=frozenset(), styles=[""] * len(rows))
    return "\n".join([table, _list("Warnings", trace.warnings)]).rstrip()


def _title(recommendation: Recommendation) -> str:
    for option in recommendation.options:
        if option.plan.id == recommendation.recommended:
            return f"Recommended: {where(option)}, {rule_text(recommendation)}"
    return "Nothing is feasible"


def _table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str,
    right: frozenset[str],
    styles: Sequence[str],
) -> str:
    aligned = [f' style="text-align: {"right" if name in right else "left"}"' for name in columns]
    head = "".join(f"<th{style}>{_plain(name)}</th>" for name, style in zip(columns, aligned, strict=True))
    lines = ["<table>", f"<caption>{_plain(title)}</caption>", f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for row, style in zip(rows, styles, strict=True):
        cells = "".join(f"<td{place}>{_plain(cell)}</td>" for cell, place in zip(row, aligned, strict=True))
        lines.append(f'<tr style="{style}">{cells}</tr>' if style else f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</tbody>", "</table>"])


def _list(title: str, texts: Sequence[str]) -> str:
    if not texts:
        return ""
    items = "\n".join(f"<li>{_plain(text)}</li>" for text in few(texts))
    return f"<p>{_plain(title)}</p>\n<ul>\n{items}\n</ul>"


def _plain(text: str) -> str:
    return escape(shown(text))
