"""Laws of the store, on SQLite: what goes in comes out, saving twice is saving once, a dict does the same."""

import dataclasses
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.core.values import Interval, Market, Offer, PricePoint
from advisor.store.database import open_store
from advisor.store.handle import Store
from advisor.store.pulls import (
    LONGEST_REFRESH,
    Pull,
    covered_places,
    current_offers,
    forget_points,
    price_points,
    pulls,
    save_failure,
    save_part,
)

# Each example is a database of its own.
laws = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
texts = st.text(st.characters(codec="utf-8"), max_size=12)
names = st.sampled_from(("a", "b"))
prices = st.floats(0, exclude_min=True, allow_infinity=False)
counts = st.integers(1, 2**31 - 1)
durations = st.floats(0, 1e9)
zones_of_time = st.sampled_from(
    (UTC, timezone(timedelta(hours=-7)), timezone(timedelta(hours=5, minutes=45)))
)
times = st.datetimes(datetime(1000, 1, 3), datetime(9999, 12, 28), timezones=zones_of_time)  # noqa: DTZ001
few_times = st.integers(0, 5).map(lambda hours: NOON + timedelta(hours=hours))
intervals = st.lists(prices, min_size=3, max_size=3).map(sorted).map(
    lambda usd: Interval(p10=usd[0], p50=usd[1], p90=usd[2])
)  # fmt: skip

