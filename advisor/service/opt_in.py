"""Regions that an account must enable first: what may be rented there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from advisor.core.globs import is_any, same_name

if TYPE_CHECKING:
    from advisor.config.settings import CloudSettings
    from advisor.core.values import Offer
    from advisor.pricing.answer.merge import Answer


def is_open(cloud: CloudSettings, answers: Iterable[Answer] = ()) -> Callable[[Offer], bool]:
    """Whether an offer's region needs no enabling, is named by the user, or is enabled in the account.

    A cloud's own live source asks in regions that the account has enabled and in no others.

    Args:
        cloud: names regions, one by one or as enabled; a pattern such as ``eu-*`` names none.
        answers: what the sources know.
    """
    from advisor.pricing.catalog.regions import load_regions

    closed = {region.name: region.provider for region in load_regions().values() if region.is_opt_in}
    enabled = {
        (place[0], place[1])
        for answer in answers
        if answer.is_live
        for place in answer.asked_at
        if same_name(answer.source, place[0])
    }

    def opens(offer: Offer) -> bool:
        return (
            closed.get(offer.region) != offer.provider
            or (offer.provider, offer.region) in enabled
            or is_any(cloud.opt_in_regions, offer.region)
            or any(same_name(name, offer.region) for name in cloud.regions)
        )

    return opens
