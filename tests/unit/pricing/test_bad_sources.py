"""Sources that say wrong things, crash or hang: what is right is kept, and they fail alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from advisor.core.values import Interval, Market, PricePoint
from advisor.pricing.refresh.asking import parts_of
from advisor.pricing.refresh.pulling import ANSWER_WITHIN_S, LONGEST_S, due_sources, refresh
from advisor.pricing.refresh.states import state_of
from advisor.pricing.sources.protocol import Credentials, Part
from advisor.pricing.sources.query import OfferQuery
from advisor.store.database import open_store
from advisor.store.handle import Store
from advisor.store.pulls import pulls
from tests.unit.pricing.refresh.test_pulling import DAY_S, NOON, FakeSource, offer, part, pulled, usd


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'prices.db'}") as opened:
        yield opened


NO_PRICES = [None, 0.0, -1.0, float("nan"), float("inf"), "1.0", True]


def quantiles(p50: object) -> Interval:
    """Quantiles that no check has seen, as an object of a plug-in may be."""
    made = object.__new__(Interval)
    for name, value in {"p10": 0.1, "p50": p50, "p90": 0.9}.items():
        object.__setattr__(made, name, value)
    return made


@pytest.mark.parametrize("price", NO_PRICES)
@pytest.mark.parametrize(
    "field", ["list_usd_per_h", "contracted_usd_per_h", "effective_usd_per_h", "spot_usd_per_h"]
)
def test_every_price_of_an_offer_must_be_one(store: Store, field: str, price: object) -> None:
    if price is None and field in ("contracted_usd_per_h", "effective_usd_per_h"):
        price = 0
    value = quantiles(price) if field == "spot_usd_per_h" else price
    bad = replace(offer(1.0, instance_type="broken"), **{field: value})
    kept = pulled(store, FakeSource(part(offer(1.0), bad)), FakeSource(part(offer(5.0)), name="other"))
    (mine,) = [one for one in kept if one.source == "fake"]
    assert mine.gaps == ("1 prices that are not above 0 left out",)
    assert (usd(store), usd(store, "other")) == ([1.0], [5.0])


@pytest.mark.parametrize("price", NO_PRICES)
def test_every_earlier_price_must_be_one(store: Store, price: object) -> None:
    (kept,) = pulled(store, FakeSource(part(offer(1.0), history=(point(usd_per_h=price),))))
    assert (kept.gaps, kept.num_points) == (("1 prices that are not above 0 left out",), 0)


def point(**changes: object) -> PricePoint:
    facts: dict[str, object] = {
        "provider": "aws", "instance_type": "l4.xlarge", "region": "us-east-1", "zone": None,
        "market": Market.SPOT, "usd_per_h": 1.0, "observed_at": NOON,
    }  # fmt: skip
    return PricePoint(**(facts | changes))


@pytest.mark.parametrize(
    ("wrong", "failure"),
    [
        (part(offer(num_gpus="4")), "offers.0.num_gpus"),
        (part(offer(region=None)), "offers.0.region"),
        (part(offer(market="spot")), "offers.0.market"),
        (part(offer(retrieved_at="today")), "offers.0.retrieved_at"),
        (part(offer(), "an offer"), "offers.1"),
        (part(history=(point(), None)), "history.1"),
        (part(history=(point(observed_at=NOON.replace(tzinfo=None)),)), "no time zone"),
        (replace(part(offer()), offers=None), "TypeError"),
        (part(offer(num_vcpus=2**70)), "cannot be kept"),
        (None, "it gave no Part but 'NoneType'"),
        ([offer()], "it gave no Part but 'list'"),
        (part(offer(), scope=None), "scope"),
    ],
)
def test_a_wrong_part_fails_alone(store: Store, wrong: Part, failure: str) -> None:
    kept = pulled(
        store, FakeSource(wrong, part(offer(2.0), scope="eu")), FakeSource(part(offer(5.0)), name="other")
    )
    (failed,) = [one for one in kept if one.failure is not None]
    assert failure in failed.failure
    assert (failed.num_offers, failed.num_points) == (0, 0)
    assert (usd(store), usd(store, "other")) == ([2.0], [5.0])


def test_what_a_plug_in_says_is_kept_without_its_secrets(store: Store) -> None:
    secret_text = "GET https://u:p@ss@acme.test/?key=1 with Bearer xyz and password=abc"
    shown = "GET https://***@acme.test/?*** with Bearer *** and password=***"
    parts = [part(offer(), gaps=(secret_text,)), Part(scope="eu", failure=secret_text)]
    by_scope = {one.scope: (one.gaps, one.failure) for one in pulled(store, FakeSource(*parts))}
    assert by_scope == {"us-east-1": ((shown,), None), "eu": ((), shown)}
    noted = {pull.scope: (pull.gaps, pull.failure) for pull in pulls(store)}
    assert {scope: noted[scope] for scope in by_scope} == by_scope


class Clock:
    """Stands still unless somebody moves it."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class HangingSource(FakeSource):
    """Gives its parts, then says nothing until it is released."""

    def __init__(self, *parts: Part, name: str = "hanging") -> None:
        super().__init__(*parts, name=name)
        self.released = Event()

    def offers(self, query: OfferQuery) -> Iterator[Part]:
        yield from super().offers(query)
        self.released.wait()