any_offers = st.builds(
    Offer,
    provider=texts,
    instance_type=texts,
    region=texts,
    zone=st.none() | texts,
    gpu=texts,
    num_gpus=counts,
    market=st.sampled_from(Market),
    list_usd_per_h=prices,
    contracted_usd_per_h=st.none() | prices,
    effective_usd_per_h=st.none() | prices,
    spot_usd_per_h=st.none() | intervals,
    includes=st.lists(texts, max_size=3).map(tuple),
    minimum_billed_s=durations,
    billed_step_s=durations,
    num_vcpus=st.none() | counts,
    retrieved_at=times,
    source=texts,
)
# Few of each, so that they meet.
near_offers = st.builds(
    Offer,
    provider=names,
    instance_type=names,
    region=names,
    zone=st.none() | names,
    gpu=names,
    num_gpus=st.just(1),
    market=st.sampled_from((Market.SPOT, Market.ON_DEMAND, Market.FLEX_START)),
    list_usd_per_h=st.sampled_from((1.0, 2.0)),
    retrieved_at=few_times,
    source=names,
)
near_points = st.builds(
    PricePoint,
    provider=names,
    instance_type=names,
    region=names,
    zone=st.none() | names,
    market=st.sampled_from((Market.SPOT, Market.ON_DEMAND)),
    usd_per_h=st.sampled_from((1.0, 2.0, 3.0)),
    observed_at=few_times,
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """A success, or with a failure one of those."""

    source: str
    scope: str
    offers: list[Offer]
    history: list[PricePoint]
    gaps: tuple[str, ...]
    failure: str | None
    at: datetime

    def do(self, store: Store) -> None:
        if self.failure is None:
            save_part(store, self.source, self.scope, self.offers, self.history, self.gaps, self.at)
        else:
            save_failure(store, self.source, self.scope, self.failure, self.at)


saves = st.lists(
    st.builds(
        Save,
        source=names,
        scope=names,
        offers=st.lists(near_offers, max_size=5),
        history=st.lists(near_points, max_size=5),
        gaps=st.lists(names, max_size=2).map(tuple),
        failure=st.none() | names,
        at=few_times,
    ),
    max_size=8,
)


@cache
def empty_database() -> bytes:
    """Made once: it takes longer than what is asked of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        with open_store(f"sqlite:///{path}"):
            pass
        return path.read_bytes()


@contextmanager
def new_store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        path.write_bytes(empty_database())
        with open_store(f"sqlite:///{path}") as store:
            yield store


def everything(store: Store) -> tuple[object, ...]:
    return *(current_offers(store, source) for source in ("a", "b")), pulls(store), price_points(store)


def series_of(point: PricePoint) -> tuple[object, ...]:
    return point.provider, point.instance_type, point.region, point.zone, point.market


def is_overtaken(save: Save, pull: Pull | None) -> bool:
    """A later question was answered before; one of much later was asked by a wrong clock."""
    if pull is None or pull.succeeded_at is None:
        return False
    return save.at < pull.succeeded_at <= save.at + LONGEST_REFRESH


@laws
@given(st.lists(any_offers, max_size=5), texts, texts)
def test_any_offer_comes_back_as_it_was(offers, source, scope):
    with new_store() as store:
        save_part(store, source, scope, offers, (), (), NOON)
        kept = current_offers(store, source)
    assert kept == tuple(offers)
    assert all(offer.retrieved_at.tzinfo is UTC for offer in kept)


@laws
@given(st.lists(near_points, max_size=20))
def test_any_history_comes_back_once_and_in_order(points):
    with new_store() as store:
        save_part(store, "a", "a", (), points, (), NOON)
        kept = price_points(store)
    keys = [(*series_of(point), point.observed_at) for point in kept]
    assert len(keys) == len(set(keys))
    assert set(keys) == {(*series_of(point), point.observed_at) for point in points}
    assert set(kept) <= {dataclasses.replace(point, source="a") for point in points}
    assert [point.observed_at for point in kept] == sorted(point.observed_at for point in kept)


@laws
@given(st.lists(near_points, max_size=20), few_times)
def test_a_window_tells_every_price_in_it_that_the_whole_history_tells(points, since):
    with new_store() as store:
        save_part(store, "a", "a", (), points, (), NOON)
        whole, kept = price_points(store), price_points(store, since=since)
    before = {series_of(point): point for point in whole if point.observed_at <= since}  # the last one wins
    assert kept == tuple(p for p in whole if p.observed_at > since or before[series_of(p)] is p)


@laws
@given(saves)
def test_saving_twice_is_saving_once(done):
    with new_store() as store:
        for save in done:
            save.do(store)
            once = everything(store)
            save.do(store)
            assert everything(store) == once


@laws
@given(saves)
def test_offers_and_pulls_are_those_of_a_dict(done):
    offers: dict[tuple[str, str], tuple[Offer, ...]] = {}
    model: dict[tuple[str, str], Pull] = {}
    with new_store() as store:
        for save in done:
            save.do(store)
            key = (save.source, save.scope)
            if is_overtaken(save, model.get(key)):
                continue
            nothing = Pull(
                source=save.source, scope=save.scope, num_offers=0, succeeded_at=None, failed_at=None,
                failure=None, gaps=(),
            )  # fmt: skip
            if save.failure is None:
                offers[key] = tuple(save.offers)
                model[key] = dataclasses.replace(
                    nothing, num_offers=len(save.offers), succeeded_at=save.at, gaps=save.gaps
                )
            else:
                before = model.get(key, nothing)
                model[key] = dataclasses.replace(before, failed_at=save.at, failure=save.failure)
        assert pulls(store) == tuple(model[key] for key in sorted(model))
        for source in ("a", "b"):
            held = [offer for key in sorted(offers) if key[0] == source for offer in offers[key]]
            assert current_offers(store, source) == tuple(held)
            assert covered_places(store, source) == {(o.provider, o.region, o.market) for o in held}
            cheap = tuple(o for o in held if o.provider == "a" and o.gpu == "b")
            assert current_offers(store, source, providers=("a",), gpus=("b",)) == cheap


@laws
@given(saves)
def test_the_history_tells_each_offers_price_at_its_time(done):
    """Of the cheapest, where several are of one machine and place, and unless the past was told otherwise."""
    with new_store() as store:
        for save in done:
            if save.failure is not None:
                continue
            known = {
                (*series_of(point), point.observed_at)
                for point in price_points(store, sources=(save.source,))
            }
            held = {pull.scope: pull for pull in pulls(store, save.source)}
            if is_overtaken(save, held.get(save.scope)):
                continue
            save.do(store)
            curve = price_points(store, sources=(save.source,))
            kept = {(*series_of(point), point.observed_at) for point in save.history}
            for offer in save.offers:
                series = (offer.provider, offer.instance_type, offer.region, offer.zone, offer.market)
                rivals = [
                    o
                    for o in save.offers
                    if (o.provider, o.instance_type, o.region, o.zone, o.market) == series
                ]
                cheapest = min(rivals, key=lambda o: (o.usd_per_h, o.retrieved_at))
                key = (*series, cheapest.retrieved_at)
                if offer.market is Market.FLEX_START or key in known | kept:
                    continue
                past = [p for p in curve if series_of(p) == series and p.observed_at <= cheapest.retrieved_at]
                assert past[-1].usd_per_h == cheapest.usd_per_h


@laws
@given(saves, few_times)
def test_forgetting_drops_the_old_but_the_newest_of_a_series(done, before):
    with new_store() as store:
        for save in done:
            save_part(store, "a", save.scope, save.offers, save.history, (), save.at)
        points = price_points(store)
        newest = {series_of(point): point for point in points}  # in order of time: the last one wins
        kept = tuple(p for p in points if p.observed_at >= before or newest[series_of(p)] is p)
        assert forget_points(store, before) == len(points) - len(kept)
        assert price_points(store) == kept
