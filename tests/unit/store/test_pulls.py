"""Current offers and pulls, and the history of prices: what adds to it, answers, and is forgotten."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import sqlalchemy as sa

from advisor.core.errors import StoreError
from advisor.core.values import Interval, Market, Offer, PricePoint
from advisor.store import schema
from advisor.store.database import open_store
from advisor.store.handle import Store
from advisor.store.pulls import (
    Pull,
    current_offers,
    forget_points,
    price_points,
    pulls,
    save_failure,
    save_part,
)
from tests.builders import make_offer

AT = datetime(2026, 11, 1, 12, tzinfo=UTC)
LATER = AT + timedelta(hours=1)


def test_an_offer_comes_back_as_it_was(store):
    offer = make_offer(
        zone="use1-az4",
        market=Market.SPOT,
        list_usd_per_h=0.1 + 0.2,
        contracted_usd_per_h=1 / 3,
        effective_usd_per_h=5e-324,
        spot_usd_per_h=Interval(p10=0.1, p50=0.1 + 0.2, p90=1e17 + 1),
        includes=("local disk", 'Größe, "quoted"\n\''),
        num_vcpus=96,
        retrieved_at=datetime(2026, 11, 1, 12, 30, 15, 123456, tzinfo=UTC),
        source="https://example.org/?a=b%20c",
    )
    plain = make_offer()
    save_part(store, "aws", "all", [offer, plain], (), (), AT)
    assert current_offers(store, "aws") == (offer, plain)


def test_times_of_any_zone_come_back_in_utc(store):
    there = timezone(timedelta(hours=-7))
    save_part(
        store, "aws", "all", [make_offer(retrieved_at=AT.astimezone(there))], (), (), LATER.astimezone(there)
    )
    (offer,), (pull,) = current_offers(store, "aws"), pulls(store)
    assert pull.succeeded_at == LATER
    for moment, expected in ((offer.retrieved_at, AT), (pull.succeeded_at, LATER)):
        assert moment.isoformat() == expected.isoformat()


def test_a_part_replaces_its_scope_alone(store):
    old, new, other = (make_offer(name) for name in ("OLD", "NEW", "OTHER"))
    save_part(store, "aws", "us-east-1", [old], (), (), AT)
    save_part(store, "aws", "us-west-2", [other], (), (), AT)
    save_part(store, "gcp", "us-east-1", [other], (), (), AT)
    save_part(store, "aws", "us-east-1", [new], (), (), LATER)
    assert current_offers(store, "aws") == (new, other)
    save_part(store, "aws", "us-east-1", [], (), (), LATER)
    assert current_offers(store, "aws") == (other,)
    assert [pull.num_offers for pull in pulls(store, "aws")] == [0, 1]
    assert current_offers(store, "gcp") == (other,)


def test_offers_keep_the_order_of_their_part_and_scopes_are_sorted(store):
    parts = {scope: [make_offer(f"{scope}{i}") for i in (3, 1, 2)] for scope in ("b", "a")}
    for scope, offers in parts.items():
        save_part(store, "aws", scope, offers, (), (), AT)
    assert [offer.gpu for offer in current_offers(store, "aws")] == ["a3", "a1", "a2", "b3", "b1", "b2"]


def test_a_failure_keeps_offers_with_their_age(store):
    offer = make_offer()
    save_part(store, "aws", "us-east-1", [offer], (), ("no spot prices in az5",), AT)
    save_failure(store, "aws", "us-east-1", "throttled; try again later", LATER)
    assert current_offers(store, "aws") == (offer,)
    assert pulls(store) == (
        Pull(
            source="aws",
            scope="us-east-1",
            num_offers=1,
            succeeded_at=AT,
            failed_at=LATER,
            failure="throttled; try again later",
            gaps=("no spot prices in az5",),
        ),
    )


def test_a_success_ends_a_failure(store):
    save_failure(store, "aws", "us-east-1", "no credentials", AT)
    (failed,) = pulls(store)
    assert (failed.succeeded_at, failed.num_offers, failed.gaps) == (None, 0, ())
    save_part(store, "aws", "us-east-1", [make_offer()], (), (), LATER)
    (pull,) = pulls(store)
    assert (pull.succeeded_at, pull.failed_at, pull.failure) == (LATER, None, None)


def test_an_answer_does_not_replace_that_to_a_later_question(store):
    """Such as one of a refresh that slept with its laptop while another one finished."""
    new, old = make_offer("NEW", 1.0, retrieved_at=LATER), make_offer("OLD", 2.0, retrieved_at=AT)
    save_part(store, "aws", "us-east-1", [new], (), ("gap",), LATER)
    before = current_offers(store, "aws"), pulls(store), price_points(store)
    save_part(store, "aws", "us-east-1", [old], (), (), AT)
    save_failure(store, "aws", "us-east-1", "throttled", AT)
    assert (current_offers(store, "aws"), pulls(store), price_points(store)) == before
    save_part(store, "aws", "us-west-2", [old], (), (), AT)
    assert current_offers(store, "aws") == (new, old)


def test_a_failure_since_does_not_keep_out_an_answer(store):
    save_failure(store, "aws", "us-east-1", "throttled", LATER)
    save_part(store, "aws", "us-east-1", [make_offer()], (), (), AT)
    assert current_offers(store, "aws") == (make_offer(),)


def test_pulls_of_one_source(store):
    for source, scope in (("gcp", "b"), ("gcp", "a"), ("aws", "c")):
        save_part(store, source, scope, (), (), (), AT)
    assert [(pull.source, pull.scope) for pull in pulls(store)] == [("aws", "c"), ("gcp", "a"), ("gcp", "b")]
    assert [pull.scope for pull in pulls(store, "gcp")] == ["a", "b"]


def test_a_time_without_a_zone_is_refused_and_nothing_changes(store):
    naive = AT.replace(tzinfo=None)
    with pytest.raises(StoreError, match="has no time zone"):
        save_part(store, "aws", "us-east-1", [make_offer(retrieved_at=naive)], (), (), AT)
    with pytest.raises(StoreError, match="has no time zone"):
        save_failure(store, "aws", "us-east-1", "why", naive)
    assert pulls(store) == ()


def test_text_that_no_database_takes_is_an_error_of_ours(store):
    with pytest.raises(StoreError):
        save_part(store, "aws", "us-east-1", [make_offer(source="\ud800")], (), (), AT)
    assert pulls(store) == ()


def test_a_pull_tells_its_place_and_what_had_no_price_there_until_the_next_success(store):
    place = ("gcp", "us-east1", Market.SPOT)
    save_part(store, "gcp", "us-east1 spot", (), (), ("x: no SKU",), AT, place=place, unpriced=("x", "y"))
    (pull,) = pulls(store)
    assert (pull.place, pull.unpriced) == (place, ("x", "y"))
    save_failure(store, "gcp", "us-east1 spot", "down", AT + timedelta(minutes=1))
    (pull,) = pulls(store)
    assert (pull.place, pull.unpriced, pull.failure) == (place, ("x", "y"), "down")
    save_part(store, "gcp", "us-east1 spot", (), (), (), AT + timedelta(minutes=2), place=place)
    (pull,) = pulls(store)
    assert (pull.place, pull.unpriced, pull.failure) == (place, (), None)


NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def at(hours: float) -> datetime:
    return NOON + timedelta(hours=hours)


def make_point(hours: float = 0, usd_per_h: float = 1.0, **changes: Any) -> PricePoint:
    facts: dict[str, Any] = {
        "provider": "aws",
        "instance_type": "x.xlarge",
        "region": "us-east-1",
        "zone": None,
        "market": Market.SPOT,
        "usd_per_h": usd_per_h,
        "observed_at": at(hours),
    }
    return PricePoint(**(facts | changes))


def spot(hours: float = 0, usd_per_h: float = 1.0, **changes: Any) -> Offer:
    return make_offer(usd_per_h=usd_per_h, market=Market.SPOT, retrieved_at=at(hours), **changes)


def save(store: Store, *offers: Offer, history: tuple[PricePoint, ...] = (), source: str = "aws") -> None:
    save_part(store, source, "all", offers, history, (), NOON)


def curve(store: Store, **limits: Any) -> list[tuple[float, float]]:
    """Hours and prices."""
    return [((p.observed_at - NOON) / timedelta(hours=1), p.usd_per_h) for p in price_points(store, **limits)]


def test_points_are_not_doubled_and_known_ones_stay_as_they_are(store):
    history = tuple(make_point(hours, 2.0) for hours in range(5))
    for again in (history, history, history[3:], (make_point(0, 9.0),)):
        save(store, spot(5), history=again)
    assert curve(store) == [(0, 2.0), (1, 2.0), (2, 2.0), (3, 2.0), (4, 2.0), (5, 1.0)]


@pytest.mark.parametrize("market", [Market.SPOT, Market.ON_DEMAND])
def test_an_offer_adds_a_point_when_its_price_changes(store, market):
    for hours, usd_per_h in ((0, 1.0), (1, 1.0), (2, 3.0), (3, 3.0), (4, 1.0)):
        save(store, make_offer(usd_per_h=usd_per_h, market=market, retrieved_at=at(hours)))
    assert curve(store, markets=(market,)) == [(0, 1.0), (2, 3.0), (4, 1.0)]


def test_an_offer_at_the_price_of_its_own_history_adds_nothing(store):
    save(store, spot(5, 2.0), history=(make_point(1, 3.0), make_point(2, 2.0)))
    assert curve(store) == [(1, 3.0), (2, 2.0)]


def test_an_old_offer_is_compared_with_the_price_of_its_time(store):
    save(store, history=(make_point(1, 1.0), make_point(5, 2.0)))
    save(store, spot(3, 1.0))
    assert curve(store) == [(1, 1.0), (5, 2.0)]
    save(store, spot(3, 1.5))
    assert curve(store) == [(1, 1.0), (3, 1.5), (5, 2.0)]


def test_what_is_paid_is_remembered_not_the_list_price(store):
    save(store, make_offer(usd_per_h=4.0, contracted_usd_per_h=3.0, effective_usd_per_h=2.0))
    assert [p.usd_per_h for p in price_points(store)] == [2.0]


@pytest.mark.parametrize("market", sorted(set(Market) - {Market.SPOT, Market.ON_DEMAND}))
def test_other_markets_have_no_history_of_their_own(store, market):
    save(store, make_offer(market=market))
    assert price_points(store) == ()
    assert len(current_offers(store, "aws")) == 1


def test_of_two_offers_of_one_machine_and_place_the_cheaper_is_remembered(store):
    for _ in range(2):
        save(store, spot(0, 2.0), spot(0, 1.0, num_gpus=2), spot(0, 3.0, zone="a"))
    assert sorted((p.zone or "", p.usd_per_h) for p in price_points(store)) == [("", 1.0), ("a", 3.0)]


def test_two_sources_do_not_disturb_each_other(store):
    for hours in range(3):
        save(store, spot(hours, 1.0), source="aws")
        save(store, spot(hours + 0.5, 2.0), source="gpuhunt")
    assert curve(store, sources=("aws",)) == [(0, 1.0)]
    assert curve(store, sources=("gpuhunt",)) == [(0.5, 2.0)]
    assert {point.source: point.usd_per_h for point in price_points(store)} == {"aws": 1.0, "gpuhunt": 2.0}


def test_history_by_gpu_takes_it_from_the_offers(store):
    save(
        store,
        spot(0, gpu="Y", instance_type="x.xlarge"),
        history=(make_point(-1, 2.0), make_point(-1, 2.0, instance_type="other")),
    )
    assert curve(store, gpus=("Y",)) == [(-1, 2.0), (0, 1.0)]
    assert len(price_points(store)) == 3


def test_a_gpu_may_become_known_or_renamed_later(store):
    save(store, history=(make_point(-1, 2.0),))
    assert curve(store, gpus=("A", "B")) == []
    for gpu in ("A", "B"):
        save(store, spot(0, gpu=gpu, instance_type="x.xlarge"))
        assert curve(store, gpus=(gpu,)) == [(-1, 2.0), (0, 1.0)]
    assert curve(store, gpus=("A",)) == []
    save(store, history=(make_point(-2, 2.0),))
    assert len(curve(store, gpus=("B",))) == 3


def test_limits_hold_together(store):
    history = tuple(
        make_point(hours, 1.0, provider=provider, instance_type=kind, region=region, market=market)
        for hours in (0, 1)
        for provider in ("aws", "gcp")
        for kind in ("s", "t")
        for region in ("us", "eu")
        for market in (Market.SPOT, Market.ON_DEMAND)
    )
    save(store, history=history)
    assert len(price_points(store)) == len(history) == 32
    for name, value in (
        ("providers", "gcp"), ("instance_types", "t"), ("regions", "eu"), ("markets", Market.SPOT),
    ):  # fmt: skip
        points = price_points(store, **{name: (value,)})
        field = "market" if name == "markets" else name.removesuffix("s")
        assert points == tuple(p for p in price_points(store) if getattr(p, field) == value)
        assert len(points) == 16
    limits = {
        "providers": ("aws", "gcp"),
        "instance_types": ("t",),
        "regions": ("eu",),
        "markets": (Market.SPOT,),
    }
    assert len(price_points(store, **limits, since=at(1))) == 2


def test_since_brings_what_was_in_force_then_of_each_series(store):
    """One that changed twice before, one that changed at that moment, one that began later, one at rest."""
    for zone, hours in (("a", (0, 1, 5)), ("b", (0, 3)), ("c", (4,)), ("d", (-4800,))):
        save(store, history=tuple(make_point(hour, 1.0, zone=zone) for hour in hours))
    save(store, history=(make_point(2, 9.0, zone="a"),), source="other")
    expected = {("a", 1), ("a", 5), ("b", 3), ("c", 4), ("d", -4800), ("a", 2)}
    for moment in (at(3), at(3).astimezone(timezone(timedelta(hours=-7)))):
        points = price_points(store, since=moment)
        assert len(points) == len(expected)
        assert {(p.zone, (p.observed_at - NOON) / timedelta(hours=1)) for p in points} == expected
        assert [p.observed_at for p in points] == sorted(p.observed_at for p in points)
    assert curve(store, sources=("other",), since=at(3)) == [(2, 9.0)]
    assert curve(store, sources=("other",), since=at(1)) == [(2, 9.0)]


def test_forgetting_keeps_the_newest_of_each_series(store):
    save(store, history=tuple(make_point(h, 1.0 + h, zone=z) for z in ("a", "b") for h in range(4)))
    save(store, history=tuple(make_point(h, 9.0, zone="b") for h in (10, 11)))
    assert forget_points(store, at(10)) == 3 + 4
    assert sorted((p.zone or "", p.observed_at) for p in price_points(store)) == [
        ("a", at(3)), ("b", at(10)), ("b", at(11)),
    ]  # fmt: skip
    assert forget_points(store, at(10)) == 0


def test_a_question_by_gpu_is_answered_by_indexes(tmp_path):
    """On SQLite: PostgreSQL rightly reads small tables as a whole."""
    query = sa.select(schema.price_points).join(schema.price_series).where(schema.price_series.c.gpu == "X")
    with open_store(f"sqlite:///{tmp_path}/a.db") as store, store.engine.connect() as connection:
        text = query.compile(store.engine, compile_kwargs={"literal_binds": True})
        plan = [row[-1] for row in connection.execute(sa.text(f"EXPLAIN QUERY PLAN {text}"))]
    assert any("ix_price_series_gpu" in step for step in plan)
    assert not any(step.startswith("SCAN") for step in plan)
