"""All regions of the account at once, each giving its parts or saying why it cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from advisor.core.deadlines import completed
from advisor.core.errors import CloudError
from advisor.core.values import Market
from advisor.pricing.sources.aws.calls import HOME_REGION, MAX_THREADS, Clients, items_of
from advisor.pricing.sources.aws.capacity_blocks import capacity_block_part
from advisor.pricing.sources.aws.faults import GARBLED
from advisor.pricing.sources.aws.hints import may_have_credentials
from advisor.pricing.sources.aws.machines import catalog_machines
from advisor.pricing.sources.aws.on_demand import on_demand_part
from advisor.pricing.sources.aws.options import AwsOptions, read_options
from advisor.pricing.sources.aws.reply_types import RegionRow
from advisor.pricing.sources.aws.spot import spot_part
from advisor.pricing.sources.aws.survey import Region, Survey, survey
from advisor.pricing.sources.protocol import Capabilities, Credentials, Freshness, Part
from advisor.pricing.sources.query import OfferQuery

WHOLE = "regions"
"""Scope of what concerns every region: no credentials, no list of regions."""

_BUILDERS: dict[Market, Callable[[Region, Survey, str], Part]] = {
    Market.ON_DEMAND: on_demand_part,
    Market.SPOT: spot_part,
    Market.CAPACITY_BLOCK: capacity_block_part,
}


def _utc_now() -> datetime:
    return datetime.now(UTC)


class AwsSource:
    """AWS's own interfaces, in the commercial regions that the account has enabled.

    Needs ``ec2:DescribeRegions``, ``pricing:GetProducts``, ``ec2:DescribeInstanceTypes``,
    ``ec2:DescribeInstanceTypeOfferings``, ``ec2:DescribeAvailabilityZones`` and
    ``ec2:DescribeSpotPriceHistory``, all read-only; without one of them the rest still answers.

    Args:
        clock: tells the time, with a time zone.
    """

    name = "aws"

    def __init__(self, options: AwsOptions, *, clock: Callable[[], datetime] = _utc_now) -> None:
        self._options = options
        self._clock = clock

    @property
    def capabilities(self) -> Capabilities:
        """On-demand and spot; capacity blocks where the options ask for them."""
        blocks = (Market.CAPACITY_BLOCK,) if self._options.capacity_blocks else ()
        markets = (Market.ON_DEMAND, Market.SPOT, *blocks)
        return Capabilities(providers=("aws",), markets=markets, is_live=True)

    def offers(self, query: OfferQuery) -> Iterator[Part]:
        """A part for each region and market, as they are known; one for all where there is none to ask."""
        markets = [m for m in self.capabilities.markets if not query.markets or m in query.markets]
        if not markets or (query.providers and "aws" not in query.providers):
            return
        try:
            regions = self._regions(query)
        except CloudError as error:
            yield Part(scope=WHOLE, failure=str(error))
            return
        if not regions:
            yield Part(scope=WHOLE, gaps=(f"no region of this account matches {', '.join(query.regions)}",))
        yield from _all_parts(regions, markets)

    def freshness(self) -> tuple[Freshness, ...]:
        """Nothing is held."""
        return ()

    def credentials(self) -> Credentials:
        """Whether the SDK's own chain finds credentials, which asks nobody but this machine's own service.

        Where nothing hints at any, that service is not waited for.

        Raises:
            CloudError: the AWS configuration of this machine cannot be used.
        """
        are_there = may_have_credentials() and Clients(self._options).has_credentials()
        return Credentials.FOUND if are_there else Credentials.MISSING

    def _regions(self, query: OfferQuery) -> list[Region]:
        """Those of the account that the query wants, with clients: making them in threads is not safe.

        Raises:
            CloudError: no credentials, or the regions cannot be listed.
        """
        clients = Clients(self._options)
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
                options=self._options,
                catalog=catalog,
                clock=self._clock,
            )
            for name in sorted(row["RegionName"] for row in rows)
            if query.covers(name)
        ]


def _all_parts(regions: Sequence[Region], markets: Sequence[Market]) -> Iterator[Part]:
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


def aws_source(options: Mapping[str, object]) -> AwsSource:
    """The entry point; `AwsOptions` lists the options (``prices.options.aws`` of the settings).

    Raises:
        ConfigError: an option is unknown or has a value that cannot be.
    """
    return AwsSource(read_options(options))
