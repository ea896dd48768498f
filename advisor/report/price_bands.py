"""Prices over time, those of all zones of a region as one band: from the cheapest zone to the dearest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby

from advisor.pricing.price_history import Series
from advisor.report.cells import DAY, USD_PER_H
from advisor.report.document import Axis, Block, Chart, Detail, Lines, Range
from advisor.report.document import Series as Curve

# As many as a reader tells apart.
MOST_BANDS = 8


def places_chart(series: Sequence[Series], until: datetime) -> Iterator[Block]:
    """A line for the cheapest zone of each machine and region, the cheapest first; nothing for none."""
    if not series:
        return
    regions = [tuple(zones) for _, zones in groupby(sorted(series, key=_region), _region)]
    cheapest = sorted(regions, key=_last_usd_per_h)[:MOST_BANDS]
    yield Chart(
        title="Price per hour, and how far zones of a region differ",
        x=Axis(DAY),
        y=Axis(USD_PER_H, title="USD per hour"),
        series=tuple(map(_curve, cheapest)),
        until=until.timestamp(),
    )
    num_left = len(regions) - len(cheapest)
    if num_left:
        yield Lines((f"{num_left} dearer are not drawn: --region, --market or --gpu narrow them.",))


def _region(one: Series) -> tuple[str, ...]:
    return one.provider, one.instance_type, one.region, one.market, one.source


def _last_usd_per_h(zones: Sequence[Series]) -> float:
    return min(zone.points[-1].usd_per_h for zone in zones)


def _curve(zones: Sequence[Series]) -> Curve:
    one = zones[0]
    where = one.zone or one.region if len(zones) == 1 else f"{one.region}, {len(zones)} zones"
    name = f"{one.provider} {one.instance_type} {one.market} {where} ({one.source})"
    moments = list(_ranges(zones))
    return Curve(
        f"{name}, now {_last_usd_per_h(zones):.4f} USD/h",
        tuple((at, low) for at, (low, _) in moments),
        tuple(_detail(name, at, span, len(zones) > 1) for at, span in moments),
    )


def _ranges(zones: Sequence[Series]) -> Iterator[tuple[float, Range]]:
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


def _detail(name: str, at: float, span: Range, has_zones: bool) -> Detail:
    low, high = map(USD_PER_H.words, span)
    price = f"{low} .. {high}" if has_zones and low != high else low
    return Detail(
        label=f"{name}\n{DAY.words(at)}: {price} USD/h",
        y_range=span if has_zones else None,
    )
