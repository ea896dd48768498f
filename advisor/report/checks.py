"""Findings of ``advisor doctor``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from advisor.report.document import Document, Row, Table, Tone, columns

State = Literal["ok", "note", "broken"]
_TONES = {"ok": Tone.PLAIN, "note": Tone.DOUBTFUL, "broken": Tone.BAD}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One finding; ``note`` works but could be better."""

    name: str
    state: State
    detail: str


def checks_document(checks: Sequence[Check]) -> Document:
    """Every finding."""
    rows = tuple(
        Row((check.name, check.state, tuple(check.detail.split("\n"))), _TONES[check.state])
        for check in checks
    )
    facts = {"checks": [asdict(check) for check in checks]}
    return Document(facts=facts, blocks=(Table(columns=columns("Check", "State", "Detail"), rows=rows),))
