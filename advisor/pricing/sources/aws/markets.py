"""The offers of each region by market: on-demand, spot and capacity blocks."""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from advisor.core.deadlines import completed
from advisor.core.errors import CloudError
from advisor.core.units import HOUR_S
from advisor.core.values import Market, Offer, PricePoint
from advisor.pricing.instance_types import InstanceType
from advisor.pricing.price_checks import is_possible
from advisor.pricing.price_history import spot_quantiles
from advisor.pricing.sources.aws.aws_calls import (
    GARBLED,
    HOME_REGION,
    MAX_THREADS,
    AwsOptions,
    Clients,
    Row,
    counted,
    items_of,
    listed,
)
from advisor.pricing.sources.aws.survey import (
    ListPrices,
    Survey,
    SurveyedRegion,
    catalog_machines,
    survey,
    zone_ids,
)
from advisor.pricing.sources.protocol import OfferQuery, Part

LIST_SOURCE = "AWS price list"


def on_demand_part(region: SurveyedRegion, survey: Survey, scope: str) -> Part:
    """List prices as offers; a price of a machine that the region does not offer is left out and reported.

    Raises CloudError: the price list could not be had, or names no machine of a region that has some.
    """
    prices = survey.prices
    if prices is None:
        raise CloudError(survey.failure)
    if survey.offered and survey.rentable and not prices.named:
        raise CloudError(
            f"the price list names no GPU machine, though the region offers {listed(survey.rentable)}:"
            " try again later"
        )
    offers = (
        machine.offer(
            region=region.name,
            market=Market.ON_DEMAND,
            usd_per_h=prices.usd_per_h[name],
            retrieved_at=survey.asked_at,
            source=LIST_SOURCE,
        )
        for name, machine in sorted(survey.rentable.items())
        if name in prices.usd_per_h
    )
    # Machines that can be started here, or are listed where that is unknown.
    known = survey.rentable.keys() if survey.offered is not None else survey.rentable.keys() & prices.named
    return Part(
        scope=scope,
        offers=tuple(filter(region.query.matches, offers)),
        gaps=(*survey.gaps, *prices.gaps, *_list_gaps(prices, survey)),
        place=("aws", region.name, Market.ON_DEMAND),
        unpriced=tuple(sorted(known - prices.usd_per_h.keys())),
        troubles=survey.troubles,
    )


def _list_gaps(prices: ListPrices, survey: Survey) -> Iterator[str]:
    """Prices without a machine to rent, and machines without a price."""
    if survey.offered is None:
        return
    if absent := (prices.usd_per_h.keys() & survey.machines.keys()) - survey.offered:
        prices_of = counted(len(absent), "list price")
        yield f"{prices_of} of types that the region does not offer left out: {listed(absent)}"
    if unlisted := survey.rentable.keys() - prices.named:
        yield f"{counted(len(unlisted), 'type')} on offer without a list price: {listed(unlisted)}"


SPOT_ACTION = "ec2:DescribeSpotPriceHistory"
SPOT_SOURCE = "AWS spot price history"
LINUX = "Linux/UNIX"
# AWS lets no spot price fall below a tenth of on-demand: a quote there means no demand.
FLOOR_FRACTION = 0.1001

Place = tuple[str, str]
"""Instance type and zone ID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Spot prices as read."""

    by_place: Mapping[Place, Sequence[PricePoint]]
    """Points from oldest to newest."""
    unsound: frozenset[Place]
    """Places whose newest price is none that the machine can have."""
    num_elsewhere: int
    """Prices of zones that are no availability zones."""


