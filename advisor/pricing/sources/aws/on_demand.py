"""On-demand offers of a region: list prices of machines that can be started there."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.core.errors import CloudError
from advisor.core.values import Market, Offer
from advisor.pricing.sources.aws.price_list import ListPrices
from advisor.pricing.sources.aws.survey import Region, Survey
from advisor.pricing.sources.aws.wording import counted, listed
from advisor.pricing.sources.protocol import Part

SOURCE = "AWS price list"


def on_demand_part(region: Region, survey: Survey, scope: str) -> Part:
    """List prices as offers; a price of a machine that the region does not offer is left out and told.

    Raises:
        CloudError: the price list could not be had, or names no machine of a region that has some.
    """
    prices = survey.prices
    if prices is None:
        raise CloudError(survey.failure)
    if survey.offered and survey.rentable and not prices.named:
        raise CloudError(
            f"the price list names no GPU machine, though the region offers {listed(survey.rentable)}:"
            " try again later"
        )
    offers = _offers(prices, survey, region.name)
    return Part(
        scope=scope,
        offers=tuple(filter(region.query.matches, offers)),
        gaps=(*survey.gaps, *prices.gaps, *_gaps(prices, survey)),
        place=("aws", region.name, Market.ON_DEMAND),
        unpriced=tuple(sorted(_unpriced(prices, survey))),
        troubles=survey.troubles,
    )


def _offers(prices: ListPrices, survey: Survey, region: str) -> Iterator[Offer]:
    """Prices of machines that can be started here, in alphabetical order."""
    for name, machine in sorted(survey.rentable.items()):
        if name in prices.usd_per_h:
            yield machine.offer(
                region=region,
                market=Market.ON_DEMAND,
                usd_per_h=prices.usd_per_h[name],
                retrieved_at=survey.asked_at,
                source=SOURCE,
            )


def _unpriced(prices: ListPrices, survey: Survey) -> set[str]:
    """Machines that can be started here, or are listed where nobody knows that, without a sound price."""
    known = survey.rentable.keys() if survey.offered is not None else survey.rentable.keys() & prices.named
    return known - prices.usd_per_h.keys()


def _gaps(prices: ListPrices, survey: Survey) -> Iterator[str]:
    """Prices without a machine to rent, and machines without a price."""
    if survey.offered is None:
        return
    absent = (prices.usd_per_h.keys() & survey.machines.keys()) - survey.offered
    if absent:
        prices_of = counted(len(absent), "list price")
        yield f"{prices_of} of types that the region does not offer left out: {listed(absent)}"
    if unlisted := survey.rentable.keys() - prices.named:
        yield f"{counted(len(unlisted), 'type')} on offer without a list price: {listed(unlisted)}"
