"""What a job pays a cloud besides the machine, by hand: disks by the month, egress by tier, download time."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pytest

from advisor.core.units import GIB
from advisor.pricing.bills.storage import Rate, RateKind
from recommender.plans.extras import CloudTerms, Extras, extras_at


def rate(kind: RateKind, usd: float, up_to_gib: float = math.inf, **changes: Any) -> Rate:
    facts: dict[str, Any] = {
        "provider": "aws",
        "region": "us-*",
        "kind": kind,
        "up_to_gib": up_to_gib,
        "usd": usd,
        "source": "a price list",
        "as_of": date(2025, 1, 1),
    }
    return Rate(**(facts | changes))


CATALOG = (
    rate(RateKind.BLOCK_STORAGE, 0.073),
    rate(RateKind.OBJECT_STORAGE, 77.0),
    rate(RateKind.EGRESS_REGION, 77.0),
    rate(RateKind.EGRESS_INTERNET, 0.2, 100),
    rate(RateKind.EGRESS_INTERNET, 0.1, 1000),
)


def extras(region: str = "us-east-1", provider: str = "aws", **changes: Any) -> Extras:
    return extras_at(provider, region, CloudTerms(**({"startup_s": 300.0} | changes)), CATALOG)


def test_disks_hold_the_system_and_the_data_set() -> None:
    # 0.073 USD a month are 0.0001 USD an hour of 730.
    assert extras(boot_disk_gib=100).storage_usd_per_h == pytest.approx(0.01)
    assert extras(boot_disk_gib=100, dataset_gib=150).storage_usd_per_h == pytest.approx(0.025)
    assert extras(dataset_gib=150).storage_usd_per_h == pytest.approx(0.015)


def test_egress_is_paid_once_and_tier_by_tier() -> None:
    assert extras(result_gib=50).egress_usd == pytest.approx(10)
    assert extras(result_gib=300).egress_usd == pytest.approx(20 + 20)
    assert extras(dataset_gib=50, boot_disk_gib=50).egress_usd == 0


def test_what_is_not_needed_costs_nothing_wherever_it_is() -> None:
    assert extras("mars") == Extras(storage_usd_per_h=0.0, egress_usd=0.0, rates={})


@pytest.mark.parametrize(("provider", "region"), [("aws", "eu-west-1"), ("gcp", "us-east-1")])
def test_what_has_no_rate_is_unknown_and_not_free(provider: str, region: str) -> None:
    found = extras(region, provider, boot_disk_gib=100, result_gib=1)
    assert found == Extras(storage_usd_per_h=None, egress_usd=None, rates={})


def test_more_than_the_last_known_tier_is_unknown() -> None:
    assert extras(result_gib=1000).egress_usd == pytest.approx(20 + 90)
    beyond = extras(result_gib=1001, boot_disk_gib=1)
    assert beyond.egress_usd is None
    assert beyond.storage_usd_per_h is not None
    assert set(beyond.rates) == {"storage"}


def test_each_rate_is_told_with_source_and_date() -> None:
    assert extras(boot_disk_gib=100, dataset_gib=150.5, result_gib=20).rates == {
        "storage": "250.5 GiB at 0.073 USD per GiB-month; a price list, 2025-01-01",
        "data transfer": "20 GiB at 0.2 USD per GiB; a price list, 2025-01-01",
    }
    assert extras(result_gib=101).rates["data transfer"].startswith("101 GiB from 0.2 USD per GiB")


def test_the_data_set_takes_its_time() -> None:
    # 125 GiB at 1 Gbit/s: 125 x 2^30 x 8 / 10^9 s.
    terms = CloudTerms(startup_s=300.0, dataset_gib=125.0)
    assert terms.download_s == pytest.approx(125 * GIB * 8 / 1e9)
    faster = CloudTerms(startup_s=300.0, dataset_gib=125.0, download_bits_per_s=10e9)
    assert faster.download_s == pytest.approx(terms.download_s / 10)
    assert CloudTerms(startup_s=300.0, boot_disk_gib=500.0, result_gib=500.0).download_s == 0
