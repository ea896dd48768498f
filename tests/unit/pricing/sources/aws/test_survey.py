"""Machines and list prices of a region."""

import json
import math
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.pricing.sources.aws import survey
from advisor.pricing.sources.aws.survey import described_machines, read_products
from tests.clouds.aws_world import product
from tests.shared import SHARED, needs_shared


@pytest.mark.parametrize(
    ("gpu", "memory_mib", "name"), [("L4", 22888, "L4"), ("H200", 144384, "H200-SXM-141GB")]
)
def test_memory_in_mib_is_that_of_the_catalog_in_gib(monkeypatch, gpu, memory_mib, name):
    reply = {
        "InstanceType": "g99.xlarge",
        "GpuInfo": {
            "Gpus": [
                {"Name": gpu, "Manufacturer": "NVIDIA", "Count": 1, "MemoryInfo": {"SizeInMiB": memory_mib}}
            ]
        },
        "VCpuInfo": {"DefaultVCpus": 4},
        "MemoryInfo": {"SizeInMiB": 16384},
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
    }
    monkeypatch.setattr(survey, "items_of", lambda *_, **__: [reply])
    machines, gaps = described_machines(None, ["g99.xlarge"], today=date(2026, 11, 22))
    assert (machines["g99.xlarge"].gpu, gaps) == (name, ())


REGION = "us-east-1"


def read(*products: Any) -> Any:
    return read_products(map(json.dumps, products), REGION)


def test_a_price_is_read_to_the_last_digit():
    prices = read(product("p4d.24xlarge", REGION, "21.9576420000"))
    assert prices.usd_per_h == {"p4d.24xlarge": 21.957642}
    assert prices.gaps == ()


@pytest.mark.parametrize(
    "other",
    [
        {"marketoption": "CapacityBlock"}, {"operatingSystem": "Windows"}, {"operatingSystem": "RHEL"},
        {"preInstalledSw": "SQL Std"}, {"tenancy": "Dedicated"}, {"tenancy": "Host"},
        {"capacitystatus": "AllocatedCapacityReservation"}, {"locationType": "AWS Local Zone"},
        {"regionCode": "us-east-1-chi-1"}, {"licenseModel": "Bring your own license"},
        {"operation": "RunInstances:0010"}, {"instanceFamily": "Machine Learning ASIC Instances"},
    ],
)  # fmt: skip
def test_another_kind_of_row_never_counts(other):
    prices = read(product("g6.xlarge", REGION, "0.8048"), product("g6.xlarge", REGION, "0.01", **other))
    assert prices.usd_per_h == {"g6.xlarge": 0.8048}
    assert prices.gaps == ()
    assert read(product("g6.xlarge", REGION, "0.01", **other)).named == frozenset()


def test_equal_rows_are_one_price_and_different_ones_are_none():
    twice = product("g6.xlarge", REGION, "0.80")
    assert read(twice, twice).usd_per_h == {"g6.xlarge": 0.8}
    prices = read(twice, product("g6.xlarge", REGION, "0.81"), product("g6.2xlarge", REGION, "1.0"))
    assert prices.usd_per_h == {"g6.2xlarge": 1.0}
    assert "different prices for one type" in prices.gaps[0]
    assert "g6.xlarge" in prices.gaps[0]


@pytest.mark.parametrize("usd", ["0.0000000000", "-0.5", "nan", "inf", "1e999"])
def test_what_is_no_price_is_a_gap(usd):
    prices = read(product("g6.xlarge", REGION, usd))
    assert prices.usd_per_h == {}
    assert prices.named == {"g6.xlarge"}
    assert "not above 0 USD an hour count as unknown: g6.xlarge" in prices.gaps[0]


def test_a_price_by_another_unit_is_a_gap():
    quantity = product("g6.xlarge", REGION, "294")
    (term,) = quantity["terms"]["OnDemand"].values()
    (dimension,) = term["priceDimensions"].values()
    dimension["unit"] = "Quantity"
    prices = read(quantity)
    assert prices.usd_per_h == {}
    assert len(prices.gaps) == 1


def test_a_product_without_on_demand_terms_or_dollars_is_counted_as_unread():
    reserved = product("g6.xlarge", REGION, "0.3")
    reserved["terms"] = {"Reserved": reserved["terms"]["OnDemand"]}
    yuan = product("g6.2xlarge", REGION, "7")
    (term,) = yuan["terms"]["OnDemand"].values()
    (dimension,) = term["priceDimensions"].values()
    dimension["pricePerUnit"] = {"CNY": "7.0"}
    prices = read(reserved, yuan)
    assert prices.usd_per_h == {}
    assert prices.num_unread == 2
    assert prices.gaps[-1] == "2 rows of the price list could not be read"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.text(max_size=30) | json_values.map(json.dumps), max_size=5))
def test_whatever_lies_between_the_products_the_price_stays(rubbish):
    good = json.dumps(product("g6.xlarge", REGION, "0.8048"))
    assert read_products([*rubbish, good, *rubbish], REGION).usd_per_h == {"g6.xlarge": 0.8048}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(("0", "-1", "1.5", "2.5"))), max_size=8))
def test_the_order_of_the_rows_does_not_matter_and_no_bad_price_comes_out(rows):
    products = [product(f"g6.{name}", REGION, usd) for name, usd in rows]
    quotes = read(*products)
    assert quotes == read(*reversed(products))
    assert all(usd > 0 and math.isfinite(usd) for usd in quotes.usd_per_h.values())
    for name, usd in quotes.usd_per_h.items():
        numbers = {float(text) for letter, text in rows if f"g6.{letter}" == name}
        assert {price for price in numbers if price > 0} == {usd}


@needs_shared
@pytest.mark.shared
def test_the_sample_of_the_real_reply_is_read_where_it_has_what_newer_replies_have():
    sample = json.loads((SHARED / "prices/samples/aws_pricing_get_products_m5.large.json").read_text())
    attributes = sample["product"]["attributes"]
    assert read(sample).named == frozenset()
    # Of 2021, before regionCode and marketoption, and of no GPU machine.
    attributes |= {"regionCode": REGION, "marketoption": "OnDemand", "instanceFamily": "GPU instance"}
    assert read(sample).usd_per_h == {"m5.large": 0.096}