def spot_part(region: SurveyedRegion, survey: Survey, scope: str) -> Part:
    """Newest prices as offers, all prices as history; a quote at the floor or of 0 is reported, not offered.

    Raises CloudError: the zones or the prices could not be had.
    """
    if not survey.rentable:
        place = ("aws", region.name, Market.SPOT)
        return Part(scope=scope, gaps=survey.gaps, place=place, troubles=survey.troubles)
    zones = zone_ids(region.ec2)
    now = region.clock()
    start = now - timedelta(days=region.options.history_days)
    wanted = {"instance-type": sorted(survey.rentable), "product-description": [LINUX]}
    filters = [{"Name": name, "Values": values} for name, values in wanted.items()]
    limits = {"StartTime": start, "Filters": filters, "MaxResults": 1000}
    rows: list[Row] = items_of(region.ec2, SPOT_ACTION, "SpotPriceHistory", **limits)
    readings = read_points(rows, region.name, zones, survey.rentable)
    places = sorted(readings.by_place.items())
    listed_usd_per_h = survey.prices.usd_per_h if survey.prices else {}
    least = {place: FLOOR_FRACTION * listed_usd_per_h.get(place[0], 0.0) for place, _ in places}
    floor = {place for place, points in places if points[-1].usd_per_h <= least[place]}
    offers = (
        survey.rentable[place[0]].offer(
            region=region.name,
            market=Market.SPOT,
            usd_per_h=points[-1].usd_per_h,
            retrieved_at=now,
            source=SPOT_SOURCE,
            zone=place[1],
            spot_usd_per_h=spot_quantiles(points, start=start, end=now),
        )
        for place, points in places
        if place not in floor | readings.unsound
    )
    reason = f" ({survey.failure})" if survey.failure else ""
    unseen = f"no list prices, so quotes at the floor of 10 % of on-demand could not be distinguished{reason}"
    no_floor = () if survey.prices else (unseen,)
    return Part(
        scope=scope,
        offers=tuple(filter(region.query.matches, offers)),
        history=tuple(point for _, points in places for point in points),
        gaps=(*survey.gaps, *no_floor, *_spot_gaps(readings, floor, survey)),
        place=("aws", region.name, Market.SPOT),
        unpriced=tuple(sorted({instance_type for instance_type, _ in readings.unsound})),
        troubles=(*survey.troubles, *no_floor),
    )


