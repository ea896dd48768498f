"""Every instance type and price of the catalog: plausible, dated, sourced, joined."""

import csv
import re
from collections import Counter, defaultdict
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase

import pytest

from advisor.core.gpus import catalog_path, load_gpus
from advisor.core.units import GB, GIB
from advisor.core.values import Market, Offer
from advisor.pricing.answers import load_offers
from advisor.pricing.instance_types import load_instances
from advisor.pricing.sources.protocol import DERIVED, OfferQuery
from advisor.pricing.sources.snapshot import PRICE_FILES, SnapshotSource, read_offers
from advisor.pricing.storage_rates import RateKind, StorageRate, charge, load_rates, rates_at, usd_of
from advisor.report.words import sentence

TODAY = date(2026, 11, 21)
NOW = datetime(2026, 11, 21, tzinfo=UTC)
SPOT_ONLY = {f"a3-highgpu-{n}g" for n in (1, 2, 4)}
INSTANCES = load_instances()
OFFERS = [offer for part in SnapshotSource().offers(OfferQuery()) for offer in part.offers]
REGION = re.compile(r"[a-z]+(-[a-z]+)+-?\d+")


def one(provider: str, instance_type: str, region: str, market: Market) -> Offer:
    (offer,) = (
        o
        for o in OFFERS
        if (o.provider, o.instance_type, o.region, o.market) == (provider, instance_type, region, market)
    )
    return offer


# --- Instance types -------------------------------------------------------------------------------


def test_every_instance_type_has_a_gpu_of_the_catalog():
    assert {instance.gpu for instance in INSTANCES.values()} <= set(load_gpus())


def test_what_a_process_sees_is_a_little_less_than_what_the_cloud_documents():
    for instance in INSTANCES.values():
        amount, unit = instance.gpu_memory.split(" ")
        documented_gb = float(amount)
        usable_bytes = load_gpus()[instance.gpu].memory_bytes
        upper = documented_gb * GIB * 1.001
        lower = documented_gb * (GIB if unit == "GiB" else GB) * 0.90
        assert lower <= usable_bytes <= upper, instance


def test_instance_types_are_in_range():
    for i in INSTANCES.values():
        assert i.provider in {"aws", "gcp"}
        assert i.num_gpus in {1, 2, 4, 8, 16}, i
        assert 4 <= i.vcpus <= 400, i
        assert 8 * GIB <= i.memory_bytes <= 5000 * GIB, i
        assert 0 <= i.local_ssd_bytes <= 40_000 * GB, i
        assert i.architecture in {"x86_64", "arm64"}, i
        assert i.minimum_billed_s == 60, i
        assert i.network_bits_per_s is None or 1e9 <= i.network_bits_per_s <= 7e12, i


def test_what_a_price_includes_agrees_with_the_columns():
    for i in INSTANCES.values():
        arm = " (Arm)" if i.architecture == "arm64" else ""
        assert i.includes[:2] == (f"{i.vcpus} vCPU{arm}", f"{i.memory_bytes / GIB:g} GiB RAM")
        assert any("SSD" in part for part in i.includes) == (i.local_ssd_bytes > 0)


def test_instance_types_have_source_and_date():
    assert all(date(2024, 1, 1) <= i.as_of <= TODAY for i in INSTANCES.values())
    assert all(len(i.source) > 5 for i in INSTANCES.values())


def test_instance_types_without_a_price_are_the_known_gaps():
    priced = {(offer.provider, offer.instance_type) for offer in OFFERS}
    assert {name for _, name in set(INSTANCES) - priced} == {
        "a3-edgegpu-8g", "a3-edgegpu-8g-nolssd", "a3-ultragpu-8g", "a3-ultragpu-8g-nolssd",
        "a4-highgpu-8g", "p5e.48xlarge",
    }  # fmt: skip


def test_no_fraction_of_a_gpu_is_offered():
    fractions = re.compile(r"gr?6f\.|g4-standard-(6|12|24)$")
    assert not [name for _, name in INSTANCES if fractions.match(name)]


# --- Prices ---------------------------------------------------------------------------------------


def test_both_clouds_and_markets_are_well_covered():
    counts = Counter((offer.provider, offer.market) for offer in OFFERS)
    assert set(counts) == {(p, m) for p in ("aws", "gcp") for m in (Market.ON_DEMAND, Market.SPOT)}
    assert min(counts.values()) > 650


def test_prices_per_gpu_are_plausible():
    for offer in OFFERS:
        usd_per_gpu_h = offer.usd_per_h / offer.num_gpus
        assert 0.03 <= usd_per_gpu_h <= 25, offer


