"""The history of prices: what adds to it, what it answers, what is forgotten."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import sqlalchemy as sa

from advisor.core.values import Market, Offer, PricePoint
from advisor.store import schema
from advisor.store.database import open_store
from advisor.store.handle import Store
from advisor.store.pulls import current_offers, forget_points, price_points, save_part
from tests.builders import make_offer

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