def test_a_source_that_hangs_fails_and_its_prices_stay(store: Store) -> None:
    pulled(store, FakeSource(part(offer(1.0)), name="hanging"))
    hanging = HangingSource()
    try:
        (kept,) = refresh([hanging], OfferQuery(), store, now=lambda: NOON, within_s=0.0)
    finally:
        hanging.released.set()
    assert (kept.scope, kept.failure) == ("all", "gave no answer within 0 ms (prices.refresh_within)")
    assert usd(store, "hanging") == [1.0]


def test_what_came_before_patience_ends_is_kept() -> None:
    hanging = HangingSource(part(offer(1.0)))
    other = FakeSource(part(offer(5.0)), name="other")
    clock = Clock()
    came: list[tuple[str, Any]] = []
    try:
        for reply in parts_of([hanging, other], OfferQuery(), within_s=300.0, clock=clock):
            came.append(reply)
            clock.now_s = 301.0 if len(came) == 2 else 0.0
    finally:
        hanging.released.set()
    assert {name: reply.offers for name, reply in came[:2]} == {
        "hanging": (offer(1.0),),
        "other": (offer(5.0),),
    }
    late = "gave no answer within 5 min (prices.refresh_within)"
    assert came[2:] == [("hanging", Part(scope="all", failure=late))]


def test_what_a_source_says_too_late_does_not_count() -> None:
    """One that never stops kept a refresh going for as long as it liked."""
    clock = Clock()

    class Endless(FakeSource):
        def offers(self, query: OfferQuery) -> Iterator[Part]:
            while True:
                yield from super().offers(query)
                clock.now_s += 100.0

    came: list[tuple[str, Any]] = list(
        parts_of([Endless(part(offer(1.0)))], OfferQuery(), within_s=300.0, clock=clock)
    )
    late = "gave no answer within 5 min (prices.refresh_within)"
    assert [reply.failure for _, reply in came] == [None, None, None, None, late]


def test_no_source_is_waited_for_longer_than_a_refresh_takes() -> None:
    assert ANSWER_WITHIN_S < LONGEST_S


class LockedSource(FakeSource):
    """A plug-in that fails where it should tell."""

    def credentials(self) -> Credentials:
        raise RuntimeError("vault refused token=abc")

    def freshness(self) -> tuple[()]:
        raise RuntimeError("no file")


def test_who_cannot_tell_of_credentials_has_none(store: Store) -> None:
    open_ = FakeSource(name="open")
    reason = "its credentials cannot be looked for: RuntimeError: vault refused token=***"
    assert due_sources([LockedSource(), open_], store, NOON, DAY_S) == (open_,)
    assert pulls(store, "fake")[0].failure == reason
    state = state_of(LockedSource(), None)
    assert (state.credentials, state.gaps) == (Credentials.MISSING, ("never refreshed", reason))


def test_who_cannot_tell_what_it_holds_has_a_gap() -> None:
    state = state_of(LockedSource(is_live=False), None)
    assert state.num_offers == 0
    assert "it cannot tell what it holds: RuntimeError: no file" in state.gaps
