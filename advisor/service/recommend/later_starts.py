"""Price history from the database for the options worth it: would a later start be cheaper?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from advisor.core.errors import StoreError
from advisor.core.values import Market
from advisor.service.prices.live import now, sources_for

if TYPE_CHECKING:
    from advisor.config.layers import PricingSettings
    from advisor.config.settings import StoreSettings
    from advisor.core.values import PricePoint, Recommendation

HISTORY = timedelta(days=60)


def with_later_starts(recommendation: Recommendation, pricing: PricingSettings) -> Recommendation:
    """The recommendation with a reason where past days say so, for spot plans of the frontier and its ties.

    Without a database that can be read it stays as it is: reading prices warned of that.
    """
    from advisor.pricing.price_history import series_of
    from recommender.ranking.shifting import with_shifts

    shown = {*recommendation.frontier, recommendation.recommended}
    offers = {
        option.plan.id: option.plan.offer
        for option in recommendation.options
        if option.plan.offer is not None
        and option.plan.offer.market is Market.SPOT
        and (option.plan.id in shown or option.tie_with is not None)
    }
    if not offers:
        return recommendation
    try:
        sources = tuple(source.name for source in sources_for(pricing).sources)
        points = _points(pricing.store, sources, sorted({offer.instance_type for offer in offers.values()}))
    except StoreError:
        return recommendation
    by_place: dict[tuple[str, str, str, str | None], tuple[PricePoint, ...]] = {}
    for one in sorted(series_of(points), key=lambda one: sources.index(one.source)):
        # Prices of two sources are no history: the first that knows the place has the word.
        by_place.setdefault((one.provider, one.instance_type, one.region, one.zone), one.points)
    history = {
        plan_id: by_place.get((offer.provider, offer.instance_type, offer.region, offer.zone), ())
        for plan_id, offer in offers.items()
    }
    return with_shifts(recommendation, history, now())


def _points(
    settings: StoreSettings, sources: tuple[str, ...], instance_types: list[str]
) -> tuple[PricePoint, ...]:
    from advisor.pricing.price_checks import possible_points
    from advisor.pricing.price_history import seen_from
    from advisor.store.database import open_store

    start = now() - HISTORY
    store = open_store(settings.url, must_exist=True)
    if store is None:
        return ()
    with store:
        from advisor.store.pulls import price_points

        points = price_points(
            store, sources=sources, instance_types=instance_types, markets=(Market.SPOT,), since=start
        )
    return seen_from(tuple(possible_points(points)), start)
