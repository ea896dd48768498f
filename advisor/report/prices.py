"""Sources, refreshes and doubts about prices, as tables and as JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from advisor.report.plain import print_lines, print_text
from advisor.report.rows import Format, print_rows, to_json

if TYPE_CHECKING:
    from advisor.pricing.catalog.doubts import Finding
    from advisor.pricing.refresh.building import Built
    from advisor.pricing.refresh.pulling import Kept
    from advisor.pricing.refresh.states import SourceState

_FEW = 3
_LONG = 400


def print_sources(states: Sequence[SourceState], warnings: Sequence[str], output: Format) -> None:
    """One row a source; JSON and the lines below the table hold the gaps."""
    if output is Format.JSON:
        print_text(to_json({"sources": [_state_json(state) for state in states], "warnings": warnings}))
        return
    columns = ("Source", "Kind", "Providers", "Offers", "Newest", "Oldest", "Gaps", "Credentials")
    print_rows(columns, list(map(_state_row, states)), output, right=frozenset({"Offers", "Gaps"}))
    if output is Format.TABLE:
        for state in states:
            for gap in _shortened(state.gaps):
                print_lines(f"{state.name}: {gap}")


def _state_json(state: SourceState) -> Mapping[str, Any]:
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


def _state_row(state: SourceState) -> list[str]:
    return [
        state.name,
        "live" if state.is_live else "dated",
        ", ".join(state.providers) or "-",
        f"{state.num_offers:,}",
        _moment(state.newest),
        _moment(state.oldest),
        str(len(state.gaps)),
        state.credentials,
    ]


def _moment(moment: datetime | None) -> str:
    return "-" if moment is None else f"{moment:%Y-%m-%d}"


def _shortened(gaps: Sequence[str]) -> list[str]:
    """The first few; of one that is about very many places, the beginning."""
    few = [gap if len(gap) <= _LONG else f"{gap[:_LONG]} ... (--json has it whole)" for gap in gaps[:_FEW]]
    return few if len(gaps) <= _FEW else [*few, f"{len(gaps) - _FEW} more gaps: --json lists them"]


def print_refresh(kept: Sequence[Kept], output: Format) -> None:
    """What became of each source; JSON tells it of each part."""
    if output is Format.JSON:
        print_text(to_json({"parts": [asdict(part) for part in kept], "warnings": []}))
        return
    by_source: dict[str, list[Kept]] = {}
    for part in kept:
        by_source.setdefault(part.source, []).append(part)
    columns = ("Source", "Parts", "Failed", "Offers", "History", "Gaps")
    print_rows(columns, list(map(_refresh_row, by_source.values())), output, right=frozenset(columns[1:]))


def _refresh_row(parts: Sequence[Kept]) -> list[str]:
    numbers = (
        len(parts),
        sum(part.failure is not None for part in parts),
        sum(part.num_offers for part in parts),
        sum(part.num_points for part in parts),
        sum(len(part.gaps) for part in parts),
    )
    return [parts[0].source, *(f"{number:,}" for number in numbers)]


def print_findings(found: Sequence[Finding], output: Format) -> None:
    """One row a doubt."""
    if output is Format.JSON:
        print_text(to_json({"findings": [asdict(finding) for finding in found], "warnings": []}))
        return
    if not found and output is Format.TABLE:
        print_lines("nothing looks wrong")
        return
    rows = [
        [one.doubt, f"{one.provider} {one.instance_type or ''}".strip(), one.place, one.detail]
        for one in found
    ]
    print_rows(("Doubt", "Machine", "Place", "Figures"), rows, output)


def print_built(built: Built, output: Format) -> None:
    """Where a snapshot went, and the setting that makes it count."""
    if output is Format.JSON:
        body = {"folder": str(built.folder), "offers": built.num_offers, "left_out": built.left_out}
        print_text(to_json({"snapshot": body, "warnings": []}))
        return
    print_lines(f"{built.num_offers:,} prices in {built.folder}")
    if built.left_out:
        print_lines(
            "left out, since the catalog does not know the machine or the files cannot tell how it is billed:"
            f" {', '.join(built.left_out)}"
        )
    print_lines(
        f"to use it: prices: {{options: {{snapshot: {{folder: {built.folder.resolve()}}}}}}} in the settings"
    )
