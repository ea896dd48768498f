"""Placement scores, quotas and buckets."""

import dataclasses
from datetime import timedelta

import boto3
import pytest
from moto.server import ThreadedMotoServer

from advisor.core.errors import CloudError
from advisor.core.values import Market
from advisor.pricing.sources.aws.account import (
    PlacementScore,
    VcpuQuota,
    bucket_region,
    placement_scores,
    vcpu_quotas,
)
from advisor.pricing.sources.aws.aws_calls import AwsOptions
from advisor.pricing.sources.protocol import OfferQuery
from tests.clouds.aws_asking import ask, the_offer, usd_per_h
from tests.clouds.aws_server import DENIED, DENIED_JSON, SECRET, Fault
from tests.clouds.aws_world import NOW, Block, World, small_world

OPTIONS = AwsOptions(max_attempts=1, timeout_s=60.0)


@pytest.fixture(scope="module")
def moto_url():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    client = boto3.client("s3", "us-east-1", endpoint_url=url, **keys)
    client.create_bucket(Bucket="photos")
    for name, region in (("texts", "eu-central-1"), ("old", "EU")):
        client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": region})
    yield url
    server.stop()


@pytest.fixture(autouse=True)
def s3(moto_url, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto_url)


@pytest.mark.parametrize(
    ("bucket", "region"), [("photos", "us-east-1"), ("texts", "eu-central-1"), ("old", "eu-west-1")]
)
def test_a_bucket_says_where_it_lies(bucket, region):
    assert bucket_region(bucket, OPTIONS) == region


@pytest.mark.parametrize(("bucket", "words"), [("nobodys", "NoSuchBucket"), ("No such name", r"\w")])
def test_a_bucket_that_is_not_there_or_cannot_be_is_an_error_in_words(bucket, words):
    with pytest.raises(CloudError, match=words):
        bucket_region(bucket, OPTIONS)


BLOCKS = "us-east-1 capacity-block"
ONCE = AwsOptions(max_attempts=1)


def selling(*blocks: Block) -> World:
    return dataclasses.replace(small_world(), blocks=blocks)


def block(fee_usd: str, zone: str = "us-east-1a", **changes: object) -> Block:
    facts = {
        "region": "us-east-1", "zone_name": zone, "instance_type": "p5.48xlarge", "fee_usd": fee_usd,
    }  # fmt: skip
    return Block(**(facts | changes))  # type: ignore[arg-type]


def test_blocks_are_asked_for_on_request_only(start):
    aws = start(selling(block("755.14")))
    assert BLOCKS not in ask()
    assert "DescribeCapacityBlockOfferings" not in {name for name, _ in aws.calls}
    assert BLOCKS in ask(capacity_blocks=True)
    assert BLOCKS not in ask(OfferQuery(markets=(Market.SPOT,)), capacity_blocks=True)


def test_the_price_per_hour_is_the_fee_over_the_hours(start):
    start(selling(block("755.136"), block("2000.00", hours=48, zone="us-east-1b")))
    part = ask(capacity_blocks=True)[BLOCKS]
    assert usd_per_h(part) == {
        ("p5.48xlarge", "use1-az2"): pytest.approx(31.464),
        ("p5.48xlarge", "use1-az1"): pytest.approx(2000 / 48),
    }
    first = next(offer for offer in part.offers if offer.zone == "use1-az2")
    assert first.market is Market.CAPACITY_BLOCK
    assert first.minimum_billed_s == first.billed_step_s == 24 * 3600
    assert f"{NOW + timedelta(days=3):%Y-%m-%d}" in first.source


def test_of_several_blocks_the_cheapest_counts(start):
    start(selling(block("800"), block("700"), block("900")))
    offer = the_offer(ask(capacity_blocks=True)[BLOCKS], "p5.48xlarge")
    assert offer.usd_per_h == pytest.approx(700 / 24)


@pytest.mark.parametrize(
    "odd", [block("0"), block("-5"), block("700", currency="CNY"), block("700", zone="us-east-1-chi-1a")]
)
def test_a_block_without_a_fee_or_a_zone_is_told(start, odd):
    start(selling(odd))
    part = ask(capacity_blocks=True)[BLOCKS]
    assert part.offers == ()
    assert "blocks without a known zone or a fee above 0 in US dollars: p5.48xlarge" in part.gaps


def test_blocks_that_may_not_be_seen_fail_alone(start):
    start(selling(block("700"))).fail("DescribeCapacityBlockOfferings", DENIED)
    parts = ask(capacity_blocks=True)
    assert "ec2:DescribeCapacityBlockOfferings" in (parts[BLOCKS].failure or "")
    assert parts["us-east-1 on-demand"].offers


# --- Scores and quotas -------------------------------------------------------------------------------


def test_scores_come_best_first(start):
    scores = (("us-east-1", "use1-az1", 3), ("eu-west-1", "euw1-az3", 9), ("us-east-1", "use1-az2", 9))
    start(dataclasses.replace(small_world(), scores=scores))
    rows = placement_scores(["p5.48xlarge"], num_instances=2, regions=["us-east-1"], options=ONCE)
    assert rows[0] == PlacementScore(region="eu-west-1", zone="euw1-az3", score=9)
    assert [score.score for score in rows] == [9, 9, 3]


def test_quotas_are_vcpus_by_family_and_market(start):
    quotas = {"L-DB2E81BA": 64.0, "L-417A185B": 0.0, "L-3819A6DF": 96.0}
    start(dataclasses.replace(small_world(), quotas=quotas))
    assert vcpu_quotas("us-east-1", options=ONCE) == tuple(
        VcpuQuota(
            region="us-east-1", market=market, families=families, code=code, num_vcpus=int(quotas[code])
        )
        for market, families, code in (
            (Market.ON_DEMAND, ("g", "vt"), "L-DB2E81BA"),
            (Market.ON_DEMAND, ("p",), "L-417A185B"),
            (Market.SPOT, ("g", "vt"), "L-3819A6DF"),
        )
    )


@pytest.mark.parametrize(
    ("fault", "words"), [(DENIED_JSON, "allow the IAM action"), (Fault(status=500, code="X"), "on its side")]
)
def test_both_refuse_politely(aws, fault, words):
    aws.fail("GetSpotPlacementScores", fault)
    aws.fail("GetServiceQuota", fault)
    with pytest.raises(CloudError, match=words) as scores:
        placement_scores(["g6.xlarge"], num_instances=1, regions=["us-east-1"], options=ONCE)
    with pytest.raises(CloudError, match=words) as quotas:
        vcpu_quotas("us-east-1", options=ONCE)
    assert "ec2:GetSpotPlacementScores" in str(scores.value)
    assert "servicequotas:GetServiceQuota" in str(quotas.value)
    assert SECRET not in str(scores.value) + str(quotas.value)


def test_without_credentials_both_say_so(aws, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(CloudError, match="no AWS credentials"):
        placement_scores(["g6.xlarge"], num_instances=1, regions=["us-east-1"], options=ONCE)
    with pytest.raises(CloudError, match="no AWS credentials"):
        vcpu_quotas("us-east-1", options=ONCE)
