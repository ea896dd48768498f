"""Price history from the database for the options worth it: would a later start be cheaper?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from advisor.cli.live import now

if TYPE_CHECKING:
    from advisor.config import Config
    from advisor.types import PricePoint, Recommendation

HISTORY = timedelta(days=60)


def with_later_starts(recommendation: Recommendation, config: Config) -> Recommendation:
    """The recommendation with a reason where past days say so, for spot plans of the frontier and its ties.

    Raises:
        StoreError: the database of the settings cannot be read.
    """
    from advisor.types import Market
    from recommender.shifting import with_shifts

    told = {*recommendation.frontier, recommendation.recommended}
    offers = {
        option.plan.id: option.plan.offer
        for option in recommendation.options
        if option.plan.offer is not None
        and option.plan.offer.market is Market.SPOT
        and (option.plan.id in told or option.tie_with is not None)
    }
    if not offers:
        return recommendation
    points = _points(config, sorted({offer.instance_type for offer in offers.values()}))
    by_place: dict[tuple[str, str, str, str | None], list[PricePoint]] = {}
    for point in points:
        key = (point.provider, point.instance_type, point.region, point.zone)
        by_place.setdefault(key, []).append(point)
    history = {
        plan_id: by_place.get((offer.provider, offer.instance_type, offer.region, offer.zone), [])
        for plan_id, offer in offers.items()
    }
    return with_shifts(recommendation, history, now())


def _points(config: Config, instance_types: list[str]) -> tuple[PricePoint, ...]:
    from advisor.pricing.history import seen_from
    from advisor.store import open_store
    from advisor.types import Market

    start = now() - HISTORY
    store = open_store(config.settings.store.url, must_exist=True)
    if store is None:
        return ()
    with store:
        from advisor.store.prices import price_points

        points = price_points(store, instance_types=instance_types, markets=(Market.SPOT,), since=start)
    return seen_from(points, start)
