"""Bills as clouds write them, small enough to add up by hand."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOCUS_ROW: Mapping[str, str] = {
    "BilledCost": "1.25",
    "EffectiveCost": "1.20",
    "ContractedCost": "1.30",
    "ListCost": "1.50",
    "BillingCurrency": "USD",
    "ChargeCategory": "Usage",
    "ChargePeriodStart": "2026-11-02T00:00:00Z",
    "ChargePeriodEnd": "2026-11-02T01:00:00Z",
    "ProviderName": "Amazon Web Services",
    "ServiceName": "Amazon Elastic Compute Cloud",
    "SkuId": "ABC123",
    "RegionId": "us-east-1",
    "Tags": '{"project": "resnet"}',
    "x_UsageType": "USE1-BoxUsage:g5.xlarge",
}
GCP_ROW: Mapping[str, Any] = {
    "billing_account_id": "0A0A0A-0A0A0A-0A0A0A",
    "service": {"id": "6F81-5844-456A", "description": "Compute Engine"},
    "sku": {"id": "1234-ABCD", "description": "A2 Instance Core"},
    "usage_start_time": "2026-11-02 00:00:00 UTC",
    "usage_end_time": "2026-11-02 01:00:00 UTC",
    "project": {"id": "acme-training"},
    "labels": [{"key": "project", "value": "bert"}],
    "system_labels": [{"key": "compute.googleapis.com/machine_spec", "value": "a2-highgpu-1g"}],
    "location": {"region": "us-central1"},
    "cost": 3.5,
    "currency": "USD",
    "credits": [{"name": "CUD", "amount": -0.5}, {"name": "Promotion", "amount": -0.25}],
    "cost_type": "regular",
    "cost_at_list": 4.0,
}


def focus_text(*rows: Mapping[str, str]) -> str:
    """A CSV file of these rows; columns are those of the first."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def write_focus(path: Path, *changes: Mapping[str, str]) -> Path:
    """A FOCUS file: a row for each change of the usual one."""
    path.write_text(focus_text(*(dict(FOCUS_ROW) | dict(change) for change in changes or ({},))))
    return path


def write_gcp(path: Path, *changes: Mapping[str, Any]) -> Path:
    """Google's export as one JSON object a line."""
    rows = [json.dumps(dict(GCP_ROW) | dict(change)) for change in changes or ({},)]
    path.write_text("\n".join(rows) + "\n")
    return path


def without(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """A row without some columns."""
    return {name: value for name, value in row.items() if name not in names}
