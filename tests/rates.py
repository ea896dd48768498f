"""Files of own rates, and what the source makes of them."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.core.errors import ConfigError
from advisor.core.values import Offer
from advisor.pricing.sources.custom import custom_source
from advisor.pricing.sources.protocol import OfferQuery

RATE: dict[str, Any] = {
    "provider": "lab",
    "instance_type": "dgx-2",
    "gpu": "NVIDIA A100-SXM4-80GB",
    "num_gpus": 8,
    "usd_per_h": 7.2,
    "as_of": "2026-11-01",
}
FULL = RATE | {
    "region": "basement",
    "zone": "rack-1",
    "market": "reserved",
    "currency": "USD",
    "minimum_billed_s": 3600,
    "billed_step_s": 60.0,
    "includes": "power, staff",
    "note": "sheet of May",
}


def write_yaml(path: Path, *rows: Any) -> Path:
    path.write_text(yaml.safe_dump(list(rows)), encoding="utf-8")
    return path


def write_csv(path: Path, *rows: dict[str, Any]) -> Path:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


WRITERS = {"rates.yaml": write_yaml, "rates.csv": write_csv}


def offers_of(*files: Path | str, query: OfferQuery | None = None) -> Sequence[Offer]:
    source = custom_source({"files": [str(file) for file in files]})
    return [offer for part in source.offers(query or OfferQuery()) for offer in part.offers]


def faults_of(*files: Path | str) -> str:
    with pytest.raises(ConfigError) as caught:
        offers_of(*files)
    assert caught.value.exit_code == 2
    return str(caught.value)


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
