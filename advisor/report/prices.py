"""Sources, refreshes and doubts about prices as documents, and as JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from advisor.report.cells import COUNT, PLAIN, Cell
from advisor.report.document import Column, Document, Lines, Row, Table, columns

if TYPE_CHECKING:
    from advisor.pricing.price_checks import DoubtfulPrice
    from advisor.pricing.refresh import Kept
    from advisor.pricing.source_registry import SourceState
    from advisor.pricing.sources.snapshot import Built

_FEW = 3
_LONG = 400


_SOURCE_COLUMNS = (
    *columns("Source", "Kind", "Providers"),
    Column("Offers", COUNT),
    *columns("Newest", "Oldest"),
    Column("Gaps", PLAIN),
    Column("Credentials"),
)
_REFRESH_COLUMNS = (
    Column("Source"),
    *columns("Parts", "Failed", "Offers", "History", "Gaps", kind=COUNT),
)
_FINDING_COLUMNS = columns("Doubt", "Machine", "Place", "Figures")


def sources_document(states: Sequence[SourceState], warnings: Sequence[str]) -> Document:
    """One row a source, and the first of its gaps; the facts hold all of them."""
    gaps = tuple(f"{state.name}: {gap}" for state in states for gap in _shortened(state.gaps))
    table = Table(columns=_SOURCE_COLUMNS, rows=tuple(Row(_state_cells(state)) for state in states))
    return Document(
        facts={"sources": [_state_json(state) for state in states], "warnings": warnings},
        blocks=(table, Lines(gaps)) if gaps else (table,),
    )


def _state_json(state: SourceState) -> Mapping[str, object]:
    return {
        "name": state.name,
        "is_live": state.is_live,
        "providers": state.providers,
        "offers": state.num_offers,
        "newest": state.newest.isoformat() if state.newest else None,
        "oldest": state.oldest.isoformat() if state.oldest else None,
        "gaps": state.gaps,
        "credentials": state.credentials,
    }


def _state_cells(state: SourceState) -> tuple[Cell, ...]:
    return (
        state.name,
        "live" if state.is_live else "dated",
        ", ".join(state.providers) or None,
        state.num_offers,
        state.newest,
        state.oldest,
        len(state.gaps),
        state.credentials,
    )


def _shortened(gaps: Sequence[str]) -> list[str]:
    """The first few; of one that is about very many places, the beginning."""
    few = [gap if len(gap) <= _LONG else f"{gap[:_LONG]} ... (--json has it whole)" for gap in gaps[:_FEW]]
    return few if len(gaps) <= _FEW else [*few, f"{len(gaps) - _FEW} more gaps: --json lists them"]


def refresh_document(kept: Sequence[Kept]) -> Document:
    """What became of each source; the facts hold each part."""
    by_source: dict[str, list[Kept]] = {}
    for part in kept:
        by_source.setdefault(part.source, []).append(part)
    rows = tuple(Row(_refresh_cells(parts)) for parts in by_source.values())
    return Document(
        facts={"parts": [asdict(part) for part in kept], "warnings": []},
        blocks=(Table(columns=_REFRESH_COLUMNS, rows=rows),),
    )


def _refresh_cells(parts: Sequence[Kept]) -> tuple[Cell, ...]:
    return (
        parts[0].source,
        len(parts),
        sum(part.failure is not None for part in parts),
        sum(part.num_offers for part in parts),
        sum(part.num_points for part in parts),
        sum(len(part.gaps) for part in parts),
    )


def findings_document(doubts: Sequence[DoubtfulPrice]) -> Document:
    """One row a doubt."""
    rows = tuple(
        Row((one.doubt, f"{one.provider} {one.instance_type or ''}".strip(), one.place, one.detail))
        for one in doubts
    )
    table = Table(columns=_FINDING_COLUMNS, rows=rows)
    return Document(
        facts={"findings": [asdict(finding) for finding in doubts], "warnings": []},
        blocks=(table if doubts else Lines(("nothing looks wrong",)),),
        sheet=table,
    )


def built_document(built: Built) -> Document:
    """Where a snapshot went, and the setting that makes it count."""
    snapshot = f"{{snapshot: {{folder: {built.folder.resolve()}}}}}"
    lines = [f"{built.num_offers:,} prices in {built.folder}"]
    if built.left_out:
        lines.append(
            "left out, since the catalog does not know the machine or the files cannot tell how it is billed:"
            f" {', '.join(built.left_out)}"
        )
    lines.append(f"to use it: prices: {{options: {snapshot}}} in the settings")
    facts = {"folder": str(built.folder), "offers": built.num_offers, "left_out": built.left_out}
    return Document(facts={"snapshot": facts, "warnings": []}, blocks=(Lines(tuple(lines)),))
