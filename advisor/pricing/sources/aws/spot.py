"""Spot offers of a region: the newest price of each machine and zone, and what it was before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from advisor.core.values import Market, Offer, PricePoint
from advisor.pricing.catalog.bounds import is_possible
from advisor.pricing.catalog.instance_types import InstanceType
from advisor.pricing.catalog.spot_quantiles import spot_quantiles
from advisor.pricing.sources.aws.calls import items_of
from advisor.pricing.sources.aws.reply_types import SpotPrice
from advisor.pricing.sources.aws.survey import Region, Survey
from advisor.pricing.sources.aws.wording import counted, listed
from advisor.pricing.sources.aws.zones import zone_ids
from advisor.pricing.sources.protocol import Part

ACTION = "ec2:DescribeSpotPriceHistory"
SOURCE = "AWS spot price history"
LINUX = "Linux/UNIX"
# AWS lets no spot price fall below a tenth of on-demand: a quote there says that nobody asked.
FLOOR_FRACTION = 0.1001

Place = tuple[str, str]
"""Instance type and zone ID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Spot prices as read.

    Attributes:
        by_place: points from oldest to newest.
        unsound: places whose newest price is none that the machine can have.
        num_elsewhere: prices of zones that are no availability zones.
    """

    by_place: Mapping[Place, Sequence[PricePoint]]
    unsound: frozenset[Place]
    num_elsewhere: int


def spot_part(region: Region, survey: Survey, scope: str) -> Part:
    """Newest prices as offers, all prices as history; a quote at the floor or of 0 is told, not offered.

    Raises:
        CloudError: the zones or the prices could not be had.
    """
    if not survey.rentable:
        place = ("aws", region.name, Market.SPOT)
        return Part(scope=scope, gaps=survey.gaps, place=place, troubles=survey.troubles)
    zones = zone_ids(region.ec2)
    now = region.clock()
    start = now - timedelta(days=region.options.history_days)
    readings = read_points(_asked(region, survey, start), region.name, zones, survey.rentable)
    places = sorted(readings.by_place.items())
    floor = {place for place, points in places if _at_floor(points[-1], survey)}
    offers = (
        _offer(survey.rentable[place[0]], points, start=start, now=now)
        for place, points in places
        if place not in floor | readings.unsound
    )
    return Part(
        scope=scope,
        offers=tuple(filter(region.query.matches, offers)),
        history=tuple(point for _, points in places for point in points),
        gaps=(*survey.gaps, *_gaps(readings, floor, survey)),
        place=("aws", region.name, Market.SPOT),
        unpriced=tuple(sorted({instance_type for instance_type, _ in readings.unsound})),
        troubles=survey.troubles if survey.prices else (*survey.troubles, _no_floor(survey)),
    )


def read_points(
    rows: Iterable[SpotPrice],
    region: str,
    zones: Mapping[str, str],
    machines: Mapping[str, InstanceType],
) -> Readings:
    """Linux spot prices by machine and zone ID; a price that the machine cannot have is unknown.

    Args:
        rows: of ``SpotPriceHistory``, in any order.
        region: they are of.
        zones: zone IDs by name.
        machines: by instance type; rows of others do not count.
    """

    def is_sound(point: PricePoint) -> bool:
        machine = machines[point.instance_type]
        return is_possible(point.usd_per_h, machine.gpu, machine.num_gpus)

    read: defaultdict[Place, set[PricePoint]] = defaultdict(set)
    num_elsewhere = 0
    for row in rows:
        zone = zones.get(row["AvailabilityZone"])
        if zone is None:
            num_elsewhere += 1
        elif row["ProductDescription"] == LINUX and row["InstanceType"] in machines:
            read[row["InstanceType"], zone].add(_point(row, region, zone))
    sound = {place: sorted(filter(is_sound, of_one), key=_moment) for place, of_one in read.items()}
    return Readings(
        by_place={place: points for place, points in sound.items() if points},
        unsound=frozenset(place for place, of_one in read.items() if not is_sound(max(of_one, key=_moment))),
        num_elsewhere=num_elsewhere,
    )


def _asked(region: Region, survey: Survey, start: datetime) -> list[SpotPrice]:
    filters = [
        {"Name": "instance-type", "Values": sorted(survey.rentable)},
        {"Name": "product-description", "Values": [LINUX]},
    ]
    limits = {"StartTime": start, "Filters": filters, "MaxResults": 1000}
    return items_of(region.ec2, ACTION, "SpotPriceHistory", **limits)


def _point(row: SpotPrice, region: str, zone: str) -> PricePoint:
    return PricePoint(
        provider="aws",
        instance_type=row["InstanceType"],
        region=region,
        zone=zone,
        market=Market.SPOT,
        usd_per_h=float(row["SpotPrice"]),
        observed_at=row["Timestamp"].astimezone(UTC),
    )


def _moment(point: PricePoint) -> tuple[datetime, float]:
    """Of two prices at one moment the higher counts as the newer, whatever the order of the reply."""
    return point.observed_at, point.usd_per_h


def _offer(machine: InstanceType, points: Sequence[PricePoint], *, start: datetime, now: datetime) -> Offer:
    """The newest of the points of one zone, and how the price moved since the start."""
    newest = points[-1]
    return machine.offer(
        region=newest.region,
        market=Market.SPOT,
        usd_per_h=newest.usd_per_h,
        retrieved_at=now,
        source=SOURCE,
        zone=newest.zone,
        spot_usd_per_h=spot_quantiles(points, start=start, end=now),
    )


def _at_floor(newest: PricePoint, survey: Survey) -> bool:
    listed_usd_per_h = survey.prices.usd_per_h.get(newest.instance_type) if survey.prices else None
    return listed_usd_per_h is not None and newest.usd_per_h <= FLOOR_FRACTION * listed_usd_per_h


def _gaps(readings: Readings, floor: set[Place], survey: Survey) -> list[str]:
    gaps = []
    if survey.prices is None:
        gaps.append(_no_floor(survey))
    if floor:
        gaps.append(f"quotes at the floor of 10 % of on-demand (no demand): {_places(floor)}")
    if readings.unsound:
        gaps.append(f"quotes that no such machine can have count as unknown: {_places(readings.unsound)}")
    if readings.num_elsewhere:
        gaps.append(f"{counted(readings.num_elsewhere, 'price')} in local or wavelength zones left out")
    quoted = {instance_type for instance_type, _ in readings.by_place}
    if unquoted := survey.rentable.keys() - quoted:
        gaps.append(f"{counted(len(unquoted), 'type')} without any spot quote: {listed(unquoted)}")
    return gaps


def _no_floor(survey: Survey) -> str:
    reason = f" ({survey.failure})" if survey.failure else ""
    return f"no list prices, so quotes at the floor of 10 % of on-demand could not be told apart{reason}"


def _places(places: Iterable[Place]) -> str:
    return listed({f"{instance_type} in {zone}" for instance_type, zone in places})
