"""Prices in words and as documents: offers, their sources, their history and what capacity can be had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from advisor.core.findings import Finding
from advisor.core.iterables import grouped
from advisor.core.values import Offer, Plan, Price, Quantiles, QuoteKind
from advisor.report import document as doc
from advisor.report.words import warnings_json

if TYPE_CHECKING:
    from advisor.pricing.price_checks import DoubtfulPrice as PriceDoubt
    from advisor.pricing.price_history import PriceSeries
    from advisor.pricing.refresh import RefreshedPart
    from advisor.pricing.source_registry import SourceState
    from advisor.pricing.sources.aws.account import PlacementScore, VcpuQuota
    from advisor.pricing.sources.snapshot import Built


# Of these the age says nothing.
_TIMELESS = (QuoteKind.AGREED, QuoteKind.LIVE)


def quote_text(price: Price) -> str:
    """``dated, 111 d``: the kind of the quote and its age."""
    return price.kind if price.kind in _TIMELESS else f"{price.kind}, {price.age_days:.0f} d"


def rent_text(plan: Plan) -> str:
    """``3.67, 111 d``; ``~1.20, 512 d`` for a guess; empty where the price is unknown."""
    if plan.usd_per_h is None:
        return ""
    usd = f"{plan.usd_per_h:,.2f}"
    if plan.price is None:
        return usd
    trust = plan.price.kind if plan.price.kind in _TIMELESS else f"{plan.price.age_days:.0f} d"
    return f"{'~' if plan.price.is_guess else ''}{usd}, {trust}"


def price_json(price: Price | None) -> Mapping[str, object] | None:
    """Quantiles of USD per hour, with the kind of the quote and its age."""
    if price is None:
        return None
    return {**asdict(price.usd_per_h), "kind": price.kind, "age_days": price.age_days}


# As many as a reader tells apart.
MOST_BANDS = 8


def places_chart(series: Sequence[PriceSeries], until: datetime) -> Iterator[doc.Block]:
    """A line for the cheapest zone of each machine and region, the cheapest first; nothing for none."""
    if not series:
        return
    regions = [tuple(zones) for _, zones in groupby(sorted(series, key=_region), _region)]
    cheapest = sorted(regions, key=_last_usd_per_h)[:MOST_BANDS]
    yield doc.Chart(
        title="Price per hour, and how far zones of a region differ",
        x=doc.Axis(doc.DAY),
        y=doc.Axis(doc.USD_PER_H, title="USD per hour"),
        series=tuple(map(_curve, cheapest)),
        until=until.timestamp(),
    )
    num_left = len(regions) - len(cheapest)
    if num_left:
        yield doc.Lines((f"{num_left} dearer are not drawn: --region, --market or --gpu narrow them.",))


def _region(one: PriceSeries) -> tuple[str, ...]:
    return one.provider, one.instance_type, one.region, one.market, one.source


def _last_usd_per_h(zones: Sequence[PriceSeries]) -> float:
    return min(zone.points[-1].usd_per_h for zone in zones)


def _curve(zones: Sequence[PriceSeries]) -> doc.Series:
    one = zones[0]
    where = one.zone or one.region if len(zones) == 1 else f"{one.region}, {len(zones)} zones"
    name = f"{one.provider} {one.instance_type} {one.market} {where} ({one.source})"
    moments = list(_ranges(zones))
    return doc.Series(
        f"{name}, now {_last_usd_per_h(zones):.4f} USD/h",
        tuple((at, low) for at, (low, _) in moments),
        tuple(_detail(name, at, span, len(zones) > 1) for at, span in moments),
    )


def _ranges(zones: Sequence[PriceSeries]) -> Iterator[tuple[float, doc.Range]]:
    """At each change of any zone, the least and the highest price that is in force somewhere."""
    changes = [
        (point.observed_at.timestamp(), place, point.usd_per_h)
        for place, zone in enumerate(zones)
        for point in zone.points
    ]
    in_force: dict[int, float] = {}
    for at, together in groupby(sorted(changes), lambda change: change[0]):
        in_force |= {place: usd_per_h for _, place, usd_per_h in together}
        yield at, (min(in_force.values()), max(in_force.values()))


def _detail(name: str, at: float, span: doc.Range, has_zones: bool) -> doc.Detail:
    low, high = map(doc.USD_PER_H.words, span)
    price = f"{low} .. {high}" if has_zones and low != high else low
    return doc.Detail(
        label=f"{name}\n{doc.DAY.words(at)}: {price} USD/h", y_range=span if has_zones else None
    )


HISTORY_COLUMNS = (
    *doc.columns("Machine", "Place", "Market", "Source", "Since", ("Changes", doc.PLAIN), wraps=False),
    *doc.columns("First", "Last", "Lowest", "Median", "Highest", kind=doc.USD_PER_H, wraps=False),
)
# Two lines a row: side by side, a machine, its place and seven figures take 130 columns.
NARROW_HISTORY_COLUMNS = (
    doc.Column("Machine,\nplace"),
    doc.Column("Since,\nchanges", doc.PLAIN, wraps=False),
    *doc.columns("First,\nlast", "Lowest,\nhighest", "Median", kind=doc.USD_PER_H, wraps=False),
)
MOST_CURVES = 8


def history_document(series: Sequence[PriceSeries], until: datetime, *, plot: bool = False) -> doc.Document:
    """A row a machine, place and source, in USD/h, or curves (``plot``); the facts hold every point."""
    cheapest = sorted(series, key=lambda one: one.points[-1].usd_per_h)[:MOST_CURVES]
    chart = doc.Chart(
        x=doc.Axis(doc.DAY),
        y=doc.Axis(doc.USD_PER_H),
        series=tuple(map(_history_curve, cheapest)),
        until=until.timestamp(),
    )
    num_left = len(series) - len(cheapest)
    left = f"{num_left} dearer series are not drawn: --region, --market or --gpu narrow them."
    blocks = ((chart, doc.Lines((left,))) if num_left else (chart,)) if plot else (_table(series, until),)
    return doc.Document(
        facts=doc.Late(lambda: {"series": [_json(one, until) for one in series], "warnings": []}),
        blocks=blocks,
        title="How prices changed",
        page=lambda: (*places_chart(series, until), _table(series, until)),
    )


def _table(series: Sequence[PriceSeries], until: datetime) -> doc.Table:
    rows = [_cells(one, until) for one in series]
    narrow = doc.Table(columns=NARROW_HISTORY_COLUMNS, rows=tuple(narrow for _, narrow in rows))
    return doc.Table(columns=HISTORY_COLUMNS, rows=tuple(wide for wide, _ in rows), narrow=(narrow,))


def _history_curve(one: PriceSeries) -> doc.Series:
    now = f"{one.market}, now {one.points[-1].usd_per_h:.4f} USD/h ({one.source})"
    name = f"{one.provider} {one.instance_type} {one.zone or one.region} {now}"
    return doc.Series(name, tuple((point.observed_at.timestamp(), point.usd_per_h) for point in one.points))


def _cells(one: PriceSeries, until: datetime) -> tuple[doc.Row, doc.Row]:
    """Of the wide table, and of the narrow one."""
    first, last, median = one.points[0], one.points[-1], one.median_usd_per_h(until)
    machine, place = f"{one.provider} {one.instance_type}", one.zone or one.region
    since, ends = (first.observed_at, len(one.points) - 1), (first.usd_per_h, last.usd_per_h)
    lowest, highest = one.lowest_usd_per_h, one.highest_usd_per_h
    wide = machine, place, one.market, one.source, *since, *ends, lowest, median, highest
    source = "" if one.source == one.provider else f" ({one.source})"
    names = f"{machine}{source}", f"{place} {one.market}"
    return doc.Row(wide), doc.Row((names, since, ends, (lowest, highest), median))


def _json(one: PriceSeries, until: datetime) -> dict[str, object]:
    return {
        **doc.facts_of(one, "provider instance_type region zone market source lowest_usd_per_h"),
        "median_usd_per_h": one.median_usd_per_h(until),
        "highest_usd_per_h": one.highest_usd_per_h,
        "points": [doc.facts_of(point, "observed_at usd_per_h") for point in one.points],
    }


_FEW = 3
_LONG = 400


_SOURCE_COLUMNS = doc.columns(
    "Source",
    "Kind",
    "Providers",
    ("Offers", doc.COUNT),
    "Newest",
    "Oldest",
    ("Gaps", doc.PLAIN),
    "Credentials",
)
_REFRESH_COLUMNS = (
    doc.Column("Source"),
    *doc.columns("Parts", "Failed", "Offers", "History", "Gaps", kind=doc.COUNT),
)
_FINDING_COLUMNS = doc.columns("Doubt", "Machine", "Place", "Figures")


def sources_document(states: Sequence[SourceState], warnings: Sequence[str]) -> doc.Document:
    """One row a source, and the first of its gaps; the facts hold all of them."""
    gaps = tuple(f"{state.name}: {gap}" for state in states for gap in _shortened(state.gaps))
    table = doc.Table(columns=_SOURCE_COLUMNS, rows=tuple(doc.Row(_state_cells(state)) for state in states))
    return doc.Document(
        facts={
            "sources": [
                doc.facts_of(one, "name is_live providers")
                | {"offers": one.num_offers, **doc.facts_of(one, "newest oldest gaps credentials")}
                for one in states
            ],
            "warnings": warnings,
        },
        blocks=(table, doc.Lines(gaps)) if gaps else (table,),
    )


def _state_cells(state: SourceState) -> tuple[doc.Cell, ...]:
    return (
        state.name,
        "live" if state.is_live else "dated",
        ", ".join(state.providers) or None,
        state.num_offers,
        state.newest,
        state.oldest,
        len(state.gaps),
        state.credentials,
    )


def _shortened(gaps: Sequence[str]) -> list[str]:
    """The first few; of one that is about very many places, the beginning."""
    few = [gap if len(gap) <= _LONG else f"{gap[:_LONG]} ... (--json has it whole)" for gap in gaps[:_FEW]]
    return few if len(gaps) <= _FEW else [*few, f"{len(gaps) - _FEW} more gaps: --json lists them"]


def refresh_document(kept: Sequence[RefreshedPart]) -> doc.Document:
    """What became of each source; the facts hold each part."""
    by_source = grouped(kept, lambda part: part.source)
    rows = tuple(doc.Row(_refresh_cells(parts)) for parts in by_source.values())
    return doc.Document(
        facts={"parts": [asdict(part) for part in kept], "warnings": []},
        blocks=(doc.Table(columns=_REFRESH_COLUMNS, rows=rows),),
    )


def _refresh_cells(parts: Sequence[RefreshedPart]) -> tuple[doc.Cell, ...]:
    return (
        parts[0].source,
        len(parts),
        sum(part.failure is not None for part in parts),
        sum(part.num_offers for part in parts),
        sum(part.num_points for part in parts),
        sum(len(part.gaps) for part in parts),
    )


def findings_document(doubts: Sequence[PriceDoubt]) -> doc.Document:
    """One row a doubt."""
    names = [f"{one.provider} {one.instance_type or ''}".strip() for one in doubts]
    cells = [(one.doubt, name, one.place, one.detail) for one, name in zip(doubts, names, strict=True)]
    table = doc.Table(columns=_FINDING_COLUMNS, rows=tuple(map(doc.Row, cells)))
    return doc.Document(
        facts={"findings": [asdict(finding) for finding in doubts], "warnings": []},
        blocks=(table if doubts else doc.Lines(("nothing looks wrong",)),),
        sheet=table,
    )


def built_document(built: Built) -> doc.Document:
    """Where a snapshot went, and the setting that makes it count."""
    snapshot = f"{{snapshot: {{folder: {built.folder.resolve()}}}}}"
    lines = [f"{built.num_offers:,} prices in {built.folder}"]
    if built.left_out:
        lines.append(
            "left out, since the catalog does not know the machine or the files cannot tell how it is billed:"
            f" {', '.join(built.left_out)}"
        )
    lines.append(f"to use it: prices: {{options: {snapshot}}} in the settings")
    facts = {"folder": str(built.folder), "offers": built.num_offers, "left_out": built.left_out}
    return doc.Document(facts={"snapshot": facts, "warnings": []}, blocks=(doc.Lines(tuple(lines)),))


_COLUMNS = (*doc.columns("What", "Region", "Zone or families", "Market"), doc.Column("Value", doc.PLAIN))


def capacity_document(
    scores: Sequence[PlacementScore], quotas: Sequence[VcpuQuota], warnings: Sequence[Finding]
) -> doc.Document:
    """Scores first, best first; then how many vCPUs of each family may run at once."""
    rows = [doc.Row(("score", score.region, score.zone, "spot", f"{score.score} of 10")) for score in scores]
    rows += [
        doc.Row(("quota", quota.region, " ".join(quota.families), quota.market, f"{quota.num_vcpus} vCPU"))
        for quota in quotas
    ]
    facts = {"scores": list(map(asdict, scores)), "quotas": list(map(asdict, quotas))}
    return doc.Document(
        facts={**facts, **warnings_json(warnings)}, blocks=(doc.Table(columns=_COLUMNS, rows=tuple(rows)),)
    )


COLUMNS = (
    *doc.columns("Where", "Zone", "GPUs", "Market"),
    *doc.columns("USD/h", "Likely (p90)", "USD/h GPU", kind=doc.USD_PER_H),
    *doc.columns("Quote", "As of", "Source"),
)
# A row has two lines here, so that machines and GPUs need not be broken.
NARROW_COLUMNS = (
    *doc.columns("Where", "GPUs"),
    doc.Column("Likely (p90)", doc.USD_PER_H, wraps=False),
    doc.Column("Quote"),
)


def offers_document(
    offers: Sequence[Offer], prices: Sequence[Price], warnings: Sequence[Finding]
) -> doc.Document:
    """Offers in the given order, each with what it will likely cost, its date and its source."""
    priced = list(zip(offers, prices, strict=True))
    narrow = doc.Table(columns=NARROW_COLUMNS, rows=tuple(doc.Row(_narrow_offer(*one)) for one in priced))
    sources = tuple(f"from: {source}" for source in dict.fromkeys(offer.source for offer in offers))
    table = doc.Table(
        columns=COLUMNS,
        rows=tuple(doc.Row(_wide_offer(*one)) for one in priced),
        narrow=(narrow, doc.Lines(sources)),
        narrow_below=doc.NARROW,
        keeps_words=False,
    )
    facts = {"offers": [_offer_json(*one) for one in priced], **warnings_json(warnings)}
    return doc.Document(facts=facts, blocks=(table,), title="What is for rent")


def _offer_json(offer: Offer, price: Price) -> Mapping[str, object]:
    return {
        **doc.facts_of(offer, "provider instance_type region zone gpu num_gpus market usd_per_h"),
        "price": price_json(price),
        **doc.facts_of(
            offer, "list_usd_per_h contracted_usd_per_h effective_usd_per_h spot_usd_per_h includes"
        ),
        **doc.facts_of(offer, "architecture minimum_billed_s retrieved_at source"),
    }


def _narrow_offer(offer: Offer, price: Price) -> tuple[doc.Cell, ...]:
    where, zone, gpus, market, _, likely, _, quote, _, _ = _wide_offer(offer, price)
    return (str(where), f"{zone} {market}"), gpus, likely, quote


def _wide_offer(offer: Offer, price: Price) -> tuple[doc.Cell, ...]:
    usd = price.usd_per_h
    return (
        f"{offer.provider} {offer.instance_type}",
        offer.zone or offer.region,
        f"{offer.num_gpus} x {offer.gpu}",
        offer.market,
        f"~{doc.USD_PER_H.words(offer.usd_per_h)}" if price.is_guess else offer.usd_per_h,
        Quantiles(p50=usd.p50, p90=usd.p90),
        usd.p50 / offer.num_gpus,
        quote_text(price),
        offer.retrieved_at,
        offer.source,
    )
