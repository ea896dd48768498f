"""Queries, parts and options of sources."""

import dataclasses
from datetime import UTC, datetime

import pytest

from advisor.core.errors import ConfigError
from advisor.core.plugins import load, registered
from advisor.core.values import Market, Offer
from advisor.pricing.sources.protocol import (
    GROUP,
    Credentials,
    Freshness,
    OfferQuery,
    PriceSource,
    check_options,
    freshness_of,
)
from tests.builders import make_offer


def at(day: int) -> datetime:
    return datetime(2026, 11, day, tzinfo=UTC)


def test_ages_are_told_by_provider_in_alphabetical_order():
    days = [("gcp", 5), ("aws", 9), ("aws", 3), ("aws", 7)]
    offers = [make_offer(provider=provider, retrieved_at=at(day)) for provider, day in days]
    assert freshness_of(offers) == (
        Freshness(provider="aws", num_offers=3, oldest=at(3), newest=at(9)),
        Freshness(provider="gcp", num_offers=1, oldest=at(5), newest=at(5)),
    )

    assert freshness_of([]) == ()


def test_options_that_exist_pass():
    check_options("acme", {}, ())
    check_options("acme", {"url": "x"}, ("url", "token"))


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        (
            ("url", "token"),
            r"'acme' has no option 'ulr'\. Did you mean 'url'\? .*acme may hold: url, token\.",
        ),
        ((), r"has no option 'ulr'\. prices\.options\.acme may hold: none\."),
    ],
)
def test_another_option_is_refused_with_a_near_one(allowed, message):
    with pytest.raises(ConfigError, match=message):
        check_options("acme", {"ulr": "x"}, allowed)


@pytest.mark.parametrize("name", ["snapshot", "custom", "gpuhunt"])
def test_a_source_has_the_name_of_its_entry_point_and_keeps_the_protocol(name):
    source: PriceSource = load(GROUP, name)({})
    assert source.name == name
    assert name in registered(GROUP, foreign=False)
    assert source.credentials() in set(Credentials)
    assert isinstance(source.capabilities.is_live, bool)
    assert not source.capabilities.is_live or source.freshness() == ()
    with pytest.raises(ConfigError, match=f"the price source '{name}' has no option 'no_such_option'"):
        load(GROUP, name)({"no_such_option": 1})


OFFER = Offer(
    provider="aws",
    instance_type="p4d.24xlarge",
    region="us-east-1",
    zone=None,
    gpu="A100-SXM-40GB",
    num_gpus=8,
    market=Market.ON_DEMAND,
    list_usd_per_h=21.957642,
    retrieved_at=datetime(2026, 7, 20, tzinfo=UTC),
    source="test",
)


@pytest.mark.parametrize(
    ("limits", "is_within"),
    [
        ({}, True),
        ({"providers": ("gcp", "aws")}, True),
        ({"providers": ("gcp",)}, False),
        ({"regions": ("eu-*", "us-*")}, True),
        ({"regions": ("US-East-1",)}, True),
        ({"regions": ("us-east",)}, False),
        ({"regions": ("us-east-?0",)}, False),
        ({"gpus": ("A100-SXM-40GB",)}, True),
        ({"gpus": ("A100-SXM-80GB",)}, False),
        ({"num_gpus": (4, 8)}, True),
        ({"num_gpus": (1,)}, False),
        ({"markets": (Market.ON_DEMAND,)}, True),
        ({"markets": (Market.SPOT,)}, False),
        ({"max_usd_per_h": 21.957642}, True),
        ({"max_usd_per_h": 21.95}, False),
        ({"providers": ("aws",), "regions": ("eu-*",)}, False),
    ],
)
def test_all_limits_hold(limits, is_within):
    assert OfferQuery(**limits).matches(OFFER) is is_within


def test_the_price_limit_is_on_what_is_paid():
    negotiated = dataclasses.replace(OFFER, contracted_usd_per_h=15.0)
    assert OfferQuery(max_usd_per_h=16.0).matches(negotiated)
