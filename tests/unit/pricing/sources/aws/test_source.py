"""The source over a fake AWS: regions, parts, and trouble that stays where it is."""

import dataclasses
import threading
from datetime import timedelta

import pytest

from advisor.core.values import Market
from advisor.pricing.sources.aws import aws_source
from advisor.pricing.sources.protocol import OfferQuery
from tests.clouds.aws_asking import ask, the_offer, usd_per_h
from tests.clouds.aws_server import (
    BROKEN,
    CUT_OFF,
    DENIED,
    DENIED_JSON,
    DROPPED,
    GARBLED,
    SECRET,
    SLOW,
    THROTTLED,
    Fault,
)
from tests.clouds.aws_world import NOW, many_regions, product, small_world, with_traps

SCOPES = {f"{region} {market}" for region in ("us-east-1", "eu-west-1") for market in ("on-demand", "spot")}


def test_each_region_and_market_is_a_part(aws):
    parts = ask()
    assert parts.keys() == SCOPES
    assert not any(part.failure for part in parts.values())
    assert usd_per_h(parts["us-east-1 on-demand"]) == {
        ("g6.xlarge", None): 0.8048, ("p5.48xlarge", None): 55.04,
    }  # fmt: skip
    assert usd_per_h(parts["eu-west-1 on-demand"]) == {("g6.xlarge", None): 0.9}
    assert usd_per_h(parts["us-east-1 spot"]) == {
        ("g6.xlarge", "use1-az2"): 0.4, ("g6.xlarge", "use1-az1"): 0.25,
    }  # fmt: skip


def test_an_offer_has_the_machine_in_our_units(aws):
    offer = the_offer(ask()["us-east-1 on-demand"], "p5.48xlarge")
    assert (offer.provider, offer.region, offer.zone) == ("aws", "us-east-1", None)
    assert (offer.gpu, offer.num_gpus, offer.num_vcpus) == ("H100-SXM-80GB", 8, 192)
    assert offer.includes[:2] == ("192 vCPU", "2048 GiB RAM")
    assert offer.list_usd_per_h == offer.usd_per_h == 55.04
    assert (offer.minimum_billed_s, offer.billed_step_s) == (60.0, 1.0)
    assert offer.retrieved_at == NOW
    assert offer.source == "AWS price list"


@pytest.mark.parametrize(
    ("query", "scopes", "num_offers"),
    [
        (OfferQuery(regions=("us-*",)), {"us-east-1 on-demand", "us-east-1 spot"}, 4),
        (OfferQuery(regions=("US-EAST-1",), markets=(Market.SPOT,)), {"us-east-1 spot"}, 2),
        (OfferQuery(gpus=("H100-SXM-80GB",)), SCOPES, 1),
        (OfferQuery(num_gpus=(1,), max_usd_per_h=0.5), SCOPES, 2),
        (OfferQuery(regions=("mars-*",)), {"regions"}, 0),
        (OfferQuery(markets=(Market.RESERVED,)), set(), 0),
        (OfferQuery(providers=("gcp",)), set(), 0),
    ],
)
def test_a_query_narrows(aws, query, scopes, num_offers):
    parts = ask(query)
    assert parts.keys() == scopes
    offers = [offer for part in parts.values() for offer in part.offers]
    assert len(offers) == num_offers
    assert all(map(query.matches, offers))


def test_regions_that_nobody_has_are_told(aws):
    (part,) = ask(OfferQuery(regions=("mars-*", "us-esat-1"))).values()
    assert part.gaps == ("no region of this account matches mars-*, us-esat-1",)
    assert part.failure is None


def test_what_is_not_wanted_is_not_asked_for(aws):
    ask(OfferQuery(providers=("gcp",)))
    ask(OfferQuery(markets=(Market.CALENDAR,)))
    assert aws.calls == []
    ask(OfferQuery(regions=("eu-*",)))
    assert {region for name, region in aws.calls if name != "DescribeRegions"} == {"eu-west-1"}


# --- Without being let in ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("AWS_ACCESS_KEY_ID", "", "no AWS credentials were found"),
        ("AWS_PROFILE", "nobody", "ProfileNotFound"),
        ("AWS_ENDPOINT_URL_EC2", "http://127.0.0.1:9", "cannot be reached"),
    ],
)
def test_who_is_not_let_in_is_told_in_one_part(aws, monkeypatch, name, value, words):
    monkeypatch.setenv(name, value)
    parts = ask()
    assert parts.keys() == {"regions"}
    assert words in (parts["regions"].failure or "")
    assert aws.calls == []


# --- Faults ------------------------------------------------------------------------------------------

