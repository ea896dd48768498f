"""Every rate of storage and egress: plausible, dated, sourced, and of a region where GPUs are rented."""

from collections import defaultdict
from datetime import date
from fnmatch import fnmatchcase

import pytest

from advisor.core.gpus import catalog_path
from advisor.pricing.instance_types import load_instances
from advisor.pricing.sources.snapshot import PRICE_FILES, read_offers
from advisor.pricing.storage_rates import RateKind, StorageRate, charge, load_rates, rates_at, usd_of

RATES = load_rates()
INSTANCES = load_instances()
PLACES = {
    (offer.provider, offer.region)
    for name in PRICE_FILES
    for offer in read_offers(catalog_path(name), INSTANCES)
}
PLAUSIBLE_USD = {
    RateKind.BLOCK_STORAGE: (0.05, 0.25),
    RateKind.OBJECT_STORAGE: (0.015, 0.05),
    RateKind.EGRESS_INTERNET: (0.04, 0.25),
    RateKind.EGRESS_REGION: (0.01, 0.15),
}


def by_place() -> dict[tuple[str, str, RateKind, str], list[StorageRate]]:
    rates = defaultdict(list)
    for rate in RATES:
        rates[rate.provider, rate.region, rate.kind, rate.to_region].append(rate)
    return rates


def test_rates_are_in_range():
    for rate in RATES:
        low, high = PLAUSIBLE_USD[rate.kind]
        assert low <= rate.usd <= high, rate
        assert rate.kind is RateKind.EGRESS_REGION or rate.to_region == "*", rate


def test_every_rate_says_that_it_was_written_by_hand_and_where_to_look():
    hosts = {"aws": "https://aws.amazon.com/", "gcp": "https://cloud.google.com/"}
    for rate in RATES:
        assert rate.source.startswith(f"written down by hand; see {hosts[rate.provider]}"), rate
        assert date(2024, 1, 1) <= rate.as_of <= date(2026, 11, 21), rate


def test_every_region_or_glob_is_one_where_gpus_are_rented():
    for rate in RATES:
        assert any(
            rate.provider == provider and fnmatchcase(region, rate.region) for provider, region in PLACES
        )


def test_a_region_is_priced_by_one_row_or_glob():
    for provider, region in PLACES:
        for kind in RateKind:
            names = {
                rate.region
                for rate in RATES
                if (rate.provider, rate.kind) == (provider, kind) and fnmatchcase(region, rate.region)
            }
            assert len(names) <= 1, (provider, region, kind)


def test_more_is_never_dearer_by_the_unit_and_tiers_ascend():
    for tiers in by_place().values():
        rates, limits = [tier.usd for tier in tiers], [tier.up_to_gib for tier in tiers]
        assert rates == sorted(rates, reverse=True)
        assert limits == sorted(set(limits))
        assert limits[0] > 0


def test_what_is_kept_has_no_last_tier():
    for (_, _, kind, _), tiers in by_place().items():
        if kind is not RateKind.EGRESS_INTERNET:
            assert tiers[-1].up_to_gib == float("inf"), tiers


def test_a_disk_in_a_main_region_of_each_continent_has_a_rate():
    for provider, region in (
        ("aws", "us-east-1"),
        ("aws", "eu-central-1"),
        ("aws", "ap-northeast-1"),
        ("gcp", "us-central1"),
        ("gcp", "europe-west4"),
        ("gcp", "asia-east1"),
    ):
        assert rates_at(RATES, RateKind.BLOCK_STORAGE, provider, region)


@pytest.mark.parametrize(
    ("provider", "region", "kind", "gib", "usd"),
    [
        ("aws", "us-east-1", RateKind.BLOCK_STORAGE, 100, 8.0),  # gp3
        ("aws", "us-east-1", RateKind.OBJECT_STORAGE, 1000, 23.0),
        ("aws", "us-east-1", RateKind.EGRESS_INTERNET, 100, 9.0),
        ("aws", "us-east-1", RateKind.EGRESS_INTERNET, 10_240 + 100, 921.6 + 8.5),
        ("aws", "us-east-1", RateKind.EGRESS_REGION, 100, 2.0),
        ("aws", "ap-south-1", RateKind.EGRESS_REGION, 100, 8.6),
        ("gcp", "us-central1", RateKind.BLOCK_STORAGE, 100, 10.0),  # pd-balanced
        ("gcp", "us-central1", RateKind.OBJECT_STORAGE, 1000, 20.0),
        ("gcp", "us-central1", RateKind.EGRESS_INTERNET, 100, 12.0),
        ("gcp", "us-central1", RateKind.EGRESS_INTERNET, 1024 + 100, 122.88 + 11.0),
    ],
)
def test_known_rates(provider, region, kind, gib, usd):
    assert usd_of(rates_at(RATES, kind, provider, region), gib) == pytest.approx(usd)


@pytest.mark.parametrize(
    ("provider", "region", "to_region", "usd"),
    [
        ("aws", "us-east-1", "us-east-2", 1.0),
        ("aws", "us-east-1", "ap-south-1", 2.0),
        ("gcp", "us-central1", "us-east4", 2.0),
        ("gcp", "us-central1", "northamerica-northeast1", 2.0),
        ("gcp", "us-central1", "europe-west4", 5.0),
        ("gcp", "europe-west4", "asia-east1", 8.0),
        ("gcp", "us-central1", "australia-southeast1", 14.0),  # not known: the dearest of GCP
        ("aws", "ap-southeast-3", "us-east-1", 14.7),  # not known: the dearest of AWS
    ],
)
def test_known_routes(provider, region, to_region, usd):
    charged = charge(RATES, RateKind.EGRESS_REGION, provider, region, gib=100, to_region=to_region)
    assert charged.usd == pytest.approx(usd)


def test_unknown_regions_stay_unknown():
    assert not rates_at(RATES, RateKind.BLOCK_STORAGE, "aws", "ap-southeast-3")
    assert usd_of(rates_at(RATES, RateKind.EGRESS_INTERNET, "aws", "ap-south-1"), 20_000) is None
