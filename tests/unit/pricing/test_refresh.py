"""Refreshing live prices."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from advisor.core.errors import LockedError
from advisor.core.values import Interval, Market, Offer, PricePoint
from advisor.pricing.price_history import series_of
from advisor.pricing.refresh import (
    LOCK,
    RETRY_S,
    RefreshedPart,
    _refused,
    came_since,
    due_sources,
    is_due,
    note_under_way,
    refresh,
    under_way,
    with_credentials,
)
from advisor.pricing.source_registry import state_of
from advisor.pricing.sources.protocol import Capabilities, Credentials, OfferQuery, Part
from advisor.store.database import open_store
from advisor.store.handle import Store
from advisor.store.locks import lock
from advisor.store.pulls import Pull, current_offers, price_points, pulls, save_part
from tests.builders import make_offer

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
DAY_S = 86400.0


class FakeSource:
    """A live source of given parts; an exception among them is raised when its turn comes."""

    def __init__(self, *parts: Part | Exception, name: str = "fake", is_live: bool = True,
                 credentials: Credentials = Credentials.FOUND) -> None:  # fmt: skip
        self.name = name
        self._parts = parts
        self._credentials = credentials
        self.capabilities = Capabilities(providers=("aws",), markets=tuple(Market), is_live=is_live)
        self.queries: list[OfferQuery] = []

    def offers(self, query: OfferQuery) -> Iterator[Part]:
        self.queries.append(query)
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
            yield part

    def freshness(self) -> tuple[()]:
        return ()

    def credentials(self) -> Credentials:
        return self._credentials


@pytest.fixture
def store(tmp_path):
    with open_store(f"sqlite:///{tmp_path / 'prices.db'}") as opened:
        yield opened


def offer(usd_per_h: float = 1.0, **changes: object) -> Offer:
    facts = {"retrieved_at": NOON, "market": Market.ON_DEMAND, "source": "fake"} | changes
    return replace(make_offer("L4", usd_per_h), **facts)


def spot(usd_per_h: float = 0.3, **changes: object) -> Offer:
    return offer(usd_per_h, market=Market.SPOT, zone="use1-az1", **changes)


def part(*offers: Offer, scope: str = "us-east-1", **changes: object) -> Part:
    return Part(scope=scope, offers=offers, **changes)


def pulled(
    store: Store, *sources: FakeSource, at: datetime = NOON, regions: Iterable[str] = ()
) -> tuple[RefreshedPart, ...]:
    return refresh(sources, OfferQuery(regions=tuple(regions)), store, now=lambda: at)


def usd(store: Store, source: str = "fake") -> list[float]:
    return sorted(offer.usd_per_h for offer in current_offers(store, source))


def test_every_part_of_every_live_source_is_kept(store):
    first = FakeSource(part(offer(1.0)), part(offer(2.0), offer(3.0, region="eu"), scope="eu"))
    other = FakeSource(part(offer(9.0), scope="all"), name="other")
    dated = FakeSource(part(offer(7.0)), name="dated", is_live=False)
    kept = pulled(store, first, other, dated, regions=["us-*"])
    by_place = {(one.source, one.scope): one.num_offers for one in kept}
    assert by_place == {("fake", "us-east-1"): 1, ("fake", "eu"): 2, ("other", "all"): 1}
    assert (usd(store), usd(store, "other"), usd(store, "dated")) == ([1, 2, 3], [9], [])
    assert first.queries == [OfferQuery(regions=("us-*",))]
    assert dated.queries == []


def test_a_part_replaces_its_scope_and_leaves_the_others(store):
    pulled(store, FakeSource(part(offer(1.0)), part(offer(2.0, region="eu"), scope="eu")))
    pulled(store, FakeSource(part(offer(1.5))), at=NOON + timedelta(hours=1))
    assert usd(store) == [1.5, 2.0]


def test_what_fails_keeps_its_old_prices_with_their_age(store):
    pulled(store, FakeSource(part(offer(1.0))))
    later = NOON + timedelta(days=3)
    (kept,) = pulled(store, FakeSource(Part(scope="us-east-1", failure="throttled")), at=later)
    assert (kept.failure, kept.num_offers) == ("throttled", 0)
    (held,) = current_offers(store, "fake")
    assert held.retrieved_at == NOON
    state = state_of(FakeSource(), store)
    assert state.newest == NOON
    assert state.gaps == ("us-east-1: not refreshed on 2026-11-24 12:00: throttled",)


def test_a_source_that_crashes_in_the_middle_loses_nothing(store):
    crash = RuntimeError("GET https://bob:hunter2@acme.test/prices?token=abc failed")
    sources = [
        FakeSource(part(offer(1.0)), crash, part(offer(2.0))),
        FakeSource(part(offer(5.0)), name="other"),
    ]
    kept = pulled(store, *sources)
    (failed,) = [one for one in kept if one.failure]
    assert failed.scope == "all"
    assert failed.failure == "RuntimeError: GET https://***@acme.test/prices?*** failed"
    assert (usd(store), usd(store, "other")) == ([1.0], [5.0])


@pytest.mark.parametrize("price", [0.0, -1.0, float("nan"), float("inf")])
def test_a_price_that_is_none_is_a_gap_and_no_offer(store, price):
    bad = offer(price, instance_type="broken")
    (kept,) = pulled(store, FakeSource(part(offer(1.0), bad, gaps=("one",))))
    assert kept.gaps == ("one", "1 prices that are not above 0 left out")
    assert usd(store) == [1.0]


def test_a_time_without_a_zone_fails_its_part_alone(store):
    naive = part(offer(retrieved_at=NOON.replace(tzinfo=None)), scope="naive")
    kept = pulled(store, FakeSource(naive, part(offer(2.0))))
    assert [one.failure for one in kept] == ["its times have no time zone: update the plug-in", None]
    assert usd(store) == [2.0]


def test_only_one_refresh_at_a_time(store):
    with (
        lock(store, LOCK, "process 7 on elsewhere"),
        pytest.raises(LockedError, match="process 7 on elsewhere"),
    ):
        pulled(store, FakeSource(part(offer())))
    assert usd(store) == []
    pulled(store, FakeSource(part(offer())))
    assert usd(store) == [1.0]


def test_progress_is_told_part_by_part(store):
    counts: list[RefreshedPart] = []
    source = FakeSource(part(offer()), part(offer(region="eu"), scope="eu"))
    kept = refresh([source], OfferQuery(), store, now=lambda: NOON, progress=counts.append)
    assert tuple(counts) == kept


def test_an_answer_is_of_when_it_was_asked_for_not_of_when_it_was_kept(store):
    clock = iter(NOON + timedelta(hours=hours) for hours in range(9))
    refresh([FakeSource(part(offer(1.0)))], OfferQuery(), store, now=lambda: next(clock))
    assert {pull.succeeded_at for pull in pulls(store)} == {NOON}


def test_a_refresh_that_was_overtaken_changes_nothing(store):
    """Such as one on a laptop that slept."""

    class Slow(FakeSource):
        def offers(self, query: OfferQuery) -> Iterator[Part]:
            fresh = part(offer(2.0, retrieved_at=LATER))
            save_part(store, self.name, fresh.scope, fresh.offers, (), (), LATER)
            yield from super().offers(query)

    pulled(store, Slow(part(offer(1.0))))
    assert usd(store) == [2.0]


def test_spot_offers_get_quantiles_of_what_is_remembered(store):
    """0.2 for nine tenths of ninety days, then 0.4."""
    past = [(80, 0.2), (8, 0.4)]
    history = tuple(
        PricePoint(
            provider="aws", instance_type="l4.xlarge", region="us-east-1", zone="use1-az1",
            market=Market.SPOT, usd_per_h=price, observed_at=NOON - timedelta(days=days),
        )
        for days, price in past
    )  # fmt: skip
    pulled(store, FakeSource(part(spot(0.4), history=history)))
    (held,) = current_offers(store, "fake")
    assert held.spot_usd_per_h == Interval(p10=0.2, p50=0.2, p90=0.2)
    pulled(store, FakeSource(part(spot(0.4))), at=NOON + timedelta(days=1))
    (held,) = current_offers(store, "fake")
    assert held.spot_usd_per_h == Interval(p10=0.2, p50=0.2, p90=0.4)


def test_a_spot_price_at_rest_for_longer_than_the_window_has_quantiles_of_all_of_it(store):
    """0.2 since 200 days, 0.4 for the last 18 of ninety."""
    for days, price in ((200, 0.2), (18, 0.4)):
        at = NOON - timedelta(days=days)
        pulled(store, FakeSource(part(spot(price, retrieved_at=at))), at=at)
    pulled(store, FakeSource(part(spot(0.4))))
    (held,) = current_offers(store, "fake")
    assert held.spot_usd_per_h == Interval(p10=0.2, p50=0.2, p90=0.4)


def test_quantiles_are_of_the_prices_of_the_source_itself(store):
    before = NOON - timedelta(days=80)
    for name, price in (("fake", 0.3), ("other", 9.0)):
        pulled(store, FakeSource(part(spot(price, retrieved_at=before)), name=name), at=before)
    pulled(store, FakeSource(part(spot(0.3))))
    (held,) = current_offers(store, "fake")
    assert held.spot_usd_per_h == Interval(p10=0.3, p50=0.3, p90=0.3)


def test_quantiles_that_the_source_gives_are_kept(store):
    given = Interval(p10=0.1, p50=0.2, p90=0.9)
    pulled(store, FakeSource(part(spot(spot_usd_per_h=given))))
    assert current_offers(store, "fake")[0].spot_usd_per_h == given


def test_prices_become_history(store):
    for day, price in enumerate((1.0, 1.0, 1.2)):
        at = NOON + timedelta(days=day)
        pulled(store, FakeSource(part(offer(price, retrieved_at=at))), at=at)
    (series,) = series_of(price_points(store))
    assert [point.usd_per_h for point in series.points] == [1.0, 1.2]
    assert series.change == pytest.approx(0.2)


def pull(succeeded: float | None = None, failed: float | None = None, scope: str = "asked *") -> Pull:
    """A note of so many seconds ago; a failure is ours."""
    moment = [None if ago is None else NOON - timedelta(seconds=ago) for ago in (succeeded, failed)]
    scope = _refused() if failed is not None else scope
    return Pull(source="fake", scope=scope, num_offers=0, succeeded_at=moment[0], failed_at=moment[1],
                failure=None, gaps=())  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "regions", "due"),
    [
        ([], (), True),
        ([pull(succeeded=100)], (), False),
        ([pull(succeeded=100)], ("us-*",), False),
        ([pull(succeeded=100, scope="asked us-*")], ("us-*",), False),
        ([pull(succeeded=100, scope="asked us-*")], (), True),
        ([pull(succeeded=100, scope="us-east-1 spot")], (), True),
        ([pull(succeeded=DAY_S + 1)], (), True),
        ([pull(failed=RETRY_S - 1)], (), False),
        ([pull(failed=RETRY_S + 1)], (), True),
        ([pull(succeeded=2 * DAY_S), pull(failed=10)], (), False),
        ([pull(succeeded=2 * DAY_S), pull(failed=2 * RETRY_S)], (), True),
        ([pull(succeeded=-100)], (), False),
        ([pull(succeeded=-DAY_S)], (), True),
        ([pull(failed=-DAY_S)], (), True),
    ],
)
def test_who_is_asked_again(asked, regions, due):
    assert is_due(asked, NOON, DAY_S, regions) is due


def test_a_refresh_of_one_region_leaves_the_others_due(store):
    source = FakeSource(part(offer()))
    pulled(store, source, regions=["us-east-1"])
    assert due_sources([source], store, NOON, DAY_S) == (source,)
    assert due_sources([source], store, NOON, DAY_S, ["us-east-1"]) == ()
    pulled(store, source)
    assert due_sources([source], store, NOON, DAY_S) == ()
    assert due_sources([source], store, NOON, DAY_S, ["eu-west-1"]) == ()


def test_a_refresh_of_one_provider_leaves_the_others_as_they_were(store):
    aws = part(offer(), scope="aws", place=("aws", "us-east-1", Market.ON_DEMAND))
    gcp = part(offer(provider="gcp"), scope="gcp", place=("gcp", "us-east1", Market.ON_DEMAND))
    source = FakeSource(aws, gcp)
    source.capabilities = replace(source.capabilities, providers=("aws", "gcp"))
    pulled(store, source)
    again = FakeSource(gcp)
    kept = refresh([again], OfferQuery(providers=("gcp",)), store, now=lambda: NOON + timedelta(days=2))
    assert [(one.scope, one.failure) for one in kept] == [("gcp", None)]
    assert again.queries[0].providers == ("gcp",)
    assert len(usd(store)) == 2
    # The other one is as old as it was, so the source is due.
    assert due_sources([source], store, NOON + timedelta(days=2), DAY_S) == (source,)


def test_one_part_that_fails_does_not_have_the_rest_asked_each_time(store):
    source = FakeSource(part(offer()), Part(scope="eu", failure="down"))
    pulled(store, source)
    assert due_sources([source], store, NOON, DAY_S) == ()


CLOSED = FakeSource(credentials=Credentials.MISSING)


def test_who_would_not_let_us_in_is_not_looked_at_again_for_an_hour(store):
    open_ = FakeSource(name="open", credentials=Credentials.NOT_NEEDED)
    assert due_sources([CLOSED, open_], store, NOON, DAY_S) == (CLOSED, open_)
    assert with_credentials([CLOSED, open_], store, NOON) == (open_,)
    (noted,) = pulls(store, "fake")
    assert (noted.scope, noted.failure) == (_refused(), "no credentials found")
    assert due_sources([CLOSED], store, NOON + timedelta(minutes=59), DAY_S) == ()
    assert due_sources([CLOSED], store, NOON + timedelta(minutes=61), DAY_S) == (CLOSED,)


def test_a_colleague_without_credentials_keeps_nobody_from_asking(store, monkeypatch):
    monkeypatch.setenv("LOGNAME", "bob")
    with_credentials([CLOSED], store, NOON)
    monkeypatch.setenv("LOGNAME", "alice")
    source = FakeSource()
    assert due_sources([source], store, NOON, DAY_S) == (source,)


def test_an_overcome_refusal_is_no_gap_any_more(store):
    with_credentials([CLOSED], store, NOON)
    assert state_of(FakeSource(), store).gaps != ()
    pulled(store, FakeSource(part(offer())), at=NOON + timedelta(hours=2))
    assert state_of(FakeSource(), store).gaps == ()


def test_a_pull_is_under_way_until_it_is_answered(store):
    source, later = FakeSource(part(offer())), NOON + timedelta(seconds=1)
    note_under_way([source], store, NOON)
    assert under_way(store, ["fake", "other"]) == {"fake": NOON}
    assert due_sources([source], store, later, DAY_S) == (), "nobody else begins one"
    pulled(store, source, at=later)
    assert under_way(store, ["fake"]) == {}
    (kept,) = came_since(store, ["fake"], NOON)
    assert (kept.scope, kept.num_offers, kept.failure) == ("us-east-1", 1, None)
    assert came_since(store, ["fake"], later) == ()


def test_a_pull_that_died_is_tried_again_after_a_while(store):
    source = FakeSource()
    note_under_way([source], store, NOON)
    assert due_sources([source], store, NOON + timedelta(seconds=RETRY_S + 1), DAY_S) == (source,)


def test_a_pull_that_fails_is_over_and_says_why(store):
    source = FakeSource(Part(scope="eu", failure="down"))
    note_under_way([source], store, NOON)
    pulled(store, source, at=NOON + timedelta(seconds=1))
    assert under_way(store, ["fake"]) == {}
    assert [(kept.scope, kept.failure) for kept in came_since(store, ["fake"], NOON)] == [("eu", "down")]


def test_of_who_had_no_credentials_nothing_is_expected(store):
    with_credentials([CLOSED], store, NOON)
    note_under_way([CLOSED], store, NOON + timedelta(hours=2))
    assert under_way(store, ["fake"]) == {}


def test_a_source_that_was_never_asked_says_so(store):
    for known in (None, store):
        state = state_of(FakeSource(), known)
        assert (state.num_offers, state.newest, state.gaps) == (0, None, ("never refreshed",))
