"""History of prices -> how those moved that the team pays."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from advisor.core.values import Interval, Market
from advisor.pricing.price_history import Series, series_of, spot_quantiles

if TYPE_CHECKING:
    from advisor.core.values import PricePoint
    from advisor.review.period import Period
    from advisor.store.ledger import Run

MOST_STEPS = 40
"""Steps of a drawn history; each has a band."""
MOST_PLACES = 2
"""Places of a machine, where no run tells which it uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a machine cost over a part of the period."""

    since: datetime
    usd_per_h: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """How the price of a machine moved, as one source tells it.

    Attributes:
        usd_per_h: over the period, weighted by time.
        steps: the same over its parts, in order.
        is_used: whether a run used it in this place.
    """

    gpu: str
    series: Series
    usd_per_h: Interval
    steps: tuple[Step, ...]
    is_used: bool

    @property
    def first_usd_per_h(self) -> float:
        """At the beginning of the period, or of what is remembered of it."""
        return self.series.points[0].usd_per_h

    @property
    def last_usd_per_h(self) -> float:
        """At its end."""
        return self.series.points[-1].usd_per_h


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceMoves:
    """Moves by GPU, and GPUs of which no price is remembered."""

    moves: tuple[Move, ...]
    unknown_gpus: tuple[str, ...]


def price_moves(
    points: Mapping[str, Sequence[PricePoint]], runs: Collection[Run], period: Period
) -> PriceMoves:
    """Moves of machines and places that runs used; where they do not tell, of the cheapest places.

    Args:
        points: of the period by GPU, as the period sees them.
        runs: of the period.
        period: of the report.
    """
    markets = {(run.gpu, run.provider, run.market) for run in runs if run.market is not None}
    places = {(run.provider, run.instance_type, run.region, run.market) for run in runs}
    moves: list[Move] = []
    for gpu in sorted(points):
        paid = [one for one in series_of(points[gpu]) if (gpu, one.provider, one.market) in markets]
        moves += _moves(gpu, paid, places, period)
    rented = {gpu for gpu, _, _ in markets}
    return PriceMoves(moves=tuple(moves), unknown_gpus=tuple(sorted(rented - {move.gpu for move in moves})))


def _moves(
    gpu: str,
    paid: Iterable[Series],
    places: Collection[tuple[str, str | None, str | None, Market | None]],
    period: Period,
) -> Iterator[Move]:
    groups: dict[tuple[str, str, Market], list[Series]] = {}
    for one in paid:
        groups.setdefault((one.provider, one.instance_type, one.market), []).append(one)
    for group in groups.values():
        used = [s for s in group if (s.provider, s.instance_type, s.region, s.market) in places]
        cheapest = sorted(
            used or group, key=lambda one: (one.points[-1].usd_per_h, one.region, one.zone or "")
        )
        for series in cheapest[:MOST_PLACES]:
            held = spot_quantiles(series.points, start=period.since, end=period.until)
            if held is not None:
                steps = tuple(_steps(series, period))
                yield Move(gpu=gpu, series=series, usd_per_h=held, steps=steps, is_used=bool(used))


def _steps(series: Series, period: Period) -> Iterator[Step]:
    """Parts of whole days, each with the prices that held in it."""
    days = max(1, -(-int(period.days) // MOST_STEPS))
    points, first = list(series.points), 0
    start = period.since
    while start < period.until:
        end = min(start + timedelta(days=days), period.until)
        # The price in force at the start, and all that began since.
        while first + 1 < len(points) and points[first + 1].observed_at <= start:
            first += 1
        last = first
        while last < len(points) and points[last].observed_at < end:
            last += 1
        held = spot_quantiles(points[first:last], start=start, end=end)
        if held is not None:
            yield Step(since=start, usd_per_h=held)
        start = end
