"""The regions of an account, each asked for its parts or saying why it cannot give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial

from advisor.core.deadlines import completed
from advisor.core.errors import CloudError
from advisor.core.values import Market
from advisor.pricing.sources.aws.calls import HOME_REGION, MAX_THREADS, Clients, items_of
from advisor.pricing.sources.aws.capacity_blocks import capacity_block_part
from advisor.pricing.sources.aws.faults import GARBLED
from advisor.pricing.sources.aws.machines import catalog_machines
from advisor.pricing.sources.aws.on_demand import on_demand_part
from advisor.pricing.sources.aws.options import AwsOptions
from advisor.pricing.sources.aws.reply_types import RegionRow
from advisor.pricing.sources.aws.spot import spot_part
from advisor.pricing.sources.aws.survey import Region, Survey, survey
from advisor.pricing.sources.protocol import Part
from advisor.pricing.sources.query import OfferQuery

_BUILDERS: dict[Market, Callable[[Region, Survey, str], Part]] = {
    Market.ON_DEMAND: on_demand_part,
    Market.SPOT: spot_part,
    Market.CAPACITY_BLOCK: capacity_block_part,
}


def regions_of(query: OfferQuery, options: AwsOptions, clock: Callable[[], datetime]) -> list[Region]:
    """Those of the account that the query wants, with clients: making them in threads is not safe.

    Raises:
        CloudError: no credentials, or the regions cannot be listed.
    """
    clients = Clients(options)
    home = clients.client("ec2", HOME_REGION)
    rows: list[RegionRow] = items_of(home, "ec2:DescribeRegions", "Regions")
    pricing = clients.client("pricing", HOME_REGION)
    catalog = catalog_machines()
    return [
        Region(
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


def parts_of(regions: Sequence[Region], markets: Sequence[Market]) -> Iterator[Part]:
    """Parts in the order in which the regions answer."""
    surveys = [partial(region_parts, region, markets) for region in regions]
    for parts in completed(surveys, num_threads=MAX_THREADS, name="aws"):
        yield from parts


def region_parts(region: Region, markets: Sequence[Market]) -> list[Part]:
    """The parts of one region, each a success or a failure of its own."""
    try:
        surveyed = survey(region)
    except Exception:  # noqa: BLE001 - a reply of an unexpected form may raise anything
        failure = GARBLED.format(action="pricing:GetProducts")
        return [Part(scope=f"{region.name} {market}", failure=failure) for market in markets]
    return [_part(region, surveyed, market) for market in markets]


def _part(region: Region, surveyed: Survey, market: Market) -> Part:
    scope = f"{region.name} {market}"
    try:
        return _BUILDERS[market](region, surveyed, scope)
    except CloudError as error:
        return Part(scope=scope, failure=str(error))
    except Exception:  # noqa: BLE001 - as above
        return Part(scope=scope, failure=GARBLED.format(action=f"the {market} calls"))
