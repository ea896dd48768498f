"""Machines and list prices of a region."""

import dataclasses
import json
import math
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Interval, Market
from advisor.pricing.price_history import spot_quantiles
from advisor.pricing.sources.aws import survey
from advisor.pricing.sources.aws.markets import LINUX, read_points
from advisor.pricing.sources.aws.survey import catalog_machines, described_machines, read_products
from advisor.pricing.sources.protocol import OfferQuery
from tests.clouds.aws_asking import ask, the_offer, usd_per_h
from tests.clouds.aws_world import NOW, SpotPrice, World, product, small_world
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


SPOT = "us-east-1 spot"


def quote(usd: str, *, zone: str = "us-east-1a", hours_ago: float = 1, **changes: Any) -> SpotPrice:
    facts: dict[str, Any] = {
        "region": "us-east-1", "zone_name": zone, "instance_type": "g6.xlarge", "usd_per_h": usd,
        "time": NOW - timedelta(hours=hours_ago),
    }  # fmt: skip
    return SpotPrice(**(facts | changes))


def quoting(*quotes: SpotPrice) -> World:
    return dataclasses.replace(small_world(), spot=quotes)


def test_zones_are_ids_and_the_newest_price_counts(aws):
    part = ask()[SPOT]
    assert usd_per_h(part) == {("g6.xlarge", "use1-az2"): 0.4, ("g6.xlarge", "use1-az1"): 0.25}
    assert all(offer.market is Market.SPOT for offer in part.offers)
    assert {offer.retrieved_at for offer in part.offers} == {NOW}


@pytest.mark.parametrize(("days", "usual"), [(90, 0.2), (20, 0.3)])
def test_quantiles_are_weighted_over_the_days_that_are_asked_for(aws, days, usual):
    """0.2 held for 50 of 90 days (from before the start), 0.3 for 30, 0.4 for 10."""
    offers = {offer.zone: offer for offer in ask(history_days=days)[SPOT].offers}
    assert offers["use1-az2"].spot_usd_per_h == Interval(p10=usual, p50=usual, p90=0.4)
    assert offers["use1-az1"].spot_usd_per_h == Interval(p10=0.25, p50=0.25, p90=0.25)


def test_all_points_are_history_with_their_own_times(aws):
    history = ask()[SPOT].history
    assert [(p.zone, p.usd_per_h, (NOW - p.observed_at).days) for p in history] == [
        ("use1-az1", 0.25, 50), ("use1-az2", 0.2, 100), ("use1-az2", 0.3, 40), ("use1-az2", 0.4, 10),
    ]  # fmt: skip
    assert {(p.provider, p.instance_type, p.region, p.market) for p in history} == {
        ("aws", "g6.xlarge", "us-east-1", Market.SPOT)
    }
    assert {p.observed_at.tzinfo for p in history} == {UTC}


def test_history_is_of_what_was_asked_for_alone(aws):
    assert ask(OfferQuery(gpus=("H100-SXM-80GB",)))[SPOT].history == ()


def test_pages_are_put_together(start):
    start()
    whole = ask()[SPOT]
    aws = start(page_size=1)
    assert ask()[SPOT] == whole
    assert aws.calls.count(("DescribeSpotPriceHistory", "us-east-1")) == 4


@pytest.mark.parametrize("other", ["0.09", "0.95"])
def test_a_quote_at_the_floor_is_told_and_not_offered_and_one_above_on_demand_is_kept(start, other):
    start(quoting(quote("0.0804"), quote(other, zone="us-east-1b")))
    part = ask()[SPOT]
    assert usd_per_h(part) == {("g6.xlarge", "use1-az1"): float(other)}
    assert "quotes at the floor of 10 % of on-demand (no demand): g6.xlarge in use1-az2" in part.gaps


@pytest.mark.parametrize("usd", ["0", "0.000000", "-0.1", "nan"])
def test_a_price_of_0_is_unknown_even_if_it_was_known_before(start, usd):
    start(quoting(quote("0.3", hours_ago=5), quote(usd, hours_ago=1), quote("0.2", zone="us-east-1b")))
    part = ask()[SPOT]
    assert usd_per_h(part) == {("g6.xlarge", "use1-az1"): 0.2}
    assert [p.usd_per_h for p in part.history] == [0.2, 0.3]
    assert "quotes that no such machine can have count as unknown: g6.xlarge in use1-az2" in part.gaps
    assert (part.place, part.unpriced) == (("aws", "us-east-1", Market.SPOT), ("g6.xlarge",))


