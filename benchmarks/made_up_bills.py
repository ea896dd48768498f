"""Bills of made-up runs, as AWS and Google write them, with what real bills have of trouble."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from advisor.store.ledger import Run

FOCUS_COLUMNS = (
    "BilledCost", "EffectiveCost", "ContractedCost", "ListCost", "BillingCurrency", "ChargeCategory",
    "ChargePeriodStart", "ChargePeriodEnd", "ProviderName", "ServiceName", "SkuId", "RegionId", "Tags",
    "x_InstanceType",
)  # fmt: skip


def write_focus(path: Path, runs: Sequence[Run], source: random.Random) -> None:
    """A FOCUS file: each run's charge with a little idle time, a disk a day, tax, other money, torn rows."""
    with path.open("w", newline="") as file:
        rows = csv.DictWriter(file, FOCUS_COLUMNS, restval="")
        rows.writeheader()
        for number, run in enumerate(runs):
            cost = (run.cost_usd or 0.0) * source.uniform(1.0, 1.12)
            common = {
                "BillingCurrency": "USD",
                "ChargePeriodStart": f"{run.started_at:%Y-%m-%dT%H:00:00Z}",
                "ChargePeriodEnd": f"{run.started_at + timedelta(hours=1):%Y-%m-%dT%H:00:00Z}",
                "ProviderName": "AWS",
                "RegionId": run.region or "",
                "Tags": json.dumps({"project": run.project}) if number % 50 else "",
            }
            rows.writerow({
                **common, "BilledCost": f"{cost:.10f}", "EffectiveCost": f"{cost:.10f}",
                "ContractedCost": f"{cost:.10f}", "ListCost": f"{cost * 1.05:.10f}",
                "ChargeCategory": "Usage", "ServiceName": "Amazon Elastic Compute Cloud",
                "SkuId": f"SKU{run.instance_type}",
                "x_InstanceType": run.instance_type or "",
            })  # fmt: skip
            if number % 5 == 0:
                rows.writerow({**common, "BilledCost": "0.3712345678", "ChargeCategory": "Usage",
                               "ServiceName": "Amazon Simple Storage Service"})  # fmt: skip
            if number % 100 == 0:
                rows.writerow({**common, "BilledCost": f"{cost * 0.08:.10f}", "ChargeCategory": "Tax",
                               "ServiceName": "Tax"})  # fmt: skip
            if number % 400 == 1:
                rows.writerow({**common, "BilledCost": "12.50", "BillingCurrency": "EUR",
                               "ChargeCategory": "Usage", "ServiceName": "AWS Support"})  # fmt: skip
            if number % 500 == 2:
                rows.writerow({**common, "BilledCost": "twelve", "ChargeCategory": "Usage",
                               "ServiceName": "AWS Support"})  # fmt: skip


def write_gcp_export(path: Path, runs: Sequence[Run], source: random.Random) -> None:
    """Google's detailed export, one JSON object a line, with credits; the last line is cut off."""
    lines = []
    for run in runs:
        cost = (run.cost_usd or 0.0) * source.uniform(1.0, 1.05)
        credit = [{"name": "Sustained use", "amount": round(-0.1 * cost, 6)}] if source.random() < 0.3 else []
        lines.append(json.dumps({
            "service": {"id": "6F81-5844-456A", "description": "Compute Engine"},
            "sku": {"id": "1234-ABCD", "description": "A2 Instance Core"},
            "usage_start_time": f"{run.started_at:%Y-%m-%d %H:00:00} UTC",
            "usage_end_time": f"{run.started_at + timedelta(hours=1):%Y-%m-%d %H:00:00} UTC",
            "labels": [{"key": "project", "value": run.project}],
            "system_labels": [{"key": "compute.googleapis.com/machine_spec", "value": run.instance_type}],
            "location": {"region": run.region}, "cost": round(cost, 6), "currency": "USD",
            "credits": credit, "cost_type": "regular", "cost_at_list": round(cost * 1.2, 6),
        }))  # fmt: skip
    path.write_text("\n".join([*lines, '{"service": {"descr']))
