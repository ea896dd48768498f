"""Spot prices of AWS: zones by ID, newest price, history, and quotes that are none."""

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Interval, Market
from advisor.pricing.price_history import spot_quantiles
from advisor.pricing.sources.aws.markets import LINUX, read_points
from advisor.pricing.sources.aws.survey import catalog_machines
from advisor.pricing.sources.protocol import OfferQuery
from tests.clouds.aws_asking import ask, the_offer, usd_per_h
from tests.clouds.aws_world import NOW, SpotPrice, World, small_world

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
