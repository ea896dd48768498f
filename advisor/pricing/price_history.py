"""Prices over time: one series for each machine and place, and its quantiles weighted by time."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate, pairwise
from operator import itemgetter

from advisor.core.iterables import grouped
from advisor.core.values import Interval, Market, Offer, PricePoint

# Sums of seconds are exact to far less than this share of the whole.
_ROUNDING = 1e-9


def spot_quantiles(points: Iterable[PricePoint], *, start: datetime, end: datetime) -> Interval | None:
    """The USD per hour at or below which 10 %, 50 % and 90 % of the time from start to end was spent.

    A price holds from its moment to the next point's, the last one to ``end``. What held before ``start``
    counts from ``start`` on; the time before the first point is unknown and does not count. Points are of one
    machine in one zone and market, in any order; of equal moments the last counts. None if none held for any
    time.
    """
    changes = [(point.observed_at, point.usd_per_h) for point in points]
    changes.sort(key=itemgetter(0))
    held_s: defaultdict[float, float] = defaultdict(float)
    for (begin, usd_per_h), (until, _) in pairwise([*changes, (end, 0.0)]):
        within_s = (min(until, end) - max(begin, start)).total_seconds()
        if within_s > 0:
            held_s[usd_per_h] += within_s
    if not held_s:
        return None
    total_s = sum(held_s.values())
    prices = sorted(held_s)
    below_s = [*accumulate(held_s[usd_per_h] for usd_per_h in prices)]
    places = (bisect_left(below_s, share * total_s * (1 - _ROUNDING)) for share in (0.1, 0.5, 0.9))
    p10, p50, p90 = (prices[min(place, len(prices) - 1)] for place in places)
    return Interval(p10=p10, p50=p50, p90=p90)


MachineKey = tuple[str, str, str, str | None, Market]


def key_of(thing: PricePoint | Offer) -> MachineKey:
    """Which machine, where and on what terms."""
    return thing.provider, thing.instance_type, thing.region, thing.zone, thing.market


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSeries:
    """What a source tells of a machine in a place and market: prices in time, each holds until the next."""

    source: str
    provider: str
    instance_type: str
    region: str
    zone: str | None
    market: Market
    points: tuple[PricePoint, ...]

    @property
    def lowest_usd_per_h(self) -> float:
        """The least price."""
        return min(point.usd_per_h for point in self.points)

    @property
    def highest_usd_per_h(self) -> float:
        """The greatest price."""
        return max(point.usd_per_h for point in self.points)

    @property
    def change(self) -> float:
        """The last price over the first, less one."""
        return self.points[-1].usd_per_h / self.points[0].usd_per_h - 1

    def median_usd_per_h(self, until: datetime) -> float:
        """The price that half of the time until then was not above."""
        quantiles = spot_quantiles(self.points, start=self.points[0].observed_at, end=until)
        return self.points[-1].usd_per_h if quantiles is None else quantiles.p50


def series_of(points: Iterable[PricePoint]) -> tuple[PriceSeries, ...]:
    """Series by provider, machine and place, those of different sources apart, points in order of time."""
    in_time = sorted(points, key=lambda point: point.observed_at)
    by_machine = grouped(in_time, lambda point: (key_of(point), point.source))
    return tuple(
        PriceSeries(source=source, provider=key[0], instance_type=key[1], region=key[2], zone=key[3],
               market=key[4], points=tuple(by_machine[key, source]))
        for key, source in sorted(by_machine, key=lambda k: (*k[0][:3], k[0][3] or "", *k[0][4:], k[1]))
    )  # fmt: skip


def seen_from(points: Iterable[PricePoint], moment: datetime) -> tuple[PricePoint, ...]:
    """Points as a window sees them that begins then: what was in force, once a series, counts from there."""
    return tuple(
        replace(point, observed_at=moment) if point.observed_at < moment else point for point in points
    )


def with_quantiles(
    offers: Sequence[Offer], points: Iterable[PricePoint], *, start: datetime, end: datetime
) -> tuple[Offer, ...]:
    """Spot offers of one source without quantiles get those of its own points in the window, if any."""
    by_key = grouped(points, key_of)

    def filled(offer: Offer) -> Offer:
        own = by_key.get(key_of(offer))
        if offer.market is not Market.SPOT or offer.spot_usd_per_h is not None or not own:
            return offer
        return replace(offer, spot_usd_per_h=spot_quantiles(own, start=start, end=end))

    return tuple(map(filled, offers))
