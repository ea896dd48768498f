"""Whatever a cloud replies, its prices are read, told as gaps or refused by an error of ours."""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from botocore import xform_name
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from advisor.core.values import Market
from advisor.pricing.providers import load_providers
from advisor.pricing.sources.aws.aws_calls import read_options
from advisor.pricing.sources.aws.markets import region_parts
from advisor.pricing.sources.aws.survey import SurveyedRegion, catalog_machines
from advisor.pricing.sources.gcp import client
from advisor.pricing.sources.gcp.client import ApiPatience, PullError, pull_skus
from advisor.pricing.sources.gcp.skus import load_machines, part_of, rates_of
from advisor.pricing.sources.gpuhunt import Retrieval, offers_of
from advisor.pricing.sources.protocol import OfferQuery, Part
from tests.clouds.aws_replies import EC2
from tests.clouds.aws_world import NOW, Block, small_world
from tests.gpuhunt_catalogs import item, parts_of, write
from tests.security.mutations import RAW, VALUES, damaged, documents, forms

fuzzed = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])

BLOCK = Block(region="us-east-1", zone_name="us-east-1a", instance_type="p5.48xlarge", fee_usd="900")
WORLD = replace(small_world(), blocks=(BLOCK,))
REGION = "us-east-1"
MARKETS = (Market.ON_DEMAND, Market.SPOT, Market.CAPACITY_BLOCK)
KEYS = {
    "DescribeAvailabilityZones": "AvailabilityZones",
    "DescribeInstanceTypeOfferings": "InstanceTypeOfferings",
    "DescribeInstanceTypes": "InstanceTypes",
    "DescribeSpotPriceHistory": "SpotPriceHistory",
    "DescribeCapacityBlockOfferings": "CapacityBlockOfferings",
}
ASKED = {"StartTime": "2026-01-01T00:00:00+00:00", "InstanceCount": "1", "InstanceType": "p5.48xlarge"}


def as_boto3(value: Any) -> Any:
    """Names as boto3 gives them: ``InstanceType`` for ``instanceType``."""
    if isinstance(value, dict):
        return {name[0].upper() + name[1:]: as_boto3(inner) for name, inner in value.items()}
    return [as_boto3(inner) for inner in value] if isinstance(value, list) else value


REPLIES = {name: {KEYS[name]: as_boto3(EC2[name][1](WORLD, REGION, ASKED))} for name in KEYS}
PRODUCTS = [product for product in WORLD.products if product["product"]["attributes"]["regionCode"] == REGION]


class StubClient:
    """Gives the replies, in the place of boto3's client."""

    def __init__(self, replies: dict[str, Any]) -> None:
        self._replies = {xform_name(name): reply for name, reply in replies.items() if isinstance(name, str)}
        self.meta = SimpleNamespace(config=SimpleNamespace(read_timeout=20.0))

    def can_paginate(self, _name: str) -> bool:
        return False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda **_arguments: copy.deepcopy(self._replies.get(name))


def parts(replies: dict[str, Any], rows: list[Any]) -> list[Part]:
    region = SurveyedRegion(
        name=REGION,
        ec2=StubClient(replies),
        pricing=StubClient({"GetProducts": {"PriceList": rows}}),
        query=OfferQuery(),
        options=read_options({"capacity_blocks": True}),
        catalog=catalog_machines(),
        clock=lambda: NOW,
    )
    return region_parts(region, MARKETS)


def assert_sound(parts: list[Part]) -> None:
    """Each market has its part, and no offer has a price that is none."""
    assert [part.scope for part in parts] == [f"{REGION} {market}" for market in MARKETS]
    for part in parts:
        assert all(offer.usd_per_h > 0 for offer in part.offers)


def test_the_replies_themselves_are_read():
    """Changing what was refused anyway would test nothing."""
    answered = parts(REPLIES, [json.dumps(product) for product in PRODUCTS])
    assert_sound(answered)
    assert all(part.failure is None and part.offers for part in answered)


def with_block(**changes: Any) -> dict[str, Any]:
    (block,) = REPLIES["DescribeCapacityBlockOfferings"]["CapacityBlockOfferings"]
    return {**REPLIES, "DescribeCapacityBlockOfferings": {"CapacityBlockOfferings": [block | changes]}}


