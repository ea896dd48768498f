"""Offers as a document, and as JSON by contract (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from advisor.core.findings import Finding
from advisor.core.values import Offer
from advisor.report.cells import USD_PER_H, Cell
from advisor.report.document import NARROW, Column, Document, Lines, Row, Table, columns
from advisor.report.words import warnings_json

COLUMNS = (
    *columns("Where", "Zone", "GPUs", "Market"),
    *columns("USD/h", "USD/h GPU", kind=USD_PER_H),
    *columns("As of", "Source"),
)
NARROW_COLUMNS = (
    Column("Where", wraps=False),
    Column("Place"),
    Column("GPUs", wraps=False),
    Column("USD/h", USD_PER_H, wraps=False),
    Column("As of", wraps=False),
)


def offers_document(offers: Sequence[Offer], warnings: Sequence[Finding]) -> Document:
    """Offers in the given order, each with its date and source."""
    narrow = Table(columns=NARROW_COLUMNS, rows=tuple(Row(_narrow(offer)) for offer in offers))
    sources = tuple(f"from: {source}" for source in dict.fromkeys(offer.source for offer in offers))
    table = Table(
        columns=COLUMNS,
        rows=tuple(Row(_wide(offer)) for offer in offers),
        narrow=(narrow, Lines(sources)),
        narrow_below=NARROW,
        keeps_words=False,
    )
    facts = {"offers": [_json(offer) for offer in offers], **warnings_json(warnings)}
    return Document(facts=facts, blocks=(table,))


def _json(offer: Offer) -> Mapping[str, object]:
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


def _narrow(offer: Offer) -> tuple[Cell, ...]:
    where, zone, gpus, market, usd_per_h, _, day, _ = _wide(offer)
    return where, f"{zone} {market}", gpus, usd_per_h, day


def _wide(offer: Offer) -> tuple[Cell, ...]:
    return (
        f"{offer.provider} {offer.instance_type}",
        offer.zone or offer.region,
        f"{offer.num_gpus} x {offer.gpu}",
        offer.market,
        offer.usd_per_h,
        offer.usd_per_h / offer.num_gpus,
        offer.retrieved_at,
        offer.source,
    )
