"""Asking the source ``aws`` in tests."""

from typing import Any

from advisor.core.values import Offer
from advisor.pricing.sources.aws import AwsSource
from advisor.pricing.sources.aws.aws_calls import read_options
from advisor.pricing.sources.protocol import OfferQuery, Part
from tests.clouds.aws_world import NOW


def ask(query: OfferQuery | None = None, **options: Any) -> dict[str, Part]:
    """Parts by scope; a call is made twice at most and waits little, unless the options say otherwise."""
    settings = read_options({"max_attempts": 1, "timeout_s": 60.0} | options)
    parts = list(AwsSource(settings, clock=lambda: NOW).offers(query or OfferQuery()))
    by_scope = {part.scope: part for part in parts}
    assert len(by_scope) == len(parts)
    return by_scope


def usd_per_h(part: Part) -> dict[tuple[str, str | None], float]:
    """Prices of a part by instance type and zone."""
    return {(offer.instance_type, offer.zone): offer.usd_per_h for offer in part.offers}


def the_offer(part: Part, instance_type: str) -> Offer:
    """The only offer of a type."""
    (offer,) = (offer for offer in part.offers if offer.instance_type == instance_type)
    return offer
