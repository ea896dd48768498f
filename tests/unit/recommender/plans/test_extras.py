"""What a job pays a cloud besides the machine, by hand: disks by the month, egress by tier, download time."""

import math
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from advisor.core.errors import CatalogError
from advisor.core.findings.about_options import DataMoved, RateUnknown
from advisor.core.units import GIB
from advisor.core.values import DataPlace
from advisor.pricing.storage_rates import RateKind, StorageRate
from advisor.report.words import sentence
from recommender.plans.extras import CloudTerms, Extras, extras_at, extras_of_own


def rate(kind: RateKind, usd: float, up_to_gib: float = math.inf, **changes: Any) -> StorageRate:
    facts: dict[str, Any] = {
        "provider": "aws",
        "region": "us-*",
        "kind": kind,
        "up_to_gib": up_to_gib,
        "usd": usd,
        "source": "a price list",
        "as_of": date(2025, 1, 1),
    }
    return StorageRate(**(facts | changes))


CATALOG = (
    rate(RateKind.BLOCK_STORAGE, 0.073),
    rate(RateKind.OBJECT_STORAGE, 77.0),
    rate(RateKind.EGRESS_REGION, 77.0),
    rate(RateKind.EGRESS_INTERNET, 0.2, 100),
    rate(RateKind.EGRESS_INTERNET, 0.1, 1000),
)


def extras(region: str = "us-east-1", provider: str = "aws", **changes: Any) -> Extras:
    return extras_at(provider, region, CloudTerms(**({"startup_s": 300.0} | changes)), CATALOG)


def test_disks_hold_the_system_and_the_data_set():
    # 0.073 USD a month are 0.0001 USD an hour of 730.
    assert extras(boot_disk_gib=100).storage_usd_per_h == pytest.approx(0.01)
    assert extras(boot_disk_gib=100, dataset_gib=150).storage_usd_per_h == pytest.approx(0.025)
    assert extras(dataset_gib=150).storage_usd_per_h == pytest.approx(0.015)


def test_egress_is_paid_once_and_tier_by_tier():
    assert extras(result_gib=50).egress_usd == pytest.approx(10)
    assert extras(result_gib=300).egress_usd == pytest.approx(20 + 20)
    assert extras(dataset_gib=50, boot_disk_gib=50).egress_usd == 0


def test_what_is_not_needed_costs_nothing_wherever_it_is():
    assert extras("mars") == Extras()


@pytest.mark.parametrize(
    ("provider", "region"), [("aws", "eu-west-1"), ("gcp", "us-east-1"), ("moon", "sea")]
)
def test_what_has_no_rate_costs_the_dearest_known(provider, region):
    bill = extras(region, provider, boot_disk_gib=100, result_gib=500)
    assert bill.storage_usd_per_h == pytest.approx(0.01)
    assert bill.egress_usd == pytest.approx(500 * 0.2)
    assert [(type(note), note.facts["line"], note.facts["region"]) for note in bill.notes] == [
        (RateUnknown, "storage", region),
        (RateUnknown, "data transfer", region),
    ]
    assert bill.rates["storage"] == "100 GiB at 0.073 USD per GiB-month; a price list, 2025-01-01"


def test_more_than_the_last_known_tier_goes_on_at_the_dearest():
    assert extras(result_gib=1000) == replace(extras(result_gib=1000), notes=(), egress_usd=20 + 90)
    beyond = extras(result_gib=1001, boot_disk_gib=1)
    assert beyond.egress_usd == pytest.approx(20 + 90 + 0.2)
    assert [note.facts["line"] for note in beyond.notes] == ["data transfer"]


def test_without_any_rate_nobody_can_tell():
    with pytest.raises(CatalogError, match="no rate of block-storage is known"):
        extras_at("aws", "us-east-1", CloudTerms(startup_s=0.0, boot_disk_gib=1.0), ())


def test_each_rate_is_told_with_source_and_date():
    assert extras(boot_disk_gib=100, dataset_gib=150.5, result_gib=20).rates == {
        "storage": "250.5 GiB at 0.073 USD per GiB-month; a price list, 2025-01-01",
        "data transfer": "20 GiB at 0.2 USD per GiB; a price list, 2025-01-01",
    }
    assert extras(result_gib=101).rates["data transfer"].startswith("101 GiB from 0.2 USD per GiB")