def read_points(
    rows: Iterable[Row], region: str, zones: Mapping[str, str], machines: Mapping[str, InstanceType]
) -> Readings:
    """Linux spot prices by machine and zone ID, whatever the order of the rows of ``SpotPriceHistory``.

    A price that the machine cannot have is unknown; rows of other machines and zones (IDs by name) do not
    count.
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
            point = PricePoint(
                provider="aws",
                instance_type=row["InstanceType"],
                region=region,
                zone=zone,
                market=Market.SPOT,
                usd_per_h=float(row["SpotPrice"]),
                observed_at=row["Timestamp"].astimezone(UTC),
            )
            read[row["InstanceType"], zone].add(point)
    sound = {place: sorted(filter(is_sound, of_one), key=_moment) for place, of_one in read.items()}
    return Readings(
        by_place={place: points for place, points in sound.items() if points},
        unsound=frozenset(place for place, of_one in read.items() if not is_sound(max(of_one, key=_moment))),
        num_elsewhere=num_elsewhere,
    )


def _moment(point: PricePoint) -> tuple[datetime, float]:
    """Of two prices at one moment the higher counts as the newer, whatever the order of the reply."""
    return point.observed_at, point.usd_per_h


def _spot_gaps(readings: Readings, floor: set[Place], survey: Survey) -> Iterator[str]:
    """What is missing beside what the survey misses."""

    def named(places: Iterable[Place]) -> str:
        return listed({f"{instance_type} in {zone}" for instance_type, zone in places})

    if floor:
        yield f"quotes at the floor of 10 % of on-demand (no demand): {named(floor)}"
    if readings.unsound:
        yield f"quotes that no such machine can have count as unknown: {named(readings.unsound)}"
    if readings.num_elsewhere:
        yield f"{counted(readings.num_elsewhere, 'price')} in local or wavelength zones left out"
    if unquoted := survey.rentable.keys() - {instance_type for instance_type, _ in readings.by_place}:
        yield f"{counted(len(unquoted), 'type')} without any spot quote: {listed(unquoted)}"


BLOCK_ACTION = "ec2:DescribeCapacityBlockOfferings"
BLOCK_H = 24
"""The shortest block that AWS sells (EC2 user guide, Capacity Blocks for ML)."""


def capacity_block_part(region: SurveyedRegion, survey: Survey, scope: str) -> Part:
    """The cheapest block of a day for one machine, by type and zone.

    Its price per hour is the fee paid ahead over the block's hours; the least time billed is the block.

    Raises CloudError: a call failed.
    """
    zones = zone_ids(region.ec2)
    blocks = [
        (row["InstanceType"], _block_offer(row, region, survey, zones)) for row in _blocks(region, survey)
    ]
    unread = {name for name, offer in blocks if offer is None}
    cheapest: dict[tuple[str, str | None], Offer] = {}
    for offer in (offer for _, offer in blocks if offer is not None):
        if offer.usd_per_h <= cheapest.get((offer.instance_type, offer.zone), offer).usd_per_h:
            cheapest[offer.instance_type, offer.zone] = offer
    gaps = [f"blocks without a known zone or a fee above 0 in US dollars: {listed(unread)}"] if unread else []
    return Part(
        scope=scope,
        offers=tuple(filter(region.query.matches, cheapest.values())),
        gaps=(*survey.gaps, *gaps),
        troubles=survey.troubles,
    )


def _blocks(region: SurveyedRegion, survey: Survey) -> Iterator[Row]:
    """Blocks of every type that is sold so, types in alphabetical order."""
    filters = [
        {"Name": "supported-usage-class", "Values": ["capacity-block"]},
        {"Name": "instance-type", "Values": sorted(survey.rentable)},
    ]
    rows: list[Row] = items_of(region.ec2, "ec2:DescribeInstanceTypes", "InstanceTypes", Filters=filters)
    for name in sorted(row["InstanceType"] for row in rows if row["InstanceType"] in survey.rentable):
        block = {"InstanceType": name, "InstanceCount": 1, "CapacityDurationHours": BLOCK_H}
        blocks: list[Row] = items_of(region.ec2, BLOCK_ACTION, "CapacityBlockOfferings", **block)
        yield from blocks


def _block_offer(row: Row, region: SurveyedRegion, survey: Survey, zones: Mapping[str, str]) -> Offer | None:
    fee_usd, hours = float(row["UpfrontFee"]), int(row["CapacityBlockDurationHours"])
    zone = zones.get(row["AvailabilityZone"])
    if not 0 < fee_usd < math.inf or hours < 1 or row["CurrencyCode"] != "USD" or zone is None:
        return None
    offer = survey.rentable[row["InstanceType"]].offer(
        region=region.name,
        market=Market.CAPACITY_BLOCK,
        usd_per_h=fee_usd / hours,
        retrieved_at=region.clock(),
        source=f"AWS capacity block of {hours} h from {row['StartDate']:%Y-%m-%d %H:%M} UTC",
        zone=zone,
    )
    block_s = hours * HOUR_S
    return dataclasses.replace(offer, minimum_billed_s=block_s, billed_step_s=block_s)


_BUILDERS: dict[Market, Callable[[SurveyedRegion, Survey, str], Part]] = {
    Market.ON_DEMAND: on_demand_part,
    Market.SPOT: spot_part,
    Market.CAPACITY_BLOCK: capacity_block_part,
}


def regions_of(query: OfferQuery, options: AwsOptions, clock: Callable[[], datetime]) -> list[SurveyedRegion]:
    """Those of the account that the query wants, with clients: making them in threads is not safe.

    Raises CloudError: no credentials, or the regions cannot be listed.
    """
    clients = Clients(options)
    home = clients.client("ec2", HOME_REGION)
    rows: list[Row] = items_of(home, "ec2:DescribeRegions", "Regions")
    pricing = clients.client("pricing", HOME_REGION)
    catalog = catalog_machines()
    return [
        SurveyedRegion(
            name=name,
            ec2=clients.client("ec2", name),
            pricing=pricing,
            query=query,
            options=options,
            catalog=catalog,
            clock=clock,
        )
        for name in sorted(row["RegionName"] for row in rows)
        if query.covers(name)
    ]


def parts_of(regions: Sequence[SurveyedRegion], markets: Sequence[Market]) -> Iterator[Part]:
    """Parts in the order in which the regions answer."""
    surveys = [partial(region_parts, region, markets) for region in regions]
    for parts in completed(surveys, num_threads=MAX_THREADS, name="aws"):
        yield from parts


def region_parts(region: SurveyedRegion, markets: Sequence[Market]) -> list[Part]:
    """The parts of one region, each a success or a failure of its own."""
    try:
        surveyed = survey(region)
    except Exception:  # noqa: BLE001 - a reply of an unexpected form may raise anything
        failure = GARBLED.format(action="pricing:GetProducts")
        return [Part(scope=f"{region.name} {market}", failure=failure) for market in markets]
    parts = []
    for market in markets:
        scope = f"{region.name} {market}"
        try:
            parts.append(_BUILDERS[market](region, surveyed, scope))
        except CloudError as error:
            parts.append(Part(scope=scope, failure=str(error)))
        except Exception:  # noqa: BLE001 - as above
            parts.append(Part(scope=scope, failure=GARBLED.format(action=f"the {market} calls")))
    return parts