def test_every_price_is_in_the_file_of_its_provider_and_a_region_of_it():
    for name in PRICE_FILES:
        with catalog_path(name).open(encoding="utf-8", newline="") as file:
            assert {row["provider"] for row in csv.DictReader(file)} == {
                name.removeprefix("prices/").removesuffix(".csv")
            }
    assert all(REGION.fullmatch(offer.region) for offer in OFFERS)
    assert not [o for o in OFFERS if o.region.startswith("us-gov-")]


def test_zones_are_aws_zone_ids_never_account_names():
    zones = {offer.zone for offer in OFFERS if offer.zone}
    assert zones
    assert all(re.fullmatch(r"[a-z]+\d-az\d", zone) for zone in zones)
    assert not [o for o in OFFERS if o.zone and o.market is Market.ON_DEMAND]


def test_every_price_has_a_date_and_a_source():
    assert all(date(2025, 6, 28) <= offer.retrieved_at.date() <= date(2026, 8, 3) for offer in OFFERS)
    assert all("@" in offer.source or offer.source.startswith(DERIVED) for offer in OFFERS)


def test_no_spot_price_is_above_on_demand_or_at_the_floor():
    on_demand = {
        (o.provider, o.instance_type, o.region): o.usd_per_h for o in OFFERS if o.market is Market.ON_DEMAND
    }
    for offer in OFFERS:
        key = (offer.provider, offer.instance_type, offer.region)
        if offer.market is Market.SPOT and offer.instance_type not in SPOT_ONLY:
            listed = on_demand[key]
            floor = 0.1 if offer.provider == "aws" else 0.05
            assert floor * listed < offer.usd_per_h <= listed * (1 + 1e-5), offer


def test_derived_prices_are_aws_spot_of_whole_regions():
    derived = [offer for offer in OFFERS if offer.source.startswith(DERIVED)]
    assert derived
    for offer in derived:
        assert offer.provider == "aws"
        assert offer.market is Market.SPOT
        assert offer.zone is None
    quoted = {(o.instance_type, o.region) for o in OFFERS if o.zone}
    assert not quoted & {(o.instance_type, o.region) for o in derived}


def test_more_of_the_same_gpu_costs_more_in_a_region():
    """a2 and a3 sizes are multiples of one machine, N1 hosts stay while GPUs are added."""
    sizes = (
        ("a2-highgpu-1g", "a2-highgpu-8g", Market.ON_DEMAND),
        ("a3-highgpu-1g", "a3-highgpu-8g", Market.SPOT),
    )
    for small, large, market in sizes:
        price = one("gcp", large, "us-central1", market).usd_per_h
        assert price == pytest.approx(8 * one("gcp", small, "us-central1", market).usd_per_h, rel=0.02)
    one_t4 = one("gcp", "n1-standard-8+1xT4", "us-central1", Market.ON_DEMAND)
    two_t4 = one("gcp", "n1-standard-8+2xT4", "us-central1", Market.ON_DEMAND)
    assert two_t4.usd_per_h - one_t4.usd_per_h == pytest.approx(0.35)


def test_types_that_google_only_starts_as_spot_have_no_other_price():
    query = OfferQuery(providers=("gcp",), gpus=("H100-SXM-80GB",))
    small = [o for o in load_offers(query, now=NOW).offers if o.num_gpus < 8]
    assert {offer.instance_type for offer in small} == SPOT_ONLY
    assert {offer.market for offer in small} == {Market.SPOT}


def test_a_price_is_of_the_whole_machine():
    """Decision 6: host 0.739477 + A100 2.933908, never one of them alone."""
    offer = one("gcp", "a2-highgpu-1g", "us-central1", Market.ON_DEMAND)
    assert offer.usd_per_h == 3.673385
    assert offer.usd_per_h == pytest.approx(0.739477 + 2.933908)
    assert (offer.gpu, offer.num_gpus) == ("A100-SXM-40GB", 1)


@pytest.mark.parametrize(
    ("provider", "instance_type", "region", "usd_per_h"),
    [
        ("aws", "p4d.24xlarge", "us-east-1", 21.957642),
        ("aws", "p5.48xlarge", "us-east-1", 55.04),
        ("aws", "p5en.48xlarge", "us-east-1", 63.296),
        ("aws", "g5.xlarge", "us-east-1", 1.006),
        ("gcp", "a3-highgpu-8g", "us-central1", 88.49),
    ],
)
def test_known_prices(provider, instance_type, region, usd_per_h):
    offer = one(provider, instance_type, region, Market.ON_DEMAND)
    assert offer.usd_per_h == pytest.approx(usd_per_h, abs=0.005)


def test_the_shipped_snapshot_tells_its_age():
    offers = load_offers(OfferQuery(), now=NOW)
    assert len(offers.offers) == len(OFFERS)
    assert sentence(offers.warnings[0]).startswith("prices are not live: aws ")


RATES = load_rates()
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
