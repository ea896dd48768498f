"""Spot placement scores and quotas, as tables and as JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from advisor.report.plain import print_text
from advisor.report.rows import Format, print_rows, to_json

if TYPE_CHECKING:
    from advisor.pricing.sources.aws.placement import PlacementScore, VcpuQuota


def print_capacity(
    scores: Sequence[PlacementScore], quotas: Sequence[VcpuQuota], warnings: Sequence[str], output: Format
) -> None:
    """Scores first, best first; then how many vCPUs of each family may run at once."""
    if output is Format.JSON:
        body = {
            "scores": list(map(asdict, scores)),
            "quotas": list(map(asdict, quotas)),
            "warnings": warnings,
        }
        print_text(to_json(body))
        return
    rows = [["score", score.region, score.zone, "spot", f"{score.score} of 10"] for score in scores]
    rows += [
        ["quota", quota.region, " ".join(quota.families), quota.market, f"{quota.num_vcpus} vCPU"]
        for quota in quotas
    ]
    columns = ("What", "Region", "Zone or families", "Market", "Value")
    print_rows(columns, rows, output, right=frozenset({"Value"}))