FAULTS = {
    "eu-throttled-1": (THROTTLED, "throttled"),
    "eu-broken-1": (BROKEN, "on its side"),
    "eu-dropped-1": (DROPPED, "cut off"),
    "eu-cutoff-1": (CUT_OFF, "cut off or garbled"),
    "eu-garbled-1": (GARBLED, "cut off or garbled"),
    "eu-empty-1": (Fault(body=b"{}"), "cut off or garbled"),
    "eu-expired-1": (Fault(status=400, code="ExpiredToken"), "session has expired"),
    "eu-clock-1": (Fault(status=403, code="RequestTimeTooSkewed"), "check the clock"),
    "eu-signature-1": (Fault(status=403, code="SignatureDoesNotMatch"), "check the clock"),
    "eu-keys-1": (Fault(status=401, code="AuthFailure"), "sign in again"),
}
CALLS = {
    "DescribeRegions": ("ec2:DescribeRegions", None),
    "GetProducts": ("pricing:GetProducts", "on-demand"),
    "DescribeSpotPriceHistory": ("ec2:DescribeSpotPriceHistory", "spot"),
    "DescribeAvailabilityZones": ("ec2:DescribeAvailabilityZones", "spot"),
}


@pytest.mark.parametrize("operation", [name for name, (_, market) in CALLS.items() if market])
def test_a_fault_fails_its_part_alone(start, operation):
    """Each region has a fault of its own, and one has none."""
    aws = start(many_regions(["us-east-1", *FAULTS]))
    for region, (fault, _) in FAULTS.items():
        aws.fail(operation, fault, region=region)
    parts = ask()
    _, market = CALLS[operation]
    assert {scope for scope, part in parts.items() if part.failure} == {f"{r} {market}" for r in FAULTS}
    for region, (_, words) in FAULTS.items():
        part = parts[f"{region} {market}"]
        assert words in (part.failure or "")
        assert part.offers == part.history == part.gaps == ()
    assert all(len(part.offers) == 1 for part in parts.values() if not part.failure)
    assert_no_secrets(parts.values())


@pytest.mark.parametrize("fault", FAULTS)
def test_without_the_list_of_regions_one_part_says_why(aws, fault):
    how, words = FAULTS[fault]
    aws.fail("DescribeRegions", how)
    parts = ask()
    assert parts.keys() == {"regions"}
    assert words in (parts["regions"].failure or "")
    assert_no_secrets(parts.values())


@pytest.mark.parametrize("operation", CALLS)
def test_a_missing_permission_names_the_action(aws, operation):
    action, market = CALLS[operation]
    aws.fail(operation, DENIED_JSON if operation == "GetProducts" else DENIED)
    failure = ask()[f"us-east-1 {market}" if market else "regions"].failure or ""
    assert f"allow the IAM action {action}" in failure
    assert SECRET not in failure


@pytest.mark.parametrize("operation", CALLS)
def test_who_never_answers_is_given_up(aws, operation):
    _, market = CALLS[operation]
    aws.fail(operation, SLOW, region="us-east-1")
    part = ask(timeout_s=0.3)[f"us-east-1 {market}" if market else "regions"]
    assert "did not answer" in (part.failure or "")


def test_one_hiccup_is_tried_again(aws):
    for operation in CALLS:
        aws.fail(operation, BROKEN, region="us-east-1", times=1)
    parts = ask(max_attempts=2)
    assert parts.keys() == SCOPES
    assert not any(part.failure for part in parts.values())
    assert aws.calls.count(("GetProducts", "us-east-1")) == 2


def test_a_fault_on_a_later_page_fails_the_whole_part(start):
    """Half a history would pass for all of it."""
    aws = start(page_size=2)
    aws.fail("DescribeSpotPriceHistory", CUT_OFF, times=1)
    aws.fail("DescribeSpotPriceHistory", BROKEN, region="us-east-1", times=1)
    part = ask()["us-east-1 spot"]
    assert part.failure
    assert part.offers == part.history == ()


def test_a_region_in_trouble_does_not_touch_the_others(aws):
    for operation in ("GetProducts", "DescribeSpotPriceHistory", "DescribeInstanceTypeOfferings"):
        aws.fail(operation, BROKEN, region="us-east-1")
    parts = ask()
    assert {scope for scope, part in parts.items() if part.failure} == {
        "us-east-1 on-demand",
        "us-east-1 spot",
    }
    assert usd_per_h(parts["eu-west-1 on-demand"]) == {("g6.xlarge", None): 0.9}


def test_without_list_prices_spot_prices_still_come(aws):
    aws.fail("GetProducts", DENIED_JSON)
    part = ask()["us-east-1 spot"]
    assert len(part.offers) == 2
    assert any("floor of 10 % of on-demand could not be distinguished" in gap for gap in part.gaps)
    assert any("types newer than the catalog are left out" in gap for gap in part.gaps)


def test_without_leave_to_see_what_is_offered_prices_stay_and_it_is_said(aws):
    aws.fail("DescribeInstanceTypeOfferings", DENIED)
    parts = ask()
    assert len(parts["us-east-1 on-demand"].offers) == 2
    assert len(parts["us-east-1 spot"].offers) == 2
    (gap,) = (gap for gap in parts["us-east-1 on-demand"].gaps if "could not be checked" in gap)
    assert "ec2:DescribeInstanceTypeOfferings" in gap


