"""Offers as a document, and as JSON by contract (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from advisor.core.findings import Finding
from advisor.core.values import Offer, Price, Quantiles
from advisor.report.cells import USD_PER_H, Cell
from advisor.report.document import NARROW, Column, Document, Lines, Row, Table, columns
from advisor.report.quotes import price_json, quote_text
from advisor.report.words import warnings_json

COLUMNS = (
    *columns("Where", "Zone", "GPUs", "Market"),
    Column("USD/h", USD_PER_H),
    Column("Likely (p90)", USD_PER_H),
    Column("USD/h GPU", USD_PER_H),
    *columns("Quote", "As of", "Source"),
)
NARROW_COLUMNS = (
    Column("Where"),
    Column("GPUs", wraps=False),
    Column("Likely (p90)", USD_PER_H, wraps=False),
    Column("Quote", wraps=False),
)


def offers_document(
    offers: Sequence[Offer], prices: Sequence[Price], warnings: Sequence[Finding]
) -> Document:
    """Offers in the given order, each with what it will likely cost, its date and its source."""
    priced = list(zip(offers, prices, strict=True))
    narrow = Table(columns=NARROW_COLUMNS, rows=tuple(Row(_narrow(*one)) for one in priced))
    sources = tuple(f"from: {source}" for source in dict.fromkeys(offer.source for offer in offers))
    table = Table(
        columns=COLUMNS,
        rows=tuple(Row(_wide(*one)) for one in priced),
        narrow=(narrow, Lines(sources)),
        narrow_below=NARROW,
        keeps_words=False,
    )
    facts = {"offers": [_json(*one) for one in priced], **warnings_json(warnings)}
    return Document(facts=facts, blocks=(table,), title="What is for rent")


def _json(offer: Offer, price: Price) -> Mapping[str, object]:
    return {
        "provider": offer.provider,
        "instance_type": offer.instance_type,
        "region": offer.region,
        "zone": offer.zone,
        "gpu": offer.gpu,
        "num_gpus": offer.num_gpus,
        "market": offer.market,
        "usd_per_h": offer.usd_per_h,
        "price": price_json(price),
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


def _narrow(offer: Offer, price: Price) -> tuple[Cell, ...]:
    where, zone, gpus, market, _, likely, _, quote, _, _ = _wide(offer, price)
    return (str(where), f"{zone} {market}"), gpus, likely, quote


def _wide(offer: Offer, price: Price) -> tuple[Cell, ...]:
    usd = price.usd_per_h
    return (
        f"{offer.provider} {offer.instance_type}",
        offer.zone or offer.region,
        f"{offer.num_gpus} x {offer.gpu}",
        offer.market,
        f"~{USD_PER_H.words(offer.usd_per_h)}" if price.is_guess else offer.usd_per_h,
        Quantiles(p50=usd.p50, p90=usd.p90),
        usd.p50 / offer.num_gpus,
        quote_text(price),
        offer.retrieved_at,
        offer.source,
    )
