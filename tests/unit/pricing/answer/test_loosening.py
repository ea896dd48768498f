"""The smallest set of limits that has to give way, beside every subset tried in turn."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Market, Offer
from advisor.service.prices.limits import Limit, way_out
from tests.builders import make_offer

LIMITS = (
    Limit(name="--region", text="--region a", keeps=lambda offer: offer.region == "a"),
    Limit(name="--market", text="--market spot", keeps=lambda offer: offer.market is Market.SPOT),
    Limit(name="--gpu", text="--gpu L4", keeps=lambda offer: offer.gpu == "L4", is_subject=True),
    Limit(name="--max-price", text="--max-price 2", keeps=lambda offer: offer.usd_per_h <= 2),
)
OFFERS = st.lists(
    st.builds(
        lambda gpu, usd, region, market: replace(make_offer(gpu, usd), region=region, market=market),
        st.sampled_from(["L4", "T4"]),
        st.sampled_from([1.0, 3.0]),
        st.sampled_from(["a", "b"]),
        st.sampled_from([Market.SPOT, Market.ON_DEMAND]),
    ),
    min_size=1,
    max_size=12,
)


def left_without(dropped: tuple[Limit, ...], offers: list[Offer]) -> tuple[Offer, ...]:
    rest = [limit for limit in LIMITS if limit not in dropped]
    return tuple(offer for offer in offers if all(limit.keeps(offer) for limit in rest))


def rank(dropped: tuple[Limit, ...], num_offers: int) -> tuple[int, bool, int]:
    return len(dropped), any(limit.is_subject for limit in dropped), num_offers


@given(OFFERS)
def test_no_smaller_set_helps_and_none_of_that_size_lets_in_fewer(offers: list[Offer]) -> None:
    way = way_out(LIMITS, offers)
    assert way.offers == left_without(way.limits, offers)
    for size in range(len(way.limits) + 1):
        for dropped in combinations(LIMITS, size):
            left = left_without(dropped, offers)
            assert not left or rank(dropped, len(left)) >= rank(way.limits, len(way.offers))


def test_the_gpu_gives_way_after_the_place() -> None:
    elsewhere = [replace(make_offer("L4", 1.0), region="b", market=Market.SPOT)] * 3
    another = replace(make_offer("T4", 1.0), region="a", market=Market.SPOT)
    assert [limit.name for limit in way_out(LIMITS, [*elsewhere, another]).limits] == ["--region"]
    assert [limit.name for limit in way_out(LIMITS, [another]).limits] == ["--gpu"]


def test_one_limit_goes_before_two_that_would_let_in_fewer() -> None:
    elsewhere = [replace(make_offer("L4", 1.0), region="b", market=Market.SPOT)] * 3
    wholly_other = replace(make_offer("T4", 1.0), region="a", market=Market.ON_DEMAND)
    way = way_out(LIMITS, [*elsewhere, wholly_other])
    assert [limit.name for limit in way.limits] == ["--region"]
    assert way.offers == tuple(elsewhere)


def test_without_an_offer_no_limit_is_in_the_way() -> None:
    with pytest.raises(ValueError, match="no offer at all"):
        way_out(LIMITS, [])
