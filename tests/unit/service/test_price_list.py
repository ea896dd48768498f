"""Offers in the order asked for, whatever order they come in."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Offer, QuoteKind
from advisor.service.prices.offers import PriceOrder, _sorted
from tests.builders import make_offer, make_price

NOW = datetime(2026, 11, 20, tzinfo=UTC)
OFFERS = st.lists(
    st.builds(
        lambda usd, count, region, days: make_offer(
            "L4", usd, num_gpus=count, region=region, retrieved_at=NOW - timedelta(days=days)
        ),
        st.sampled_from([0.5, 1.0, 4.0]),
        st.sampled_from([1, 4, 8]),
        st.sampled_from(["us-east-1", "eu-west-1"]),
        st.integers(0, 3),
    ),
    max_size=12,
)


def place(offer: Offer) -> tuple[str, str]:
    return offer.provider, offer.region


@given(OFFERS, st.sampled_from(PriceOrder), st.randoms(use_true_random=False))
def test_the_order_is_a_matter_of_the_offers_alone(
    offers: list[Offer], order: PriceOrder, luck: random.Random
) -> None:
    shuffled = luck.sample(offers, len(offers))
    first = {
        PriceOrder.PRICE: lambda o: o.usd_per_h,
        PriceOrder.GPU_PRICE: lambda o: o.usd_per_h / o.num_gpus,
        PriceOrder.AGE: lambda o: -o.retrieved_at.timestamp(),
        PriceOrder.PLACE: place,
    }[order]

    def keys_of(some: list[Offer]) -> list[tuple[object, ...]]:
        listed = _sorted([(offer, make_price(offer.usd_per_h)) for offer in some], order)
        return [(first(offer), offer.usd_per_h, place(offer)) for offer, _ in listed]

    assert keys_of(offers) == sorted(keys_of(offers))
    assert keys_of(offers) == keys_of(shuffled)


def test_a_guess_is_listed_by_its_p90() -> None:
    guess = make_offer("L4", 1.0), make_price(1.5, 3.0, QuoteKind.DERIVED)
    quoted = make_offer("L4", 2.0), make_price(2.0, 4.0)
    assert _sorted([guess, quoted], PriceOrder.PRICE) == [quoted, guess]
