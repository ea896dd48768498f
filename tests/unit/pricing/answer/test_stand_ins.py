"""What a live pull could not price, and what is no longer sold: from its parts to the offers shown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from advisor.core.errors import StaleCatalogError
from advisor.core.units import DAY_S
from advisor.core.values import Market, Offer
from advisor.pricing.answers import Answer, Offers, load_offers
from advisor.pricing.refresh import refresh
from advisor.pricing.source_registry import answers_of
from advisor.pricing.sources.protocol import OfferQuery, Part
from advisor.report.words import sentences
from advisor.store.database import open_store
from advisor.store.handle import Store
from advisor.store.pulls import pulls, save_part
from tests.builders import make_offer
from tests.findings import said
from tests.unit.pricing.refresh.test_pulling import FakeSource

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HERE = ("aws", "us-east-1", Market.ON_DEMAND)
DATED = tuple(
    make_offer("L4", 2.0, instance_type=name, retrieved_at=NOON - timedelta(days=100), source="a file")
    for name in ("p4d", "p5", "p6")
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'prices.db'}") as opened:
        yield opened


def live(name: str, usd_per_h: float = 3.0) -> Offer:
    return make_offer("L4", usd_per_h, instance_type=name, retrieved_at=NOON, source="live")


def shown(
    store: Store,
    *parts: Part,
    dated: tuple[Offer, ...] = DATED,
    max_age_s: float | None = None,
    now: datetime = NOON,
) -> Offers:
    """What is for rent after a pull at noon, beside a dated file."""
    source = FakeSource(*parts, name="aws")
    refresh([source], OfferQuery(), store, now=lambda: NOON)
    answers = [
        *answers_of([source], OfferQuery(), store),
        Answer(source="file", is_live=False, offers=dated),
    ]
    return load_offers(OfferQuery(), now=now, answers=answers, max_age_s=max_age_s)


def prices(answered: Offers) -> dict[str, float]:
    return {offer.instance_type: offer.usd_per_h for offer in answered.offers}


def test_what_could_not_be_priced_shows_its_older_price_and_is_told(store: Store) -> None:
    answered = shown(store, Part(scope="here", offers=(live("p5"),), place=HERE, unpriced=("p4d",)))
    assert prices(answered) == {"p5": 3.0, "p4d": 2.0}, "p6 is no longer sold"
    (warning_text,) = [warning for warning in sentences(answered.warnings) if "stale" in warning]
    assert warning_text.startswith(
        "the last pull could not price aws p4d on-demand in us-east-1: 1 stale prices of file stand"
    )
    (stale,) = [offer for offer in answered.offers if offer.instance_type == "p4d"]
    assert stale.retrieved_at == DATED[0].retrieved_at


def test_a_place_without_any_offer_brings_nothing_back(store: Store) -> None:
    assert prices(shown(store, Part(scope="here", place=HERE))) == {}


def test_a_place_where_nothing_could_be_priced_shows_older_prices_of_just_that(store: Store) -> None:
    assert prices(shown(store, Part(scope="here", place=HERE, unpriced=("p5", "p9")))) == {"p5": 2.0}


def test_a_file_that_is_newer_than_an_empty_pull_counts(store: Store) -> None:
    later = tuple(
        make_offer("L4", 1.0, retrieved_at=NOON + timedelta(days=1), instance_type="p4d") for _ in "x"
    )
    assert prices(shown(store, Part(scope="here", place=HERE), dated=later)) == {"p4d": 1.0}


def test_a_failure_leaves_what_was_known_of_the_place(store: Store) -> None:
    shown(store, Part(scope="here", offers=(live("p5"),), place=HERE, unpriced=("p4d",)))
    assert prices(shown(store, Part(scope="here", failure="down"))) == {"p5": 3.0, "p4d": 2.0}


def test_a_source_that_tells_no_place_covers_those_of_its_offers_as_before(store: Store) -> None:
    assert prices(shown(store, Part(scope="here", offers=(live("p5"),)))) == {"p5": 3.0}
    assert prices(shown(store, Part(scope="here"))) == dict.fromkeys(("p4d", "p5", "p6"), 2.0)


def test_a_price_of_0_counts_as_not_priced(store: Store) -> None:
    answered = shown(store, Part(scope="here", offers=(live("p5"), live("p4d", 0.0)), place=HERE))
    assert prices(answered) == {"p5": 3.0, "p4d": 2.0}
    (pull,) = [pull for pull in pulls(store, "aws") if pull.scope == "here"]
    assert (pull.place, pull.unpriced) == (HERE, ("p4d",))


def test_stand_ins_that_are_too_old_are_left_out_and_do_not_refuse_the_rest(store: Store) -> None:
    part = Part(scope="here", offers=(live("p5"),), place=HERE, unpriced=("p4d",))
    answered = shown(store, part, max_age_s=10 * DAY_S)
    assert prices(answered) == {"p5": 3.0}
    assert "older than allowed and left out" in said(answered.warnings)
    assert prices(shown(store, part, max_age_s=101 * DAY_S)) == {"p5": 3.0, "p4d": 2.0}


def test_a_price_that_is_newer_than_the_pull_is_none_that_stands_in(store: Store) -> None:
    now = NOON + timedelta(days=30)
    newer = (make_offer("L4", 1.0, instance_type="p4d", retrieved_at=NOON + timedelta(days=1)),)
    part = Part(scope="here", offers=(live("p5"),), place=HERE, unpriced=("p4d",))
    answered = shown(store, part, dated=newer, now=now)
    assert prices(answered) == {"p4d": 1.0}
    assert "stale" not in said(answered.warnings)
    with pytest.raises(StaleCatalogError):
        shown(store, part, dated=newer, now=now, max_age_s=10 * DAY_S)


@pytest.mark.parametrize("scopes", [("old", "young"), ("young", "old")])
def test_of_several_scopes_in_a_place_the_newest_tells_when_it_was_asked(
    store: Store, scopes: tuple[str, str]
) -> None:
    for days, scope in enumerate(scopes):
        save_part(store, "aws", scope, (), (), (), NOON + timedelta(days=days), place=HERE)
    (answer,) = answers_of([FakeSource(name="aws")], OfferQuery(), store)
    assert answer.asked_at == {HERE: NOON + timedelta(days=1)}


def test_the_warning_names_each_source_that_stands_in() -> None:
    gaps = frozenset({(HERE, "p4d"), (HERE, "p5")})
    live = Answer(source="aws", is_live=True, offers=(), unpriced=gaps, asked_at={HERE: NOON})
    own = Answer(source="custom", is_live=False, offers=DATED[:1])
    file = Answer(source="snapshot", is_live=False, offers=DATED[1:2])
    offers = load_offers(OfferQuery(), now=NOON, answers=[live, own, file])
    assert "2 stale prices of custom, snapshot stand in" in sentences(offers.warnings)[-1]
    before = load_offers(OfferQuery(), now=NOON, answers=[own, live, file])
    assert (
        "could not price aws p5 on-demand in us-east-1: 1 stale prices of snapshot"
        in sentences(before.warnings)[-1]
    )


def test_where_only_a_stand_in_is_left_and_too_old_nothing_is_shown_and_both_are_told(store: Store) -> None:
    answered = shown(store, Part(scope="here", place=HERE, unpriced=("p4d",)), max_age_s=10 * DAY_S)
    assert prices(answered) == {}
    nothing, left_out = sentences(answered.warnings)
    assert nothing.startswith("no price matches")
    assert "aws p4d on-demand in us-east-1: 1 stale prices of file are older than allowed" in left_out


def test_many_machines_are_counted(store: Store) -> None:
    names = tuple(f"p{number}" for number in range(9))
    dated = tuple(make_offer("L4", 2.0, instance_type=name, retrieved_at=NOON) for name in names)
    part = Part(scope="here", place=HERE, unpriced=names)
    (warning,) = [w for w in sentences(shown(store, part, dated=dated).warnings) if "stale" in w]
    assert "p0 on-demand in us-east-1" in warning
    assert "and 6 more: 9 stale prices" in warning