def test_who_stops_early_leaves_no_call_behind(aws):
    parts = aws_source({"max_attempts": 1}).offers(OfferQuery())
    next(iter(parts))
    parts.close()  # type: ignore[attr-defined]
    for thread in [t for t in threading.enumerate() if t.name.startswith("aws")]:
        thread.join(timeout=60)
        assert not thread.is_alive()


def assert_no_secrets(parts: object) -> None:
    text = repr(list(parts))  # type: ignore[call-overload]
    assert not [word for word in SECRET.split() if word in text]


# --- On-demand ---------------------------------------------------------------------------------------


def test_a_price_where_nobody_can_start_the_type_is_left_out_and_told(start):
    world = small_world()
    start(dataclasses.replace(world, offered=world.offered - {("p5.48xlarge", "us-east-1")}))
    part = ask()["us-east-1 on-demand"]
    assert usd_per_h(part) == {("g6.xlarge", None): 0.8048}
    assert "1 list price of types that the region does not offer left out: p5.48xlarge" in part.gaps
    assert part.unpriced == (), "it is not for rent, whatever its price"


def test_a_type_on_offer_without_a_list_price_is_told(start):
    world = small_world()
    start(dataclasses.replace(world, offered=world.offered | {("p5e.48xlarge", "us-east-1")}))
    part = ask()["us-east-1 on-demand"]
    assert "1 type on offer without a list price: p5e.48xlarge" in part.gaps
    assert (part.place, part.unpriced) == (("aws", "us-east-1", Market.ON_DEMAND), ("p5e.48xlarge",))


def test_an_empty_price_list_of_a_region_with_machines_is_a_failure(start):
    """What was known of the region must stay."""
    start(dataclasses.replace(small_world(), products=()))
    assert "names no GPU machine" in (ask()["us-east-1 on-demand"].failure or "")


def test_pages_of_the_price_list_are_put_together(start):
    aws = start(page_size=1)
    assert len(ask()["us-east-1 on-demand"].offers) == 2
    assert aws.calls.count(("GetProducts", "us-east-1")) == 2


@pytest.mark.parametrize("honours_filters", [True, False])
def test_traps_change_nothing_but_for_the_new_machine(start, honours_filters):
    start()
    plain = ask()["us-east-1 on-demand"]
    start(with_traps(small_world(), "g6.xlarge", "us-east-1"), honours_filters=honours_filters)
    part = ask()["us-east-1 on-demand"]
    new = the_offer(part, "p9.48xlarge")
    assert set(part.offers) - {new} == set(plain.offers)
    assert (new.gpu, new.num_gpus, new.num_vcpus, new.usd_per_h) == ("aws B400", 8, 256, 200.0)
    assert new.includes == ("256 vCPU", "16 GiB RAM", "30.4 TB local SSD")
    text = "\n".join(part.gaps)
    for words in (
        "GPUs that the catalog lacks keep AWS's name: aws B400 with 400 GiB",
        "types with a fraction of a GPU are left out: g6f.large",
        "types without GPUs of NVIDIA or AMD are left out: dl9.24xlarge",
        "count as unknown: g6.xlarge, g9.negative, g9.zero",
        "AWS lists different prices for one type, so none is taken: g9.twice",
    ):
        assert words in text


def test_new_types_that_cannot_be_described_are_told_and_the_rest_stays(start):
    aws = start(with_traps(small_world(), "g6.xlarge", "us-east-1"))
    aws.fail("DescribeInstanceTypes", DENIED)
    part = ask()["us-east-1 on-demand"]
    assert {offer.instance_type for offer in part.offers} == {"g6.xlarge", "p5.48xlarge"}
    (gap,) = (gap for gap in part.gaps if "newer than the catalog" in gap)
    assert "p9.48xlarge" in gap
    assert "ec2:DescribeInstanceTypes" in gap


def test_a_type_that_nobody_describes_is_told(start):
    world = small_world()
    start(dataclasses.replace(world, products=(*world.products, product("g99.large", "us-east-1", "1"))))
    gaps = ask()["us-east-1 on-demand"].gaps
    assert "types that EC2 does not describe here are left out: g99.large" in gaps


def test_a_clock_that_is_wrong_by_a_day_changes_the_dates_alone(aws):
    source = aws_source({"max_attempts": 1})
    for days in (-1, 1):
        source._clock = lambda days=days: NOW + timedelta(days=days)  # type: ignore[misc]
        parts = {part.scope: part for part in source.offers(OfferQuery())}
        assert usd_per_h(parts["us-east-1 spot"])[("g6.xlarge", "use1-az2")] == 0.4
        assert the_offer(parts["eu-west-1 on-demand"], "g6.xlarge").retrieved_at == NOW + timedelta(days=days)
