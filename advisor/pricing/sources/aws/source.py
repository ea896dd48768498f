"""All regions of the account at once, each giving its parts or saying why it cannot.

What pulls is imported when someone pulls: most commands only ask which sources there are.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from advisor.core.errors import CloudError
from advisor.core.values import Market
from advisor.pricing.sources.aws.aws_calls import AwsOptions, Clients, may_have_credentials, read_options
from advisor.pricing.sources.protocol import Capabilities, Credentials, Freshness, OfferQuery, Part

WHOLE = "regions"
"""Scope of what concerns every region: no credentials, no list of regions."""


class AwsSource:
    """AWS's own interfaces, in the commercial regions that the account has enabled.

    Needs ``ec2:DescribeRegions``, ``pricing:GetProducts``, ``ec2:DescribeInstanceTypes``,
    ``ec2:DescribeInstanceTypeOfferings``, ``ec2:DescribeAvailabilityZones`` and
    ``ec2:DescribeSpotPriceHistory``, all read-only; without one of them the rest still answers.

    Args:
        clock: gives the time, with a time zone.
    """

    name = "aws"

    def __init__(
        self, options: AwsOptions, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._options = options
        self._clock = clock
        blocks = (Market.CAPACITY_BLOCK,) if options.capacity_blocks else ()
        markets = (Market.ON_DEMAND, Market.SPOT, *blocks)
        self.capabilities = Capabilities(providers=("aws",), markets=markets, is_live=True)

    def offers(self, query: OfferQuery) -> Iterator[Part]:
        """A part for each region and market, as they are known; one for all where there is none to ask."""
        from advisor.pricing.sources.aws.markets import parts_of, regions_of

        markets = [m for m in self.capabilities.markets if not query.markets or m in query.markets]
        if not markets or (query.providers and "aws" not in query.providers):
            return
        try:
            regions = regions_of(query, self._options, self._clock)
        except CloudError as error:
            yield Part(scope=WHOLE, failure=str(error))
            return
        if not regions:
            yield Part(scope=WHOLE, gaps=(f"no region of this account matches {', '.join(query.regions)}",))
        yield from parts_of(regions, markets)

    def freshness(self) -> tuple[Freshness, ...]:
        """Nothing is held."""
        return ()

    def credentials(self) -> Credentials:
        """Whether the SDK's own chain finds credentials, which asks only this machine's own service.

        Where nothing hints at any, that service is not waited for.

        Raises CloudError: the AWS configuration of this machine cannot be used.
        """
        are_there = may_have_credentials() and Clients(self._options).has_credentials()
        return Credentials.FOUND if are_there else Credentials.MISSING


def aws_source(options: Mapping[str, object]) -> AwsSource:
    """The entry point; `AwsOptions` lists the options (``prices.options.aws`` of the settings).

    Raises ConfigError: an option is unknown or has a value that cannot be.
    """
    return AwsSource(read_options(options))