@fuzzed
@given(replies=documents(REPLIES))
@example(with_block(CapacityBlockDurationHours=0))
@example(with_block(CapacityBlockDurationHours=-1))
@example(with_block(UpfrontFee="Infinity"))
def test_replies_of_ec2(replies):
    assert_sound(parts(replies, [json.dumps(product) for product in PRODUCTS]))


@fuzzed
@given(data=st.data())
def test_rows_of_the_price_list_of_aws(data):
    rows: list[Any] = [json.dumps(product) for product in PRODUCTS]
    at = data.draw(st.integers(0, len(rows) - 1))
    changed = data.draw(forms(PRODUCTS[at])).decode("latin-1")
    rows[at] = data.draw(st.just(changed) | st.sampled_from([*RAW, *VALUES]))
    assert_sound(parts(REPLIES, rows))


def gcp_sku(number: int, description: str, usage_type: str = "OnDemand", unit: str = "h") -> dict[str, Any]:
    rate = {"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": "1", "nanos": 5000 * number}}
    base_units = {"h": 3600, "GiBy.h": 2**30 * 3600}[unit]
    expression = {"usageUnit": unit, "tieredRates": [rate], "baseUnitConversionFactor": base_units}
    return {
        "skuId": f"SKU-{number}",
        "description": description,
        "category": {"usageType": usage_type},
        "serviceRegions": ["us-central1"],
        "pricingInfo": [{"pricingExpression": expression, "effectiveTime": "2026-08-03T00:00:00Z"}],
    }


PAGE = {
    "skus": [
        gcp_sku(1, "G2 Instance Core running in Americas"),
        gcp_sku(2, "G2 Instance Ram running in Americas", unit="GiBy.h"),
        gcp_sku(3, "Nvidia L4 GPU running in Americas"),
        gcp_sku(4, "Spot Preemptible G2 Instance Core in Americas", "Preemptible"),
    ],
    "nextPageToken": "",
}


def gcp_parts(payload: bytes | str) -> list[Part]:
    """Parts of what Google's library makes of a page."""
    from google.cloud.billing_v1.types import ListSkusResponse
    from google.protobuf.json_format import Parse

    def pages(_patience: ApiPatience, _on_error: Callable[[Exception], None]) -> Iterator[Any]:
        yield Parse(payload, ListSkusResponse.pb(ListSkusResponse()), ignore_unknown_fields=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "_pages", pages)
        rates = rates_of(pull_skus(ApiPatience()), NOW)
    return [
        part_of("us-central1", market, load_machines(), rates, retrieved_at=NOW)
        for market in (Market.ON_DEMAND, Market.SPOT)
    ]


@fuzzed
@given(payload=forms(PAGE))
def test_pages_of_gcp(payload):
    try:
        answered = gcp_parts(payload)
    except PullError:
        return
    assert all(offer.usd_per_h > 0 for part in answered for offer in part.offers)


def test_the_page_itself_is_read():
    """Changing what was refused anyway would test nothing."""
    on_demand, _ = gcp_parts(json.dumps(PAGE))
    assert {offer.gpu for offer in on_demand.offers} == {"L4"}


@fuzzed
@given(
    provider=st.sampled_from(["lambda", "aws", "gcp", "vast"]),
    changes=st.dictionaries(st.sampled_from(list(vars(item()))), st.sampled_from(VALUES), max_size=3),
)
def test_rows_of_gpuhunt(provider, changes):
    row = item("hostile")
    for name, value in changes.items():
        setattr(row, name, value)
    provider = load_providers()[provider]
    offers, gaps = offers_of([row, item()], provider, Retrieval(at=NOW, source="a test"))
    assert {"gpu_1x_a10", "1x A10"} & {offer.instance_type for offer in offers}
    assert all(isinstance(gap, str) for gap in gaps)


# gpuhunt leaves the file open where it cannot read it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@settings(fuzzed, max_examples=50)
@given(data=st.data())
def test_catalogs_of_gpuhunt(data, tmp_path):
    path = write(tmp_path, "lambdalabs", item(), item("gpu_8x_a100_80gb_sxm4", 10.0, gpu_count=8))
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    (part,) = parts_of(tmp_path, "lambda")
    assert part.offers or part.failure or part.gaps