def test_the_data_set_takes_its_time():
    # 125 GiB at 1 Gbit/s: 125 x 2^30 x 8 / 10^9 s.
    assert extras(dataset_gib=125.0).download_s == pytest.approx(125 * GIB * 8 / 1e9)
    faster = extras(dataset_gib=125.0, download_bits_per_s=10e9)
    assert faster.download_s == pytest.approx(extras(dataset_gib=125.0).download_s / 10)
    assert extras(boot_disk_gib=500.0, result_gib=500.0).download_s == 0


VIRGINIA = DataPlace(name="s3://photos", provider="aws", region="us-east-1")
HOME = DataPlace(name="local")


def moved(provider: str, region: str, data: DataPlace | None, gib: float = 100.0) -> Extras:
    rates = (
        rate(RateKind.BLOCK_STORAGE, 0.073),
        rate(RateKind.EGRESS_REGION, 0.01, region="us-east-1", to_region="us-east-2"),
        rate(RateKind.EGRESS_REGION, 0.02, region="us-*"),
        rate(RateKind.EGRESS_REGION, 0.14, region="sa-east-1"),
        rate(RateKind.EGRESS_INTERNET, 0.09, region="us-east-1"),
        rate(RateKind.EGRESS_INTERNET, 0.15, region="sa-east-1"),
    )
    terms = CloudTerms(startup_s=300.0, dataset_gib=gib, data=data)
    return extras_at(provider, region, terms, rates)


def test_data_in_the_region_is_read_in_place():
    bill = moved("aws", "us-east-1", VIRGINIA)
    assert bill == Extras(notes=bill.notes)
    assert bill.notes == (DataMoved(place="s3://photos", gib=0.0, usd=0.0, time_s=0.0),)


@pytest.mark.parametrize(
    ("provider", "region", "usd"),
    [
        ("aws", "us-east-2", 1.0),
        ("aws", "ap-south-1", 2.0),
        ("gcp", "us-east-1", 9.0),
        ("gcp", "us-east1", 9.0),
    ],
)
def test_moving_is_billed_where_the_data_lies(provider, region, usd):
    bill = moved(provider, region, VIRGINIA)
    assert bill.transfer_usd == pytest.approx(usd)
    assert (bill.transfer_gib, bill.egress_usd) == (100.0, 0.0)
    assert bill.download_s == pytest.approx(100 * GIB * 8 / 1e9)
    assert "moving the data" in bill.rates
    (note,) = (note for note in bill.notes if isinstance(note, DataMoved))
    assert (note.facts["place"], note.facts["usd"]) == ("s3://photos", bill.transfer_usd)


@pytest.mark.parametrize("data", [None, HOME])
def test_sending_data_into_a_cloud_takes_time_and_no_money(data):
    bill = moved("aws", "us-east-1", data)
    assert (bill.transfer_usd, bill.transfer_gib) == (0.0, 100.0)
    assert bill.download_s > 0


def test_data_at_an_unknown_place_is_at_the_dearest_of_its_cloud():
    lost = DataPlace(name="s3://lost", provider="aws")
    assert moved("aws", "us-east-1", lost).transfer_usd == pytest.approx(14.0)
    assert moved("gcp", "us-east1", lost).transfer_usd == pytest.approx(15.0)
    (unknown,) = (n for n in moved("aws", "us-east-1", lost).notes if isinstance(n, RateUnknown))
    assert unknown.facts["region"] is None
    assert "an unknown region of aws" in sentence(unknown)


def test_a_machine_of_ones_own_pays_for_data_from_a_cloud_alone():
    rates = (rate(RateKind.EGRESS_INTERNET, 0.09),)
    terms = CloudTerms(startup_s=300.0, dataset_gib=100.0, data=VIRGINIA)
    bill = extras_of_own(terms, rates)
    assert (bill.transfer_usd, bill.storage_usd_per_h) == (pytest.approx(9.0), 0.0)
    assert bill.download_s == pytest.approx(100 * GIB * 8 / 1e9)
    for data in (None, HOME):
        assert not extras_of_own(replace(terms, data=data), rates).download_s
