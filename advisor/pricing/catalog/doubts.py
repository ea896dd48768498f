"""What looks wrong among prices, before anybody decides on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from advisor.core.values import Market, Offer, PricePoint
from advisor.pricing.catalog.price_drift import FLOOR_RATIO, PriceModel, load_price_model

JUMP = 0.3
"""A change by more than this share of the earlier price is told."""
ROUNDING = 1e-4
"""Spot prices are rounded to four decimals: that much above on-demand is still equal to it."""

FAR_BELOW = 0.5
"""Spot below this share of what 9 of 10 prices of its family exceed is told."""

Series = tuple[str, str, str, str, str | None, Market]


class Doubt(StrEnum):
    """What kind of thing looks wrong."""

    JUMP = "jump"
    NO_PRICE = "no price"
    MISSING_REGION = "missing region"
    SPOT_ABOVE = "spot above on-demand"
    SPOT_LOW = "spot suspiciously low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that looks wrong, where, and the figures."""

    doubt: Doubt
    provider: str
    place: str
    instance_type: str | None
    detail: str


def findings(
    offers: Sequence[Offer], before: Sequence[Offer], points: Sequence[PricePoint]
) -> tuple[Finding, ...]:
    """All that looks wrong.

    Args:
        offers: the current ones.
        before: what is known from elsewhere, such as the dated snapshot; its regions should still be there.
        points: the history, in order of time.
    """
    doubts = [*_no_prices(offers, points), *_jumps(points), *_missing_regions(offers, before)]
    return (*doubts, *_spot_beside_on_demand(offers))


def _no_prices(offers: Iterable[Offer], points: Iterable[PricePoint]) -> Iterator[Finding]:
    priced: list[tuple[Offer | PricePoint, float]] = [(offer, offer.list_usd_per_h) for offer in offers]
    priced += [(point, point.usd_per_h) for point in points]
    for thing, price in priced:
        if not price > 0:
            yield _finding(Doubt.NO_PRICE, thing, f"{price:g} USD/h in the {thing.market} market")


def _jumps(points: Sequence[PricePoint]) -> Iterator[Finding]:
    series: dict[Series, list[PricePoint]] = {}
    for point in points:
        key = (point.source, point.provider, point.instance_type, point.region, point.zone, point.market)
        series.setdefault(key, []).append(point)
    for last_two in (prices[-2:] for prices in series.values() if len(prices) > 1):
        old, new = last_two
        if old.usd_per_h > 0 and abs(new.usd_per_h / old.usd_per_h - 1) > JUMP:
            yield _finding(Doubt.JUMP, new, _change(old, new))


def _change(old: PricePoint, new: PricePoint) -> str:
    share = new.usd_per_h / old.usd_per_h - 1
    days = f"{old.observed_at:%Y-%m-%d} to {new.observed_at:%Y-%m-%d}"
    return f"{old.usd_per_h:.4f} -> {new.usd_per_h:.4f} USD/h ({share:+.0%}), {new.market}, {days}"


def _missing_regions(offers: Sequence[Offer], before: Sequence[Offer]) -> Iterator[Finding]:
    there = {(offer.provider, offer.region, offer.market) for offer in offers}
    providers = {offer.provider for offer in offers}
    gone: dict[tuple[str, str, Market], int] = {}
    for offer in before:
        key = (offer.provider, offer.region, offer.market)
        if offer.provider in providers and key not in there:
            gone[key] = gone.get(key, 0) + 1
    for (provider, region, market), number in sorted(gone.items()):
        yield Finding(
            doubt=Doubt.MISSING_REGION, provider=provider, place=region, instance_type=None,
            detail=f"no {market} price, {number} in the snapshot",
        )  # fmt: skip


def _spot_beside_on_demand(offers: Sequence[Offer]) -> Iterator[Finding]:
    model = load_price_model()
    listed = {
        (offer.provider, offer.instance_type, offer.region): offer.list_usd_per_h
        for offer in offers
        if offer.market is Market.ON_DEMAND
    }
    for offer in offers:
        on_demand = listed.get((offer.provider, offer.instance_type, offer.region))
        if offer.market is not Market.SPOT or on_demand is None:
            continue
        if offer.list_usd_per_h > on_demand * (1 + ROUNDING):
            detail = f"{offer.list_usd_per_h:.4f} USD/h against {on_demand:.4f} on demand"
            yield _finding(Doubt.SPOT_ABOVE, offer, detail)
        elif (why := _why_low(offer, offer.list_usd_per_h / on_demand, model)) is not None:
            yield _finding(Doubt.SPOT_LOW, offer, why)


def _why_low(offer: Offer, ratio: float, model: PriceModel) -> str | None:
    """What is odd about so little of on-demand; None if nothing is."""
    words = f"{offer.list_usd_per_h:.4f} USD/h, {ratio:.1%} of on-demand"
    family = model.ratio_of(offer.provider, offer.gpu)
    if ratio <= FLOOR_RATIO:
        return f"{words}: the floor, where no one is bidding"
    if family is not None and ratio < FAR_BELOW * family.p10:
        return f"{words}; 9 of 10 of its family cost more than {family.p10:.1%}"
    return None


def _finding(doubt: Doubt, thing: Offer | PricePoint, detail: str) -> Finding:
    return Finding(
        doubt=doubt,
        provider=thing.provider,
        place=thing.zone or thing.region,
        instance_type=thing.instance_type,
        detail=detail,
    )
