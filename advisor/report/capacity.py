"""Spot placement scores and quotas, as tables and as JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from advisor.core.findings import Finding
from advisor.report.cells import PLAIN
from advisor.report.document import Column, Document, Row, Table, columns
from advisor.report.words import warnings_json

if TYPE_CHECKING:
    from advisor.pricing.sources.aws.account import PlacementScore, VcpuQuota


_COLUMNS = (*columns("What", "Region", "Zone or families", "Market"), Column("Value", PLAIN))


def capacity_document(
    scores: Sequence[PlacementScore], quotas: Sequence[VcpuQuota], warnings: Sequence[Finding]
) -> Document:
    """Scores first, best first; then how many vCPUs of each family may run at once."""
    rows = [Row(("score", score.region, score.zone, "spot", f"{score.score} of 10")) for score in scores]
    rows += [
        Row(("quota", quota.region, " ".join(quota.families), quota.market, f"{quota.num_vcpus} vCPU"))
        for quota in quotas
    ]
    facts = {"scores": list(map(asdict, scores)), "quotas": list(map(asdict, quotas))}
    return Document(
        facts={**facts, **warnings_json(warnings)}, blocks=(Table(columns=_COLUMNS, rows=tuple(rows)),)
    )
