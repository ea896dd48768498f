"""Offers, the moment of the job and what is known of prices -> what an hour of each will cost.

With q the quote, F the quantiles of spot over on-demand of the offer's family times its on-demand price, w
the weight of the quote by its age and kind, and u how far quotes of that age are off, all as logarithms:

    p50 = w q + (1 - w) F50, and no less than q
    p90 = p50 + sqrt(((1 - w) (F90 - F50))^2 + u90^2)
    p10 = p50 - sqrt(((1 - w) (F50 - F10))^2 + u10^2)

The price goes on moving while a job runs: of the mean over a run, u90 is the mean of its values at the ages
that the quote has during it, so that a longer run is never the surer one.

No less than q: a quote above its family may fall, but then an older one would be the better one. For the same
reason w never rises with age and u never falls. Fitted and judged in docs/methods/prices.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from advisor.core.units import DAY_S
from advisor.core.values import Interval, Market, Offer, Price, QuoteKind
from advisor.pricing.answer.answering import DERIVED
from advisor.pricing.catalog.price_drift import FLOOR_RATIO, PriceModel, load_price_model

Key = TypeVar("Key")
Array = NDArray[np.float64]
OnDemand = Mapping[tuple[str, str, str], float]
"""USD per hour by provider, instance type and region."""

LIVE_DAYS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotes:
    """Quotes and what is known of their families: arrays [n], logarithms of USD per hour.

    Attributes:
        family: p10, p50 and p90 [3, n].
        weight: of the quote beside its family.
        down: how far quotes of this age are off at p10, 0 or below.
        up: the same at p90, 0 or above [1 + runs, n]: when a run starts, and in the mean over a run of each
            of `Price.RUN_DAYS`.
        most: what no price exceeds; infinite where nothing is known to limit it.
    """

    quoted: Array
    family: Array
    weight: Array
    down: Array
    up: Array
    most: Array


def quantiles_of(quotes: Quotes) -> Array:
    """p10, p50 and p90 of the logarithm of the price, by the formula of this module.

    Returns:
        [3 + runs, n]: when a run starts, and below that the p90 of the mean over each of `Price.RUN_DAYS`.
    """
    own = 1 - quotes.weight
    low, mid, high = quotes.family
    shrunk = quotes.weight * quotes.quoted + own * mid
    p50 = np.maximum(quotes.quoted, shrunk)
    p90 = p50 + np.hypot(own * (high - mid), quotes.up)
    p10 = shrunk - np.hypot(own * (mid - low), quotes.down)
    limited = np.maximum(quotes.most, quotes.quoted)
    return np.asarray(np.minimum((np.minimum(p10, p50), p50, *p90), limited))


def likely_prices(
    offers: Sequence[Offer], *, now: datetime, on_demand: OnDemand, model: PriceModel | None = None
) -> tuple[Price, ...]:
    """What an hour of each offer will cost at ``now``.

    What was agreed (own rates, contracts) is exact. A spot offer's own history stands in for its family, and
    counts from the first day.

    Args:
        offers: with the dates of their quotes.
        now: when the job runs, with a time zone.
        on_demand: of a catalog, not of the offers: what else is offered must not move a price.
        model: what is known of drift and families; the shipped one if None.
    """
    if not offers:
        return ()
    model = model or load_price_model()
    age_s = np.array([(now - offer.retrieved_at).total_seconds() for offer in offers]).clip(0)
    # Whole days: an answer is the same all day.
    age_days = np.floor(age_s / DAY_S)
    keys = [(offer.provider, offer.instance_type, offer.region) for offer in offers]
    listed = np.array([on_demand.get(key, math.nan) for key in keys])
    quoted = np.array([offer.list_usd_per_h for offer in offers])
    is_low = quoted <= FLOOR_RATIO * listed
    kinds = [_kind_of(*one) for one in zip(offers, age_days.tolist(), is_low.tolist(), strict=True)]
    quotes = _quotes(offers, kinds, age_days, np.log(quoted), np.log(listed), is_low, model)
    over_quote = np.exp(_with_histories(offers, quantiles_of(quotes)) - quotes.quoted)
    usd_per_h = over_quote * np.array([offer.usd_per_h for offer in offers])
    return tuple(
        Price(
            usd_per_h=Interval(p10=p10, p50=p50, p90=p90),
            kind=kind,
            age_days=age,
            run_p90_usd_per_h=tuple(of_runs) if of_runs[-1] > p90 else (),
        )
        for kind, age, (p10, p50, p90, *of_runs) in zip(
            kinds, age_days.tolist(), usd_per_h.T.tolist(), strict=True
        )
    )


def _kind_of(offer: Offer, age_days: float, is_low: bool) -> QuoteKind:
    if offer.contracted_usd_per_h is not None or offer.effective_usd_per_h is not None:
        return QuoteKind.AGREED
    if offer.source.startswith(DERIVED):
        return QuoteKind.DERIVED
    if age_days < LIVE_DAYS:
        return QuoteKind.LIVE
    return QuoteKind.FLOOR if is_low and offer.market is Market.SPOT else QuoteKind.DATED


def _quotes(
    offers: Sequence[Offer],
    kinds: Sequence[QuoteKind],
    age_days: Array,
    quoted: Array,
    listed: Array,
    is_low: NDArray[np.bool_],
    model: PriceModel,
) -> Quotes:
    """Offers of one market at a time, since these have their drift in common, then those of one family."""
    family, most = np.tile(quoted, (3, 1)), np.full_like(quoted, np.inf)
    weight, down = np.ones_like(quoted), np.zeros_like(quoted)
    up = np.zeros((1 + len(Price.RUN_DAYS), len(quoted)))
    unsure = [i for i, kind in enumerate(kinds) if kind is not QuoteKind.AGREED]
    for (provider, market), members in _grouped(unsure, lambda i: (offers[i].provider, offers[i].market)):
        drift, ages = model.drift_of(provider, market), age_days[members]
        down[members] = np.interp(ages, drift.age_days, drift.down)
        up[:, members] = [drift.up_over(ages, run_days) for run_days in (0.0, *Price.RUN_DAYS)]
        weight[members] = np.interp(ages, drift.age_days, drift.weight)
    for (provider, gpu, market, kind), members in _grouped(
        unsure, lambda i: (offers[i].provider, offers[i].gpu, offers[i].market, kinds[i])
    ):
        least = np.where(is_low[members], *model.most_weights(kind))
        weight[members] = np.minimum(weight[members], least)
        ratio = model.ratio_of(provider, gpu)
        if market is Market.SPOT and ratio is not None:
            family[:, members] = _family(quoted[members], listed[members], ratio)
            most[members] = np.nan_to_num(listed[members], nan=np.inf)
            if kind is QuoteKind.DERIVED:
                unsold = [i for i in members if is_low[i] and not weight[i]]
                family[1:, unsold] = _without_market(family[1, unsold], listed[unsold])
    for i, past in _histories(offers):
        family[:, i] = np.log((past.p10, past.p50, past.p90))
    return Quotes(quoted=quoted, family=family, weight=weight, down=down, up=up, most=most)


def _grouped(places: Iterable[int], key_of: Callable[[int], Key]) -> Iterable[tuple[Key, list[int]]]:
    groups: dict[Key, list[int]] = {}
    for place in places:
        groups.setdefault(key_of(place), []).append(place)
    return groups.items()


def _family(quoted: Array, listed: Array, ratio: Interval) -> Array:
    """Quantiles [3, n] of the family's spot price; an unknown on-demand price makes the quote a lucky one."""
    logs = np.log([[ratio.p10], [ratio.p50], [ratio.p90]])
    return np.asarray(logs + np.where(np.isnan(listed), quoted - logs[0], listed))


