"""The plug-in: one pull of Google's price list -> a part for each region and market.

What pulls is imported when somebody pulls: most commands only ask which sources there are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from advisor.core.values import Market
from advisor.pricing.sources.protocol import (
    Capabilities,
    Credentials,
    Freshness,
    OfferQuery,
    Part,
    check_options,
)

if TYPE_CHECKING:
    from advisor.pricing.sources.gcp.client import Patience

MARKETS = tuple(market for market in Market if market is not Market.CAPACITY_BLOCK)
SCOPE_OF_FAILURE = "compute engine"


class GcpSource:
    """Prices of GCP machines with GPUs, from the Cloud Billing Catalog.

    Args:
        patience: how long to wait for the API.
        clock: tells the time of the call.
    """

    name = "gcp"
    capabilities = Capabilities(providers=("gcp",), markets=MARKETS, is_live=True)

    def __init__(
        self, patience: Patience | None = None, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._patience = patience
        self._clock = clock

    def offers(self, query: OfferQuery) -> Iterator[Part]:
        """Offers that match, a part for each region and market, also where there are none.

        If the list cannot be had as a whole, there is one part with the reason: a SKU that is missing from
        half a list would look like a machine that cannot be priced.

        Raises:
            CatalogError: a shipped table of machine types is missing or broken.
        """
        from advisor.pricing.sources.gcp.client import Patience, PullError, pull_skus
        from advisor.pricing.sources.gcp.skus import PROVIDER, load_machines, part_of, rates_of

        machines = tuple(machine for machine in load_machines() if query.wants(machine.instance))
        regions = sorted({region for machine in machines for region in machine.regions})
        markets = [market for market in MARKETS if not query.markets or market in query.markets]
        places = [(region, market) for region in regions if query.covers(region) for market in markets]
        if not places or (query.providers and PROVIDER not in query.providers):
            return
        now = self._clock()
        try:
            rates = rates_of(pull_skus(self._patience or Patience()), now)
        except PullError as error:
            yield Part(scope=SCOPE_OF_FAILURE, failure=str(error))
            return
        for region, market in places:
            part = part_of(region, market, machines, rates, retrieved_at=now)
            yield dataclasses.replace(part, offers=tuple(filter(query.matches, part.offers)))

    def freshness(self) -> tuple[Freshness, ...]:
        """A live source holds nothing."""
        return ()

    def credentials(self) -> Credentials:
        """Whether application-default credentials are at hand, as far as can be told without the network."""
        from advisor.pricing.sources.gcp.client import local_credentials

        return local_credentials()


def gcp_source(options: Mapping[str, object]) -> GcpSource:
    """The entry point; it has no options: credentials are Google's application-default ones.

    Raises:
        ConfigError: an option is given.
    """
    check_options("gcp", options, ())
    return GcpSource()