def test_a_price_of_0_before_the_newest_is_only_skipped(start):
    start(quoting(quote("0", hours_ago=5), quote("0.3", hours_ago=1)))
    assert usd_per_h(ask()[SPOT]) == {("g6.xlarge", "use1-az2"): 0.3}


def test_other_products_and_local_zones_do_not_count(start):
    start(
        quoting(
            quote("0.3"),
            quote("0.2", product="Windows", hours_ago=0.5),
            quote("0.1", product="Red Hat Enterprise Linux", hours_ago=0.5),
            quote("0.15", zone="us-east-1-chi-1a"),
        )
    )
    part = ask()[SPOT]
    assert usd_per_h(part) == {("g6.xlarge", "use1-az2"): 0.3}
    assert "1 price in local or wavelength zones left out" in part.gaps


def test_what_was_not_asked_for_does_not_count(start):
    odd = (quote("0.2", product="Windows", hours_ago=0.5), quote("0.05", instance_type="m5.large"))
    start(quoting(quote("0.3"), *odd), honours_filters=False)
    part = ask()[SPOT]
    assert usd_per_h(part) == {("g6.xlarge", "use1-az2"): 0.3}
    assert {point.instance_type for point in part.history} == {"g6.xlarge"}


def test_a_price_that_is_no_number_fails_the_part(start):
    start(quoting(quote("cheap")))
    assert "cannot be read" in (ask()[SPOT].failure or "")


def test_a_machine_that_nobody_quotes_is_told(aws):
    assert "1 type without any spot quote: p5.48xlarge" in ask()[SPOT].gaps


def test_a_price_from_the_future_of_a_late_clock_counts(start):
    start(quoting(quote("0.2", hours_ago=24), quote("0.3", hours_ago=-24)))
    offer = the_offer(ask()[SPOT], "g6.xlarge")
    assert offer.usd_per_h == 0.3
    assert offer.spot_usd_per_h == Interval(p10=0.2, p50=0.2, p90=0.2)


# --- Reading -----------------------------------------------------------------------------------------

ZONES = {"us-east-1a": "use1-az2", "us-east-1b": "use1-az1"}
rows = st.lists(
    st.fixed_dictionaries(
        {
            "AvailabilityZone": st.sampled_from(("us-east-1a", "us-east-1b", "us-east-1-chi-1a")),
            "InstanceType": st.sampled_from(("g6.xlarge", "g5.xlarge")),
            "ProductDescription": st.sampled_from((LINUX, "Windows")),
            "SpotPrice": st.sampled_from(("0", "-1", "0.1", "0.2", "0.3")),
            "Timestamp": st.integers(0, 20).map(lambda h: datetime(2026, 11, 1, h, tzinfo=UTC)),
        }
    ),
    max_size=15,
)

MACHINES = catalog_machines()


@given(rows, st.randoms(use_true_random=False))
def test_neither_order_nor_repeats_of_the_rows_matter(drawn, rng):
    again = [*drawn, *drawn[:3]]
    rng.shuffle(again)
    read, twice = (read_points(r, "us-east-1", ZONES, MACHINES) for r in (drawn, again))
    assert (read.by_place, read.unsound) == (twice.by_place, twice.unsound)


@given(rows)
def test_points_are_sound_in_order_and_of_known_zones(drawn):
    read = read_points(drawn, "us-east-1", ZONES, MACHINES)
    for (instance_type, zone), points in read.by_place.items():
        assert points
        assert [p.observed_at for p in points] == sorted(p.observed_at for p in points)
        for point in points:
            assert (point.instance_type, point.zone) == (instance_type, zone)
            assert point.usd_per_h > 0
            assert zone in ZONES.values()
        start = points[0].observed_at
        interval = spot_quantiles(points, start=start, end=start + timedelta(days=1))
        assert interval is not None
        assert min(p.usd_per_h for p in points) <= interval.p10 <= interval.p90
    linux = [row for row in drawn if row["ProductDescription"] == LINUX]
    quoted = {(row["InstanceType"], ZONES.get(row["AvailabilityZone"])) for row in linux}
    assert set(read.by_place) | read.unsound == {place for place in quoted if place[1]}