def _without_market(mid: Array, listed: Array) -> Array:
    """p50 and p90 [2, n] where the savings are the most there can be and say nothing: nobody bids.

    A family is of machines that are sold. Of one that is not it gives the lower half: all that is known above
    is that spot never costs more than on-demand.
    """
    return np.array([(mid + listed) / 2, listed])


def _with_histories(offers: Sequence[Offer], families: Array) -> Array:
    """What spot cost before it may cost again, on the first day as well."""
    for i, past in _histories(offers):
        families[0, i] = min(families[0, i], math.log(past.p10))
        families[2:, i] = np.maximum(families[2:, i], math.log(past.p90))
    return families


def _histories(offers: Sequence[Offer]) -> Iterator[tuple[int, Interval]]:
    """Places of offers with quantiles of their own past, and these."""
    for i, offer in enumerate(offers):
        if offer.spot_usd_per_h is not None and offer.market is Market.SPOT:
            yield i, offer.spot_usd_per_h


@cache
def shipped_on_demand() -> OnDemand:
    """On-demand prices of the dated files that ship.

    Raises:
        CatalogError: a file is missing or broken.
    """
    from advisor.pricing.sources.query import OfferQuery
    from advisor.pricing.sources.snapshot import SnapshotSource

    parts = SnapshotSource().offers(OfferQuery(markets=(Market.ON_DEMAND,)))
    return {
        (offer.provider, offer.instance_type, offer.region): offer.list_usd_per_h
        for part in parts
        for offer in part.offers
    }
