"""What storage and egress cost."""

import math
from dataclasses import replace
from datetime import date

import pytest

from advisor.core.errors import CatalogError
from advisor.pricing.storage_rates import RateKind, StorageCharge, StorageRate, charge, rates_at, usd_of

DISK = StorageRate(
    provider="aws",
    region="us-east-1",
    kind=RateKind.BLOCK_STORAGE,
    up_to_gib=math.inf,
    usd=0.08,
    source="a test",
    as_of=date(2025, 1, 1),
)
EGRESS = replace(DISK, kind=RateKind.EGRESS_INTERNET)


@pytest.mark.parametrize(("gib", "usd"), [(0, 0), (4, 12), (10, 30), (30, 30 + 40), (100, 30 + 40 + 70)])
def test_an_amount_is_paid_tier_by_tier_and_beyond_the_last_nothing_is_guessed(gib, usd):
    tiers = [replace(EGRESS, up_to_gib=limit, usd=usd) for limit, usd in ((10, 3), (30, 2), (math.inf, 1))]
    assert usd_of(tiers, gib) == pytest.approx(usd)
    assert usd_of(tiers[:1], gib) == (None if gib > 10 else pytest.approx(usd))
    assert usd_of((), 1) is None


def test_a_region_without_a_row_is_unknown():
    rates = [DISK]
    assert len(rates_at(rates, RateKind.BLOCK_STORAGE, "aws", "us-east-1")) == 1
    for provider, region, kind in (
        ("aws", "us-east-2", RateKind.BLOCK_STORAGE),
        ("aws", "us-east-11", RateKind.BLOCK_STORAGE),
        ("gcp", "us-east-1", RateKind.BLOCK_STORAGE),
        ("aws", "us-east-1", RateKind.EGRESS_INTERNET),
    ):
        assert rates_at(rates, kind, provider, region) == ()


def test_the_first_glob_that_matches_has_the_word():
    rates = [
        replace(DISK, region=region, usd=usd) for region, usd in (("us-east-1", 0.5), ("us-*", 0.1), ("*", 9))
    ]

    def charged(region: str) -> list[float]:
        return [rate.usd for rate in rates_at(rates, RateKind.BLOCK_STORAGE, "aws", region)]

    assert (charged("us-east-1"), charged("us-west-2"), charged("eu-west-1")) == ([0.5], [0.1], [9])


ROUTE = replace(DISK, kind=RateKind.EGRESS_REGION, usd=0.02)


def test_a_route_has_a_rate_of_its_own():
    rates = [replace(ROUTE, to_region="us-east-2", usd=0.01), ROUTE]

    def usd(to_region: str) -> float:
        return charge(rates, RateKind.EGRESS_REGION, "aws", "us-east-1", gib=100, to_region=to_region).usd

    assert (usd("us-east-2"), usd("ap-south-1"), usd("")) == (1.0, 2.0, 2.0)


def test_what_no_rate_reaches_costs_the_dearest_of_its_provider():
    rates = [
        DISK,
        replace(DISK, region="sa-east-1", usd=0.152),
        replace(DISK, provider="gcp", region="us-east4", usd=0.5),
        replace(EGRESS, up_to_gib=10, usd=3),
    ]

    def charged(provider: str, region: str) -> StorageCharge:
        return charge(rates, RateKind.BLOCK_STORAGE, provider, region, gib=100)

    assert (charged("aws", "us-east-1").usd, charged("AWS", "us-east-1").stand_in) == (8.0, None)
    assert (charged("aws", "eu-west-1").usd, charged("lambda", "eu-west-1").usd) == (15.2, 50.0)
    assert charged("aws", "").stand_in == rates[1]
    beyond = charge(rates, RateKind.EGRESS_INTERNET, "aws", "us-east-1", gib=12)
    assert (beyond.usd, beyond.rate, beyond.stand_in) == (36.0, rates[3], rates[3])
    with pytest.raises(CatalogError, match="no rate of object-storage is known"):
        charge(rates, RateKind.OBJECT_STORAGE, "aws", "us-east-1", gib=1)
