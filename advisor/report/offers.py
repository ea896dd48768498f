"""Offers as a table and as JSON by contract (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from advisor.core.findings import Finding
from advisor.core.values import Offer
from advisor.report.plain import print_lines, print_text
from advisor.report.rows import Format, console, print_rows, to_json
from advisor.report.words import warnings_json

COLUMNS = ("Where", "Zone", "GPUs", "Market", "USD/h", "USD/h GPU", "As of", "Source")
RIGHT = frozenset({"USD/h", "USD/h GPU"})
NARROW_COLUMNS = ("Where", "Place", "GPUs", "USD/h", "As of")
NARROW = 110


def print_offers(offers: Sequence[Offer], warnings: Sequence[Finding], output: Format) -> None:
    """Offers to stdout in the given order, each with its date and source."""
    if output is Format.JSON:
        print_text(to_json({"offers": [_json(offer) for offer in offers], **warnings_json(warnings)}))
        return
    if output is Format.TABLE and console().width < NARROW:
        rows = [_narrow_row(offer) for offer in offers]
        print_rows(NARROW_COLUMNS, rows, output, right=RIGHT, wrapping=frozenset({"Place"}))
        for source in dict.fromkeys(offer.source for offer in offers):
            print_lines(f"from: {source}")
        return
    print_rows(COLUMNS, [_row(offer) for offer in offers], output, right=RIGHT)


def _json(offer: Offer) -> Mapping[str, Any]:
    return {
        "provider": offer.provider,
        "instance_type": offer.instance_type,
        "region": offer.region,
        "zone": offer.zone,
        "gpu": offer.gpu,
        "num_gpus": offer.num_gpus,
        "market": offer.market,
        "usd_per_h": offer.usd_per_h,
        "list_usd_per_h": offer.list_usd_per_h,
        "contracted_usd_per_h": offer.contracted_usd_per_h,
        "effective_usd_per_h": offer.effective_usd_per_h,
        "spot_usd_per_h": None if offer.spot_usd_per_h is None else asdict(offer.spot_usd_per_h),
        "includes": offer.includes,
        "architecture": offer.architecture,
        "minimum_billed_s": offer.minimum_billed_s,
        "retrieved_at": offer.retrieved_at.isoformat(),
        "source": offer.source,
    }


def _narrow_row(offer: Offer) -> list[str]:
    where, zone, gpus, market, usd, _, day, _ = _row(offer)
    return [where, f"{zone} {market}", gpus, usd, day]


def _row(offer: Offer) -> list[str]:
    return [
        f"{offer.provider} {offer.instance_type}",
        offer.zone or offer.region,
        f"{offer.num_gpus} x {offer.gpu}",
        offer.market,
        f"{offer.usd_per_h:.4f}",
        f"{offer.usd_per_h / offer.num_gpus:.4f}",
        f"{offer.retrieved_at:%Y-%m-%d}",
        offer.source,
    ]
