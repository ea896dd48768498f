"""Findings of ``advisor doctor``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from advisor.report.document import Document, Row, Table, Tone, columns
from advisor.service.checks import Check

_TONES = {"ok": Tone.PLAIN, "note": Tone.DOUBTFUL, "broken": Tone.BAD}


def checks_document(checks: Sequence[Check]) -> Document:
    """Every finding."""
    rows = tuple(
        Row((check.name, check.state, tuple(check.detail.split("\n"))), _TONES[check.state])
        for check in checks
    )
    facts = {"checks": [asdict(check) for check in checks]}
    return Document(facts=facts, blocks=(Table(columns=columns("Check", "State", "Detail"), rows=rows),))
