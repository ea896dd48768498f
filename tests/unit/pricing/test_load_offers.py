"""Offers of all answers: who has the word, names widened aloud, ages told, old prices refused on demand."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from advisor.core.errors import StaleCatalogError, UnknownGpuError
from advisor.core.units import DAY_S
from advisor.core.values import Market, Offer
from advisor.pricing.answers import DERIVED, Answer, answer_of, load_offers
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import SnapshotSource
from advisor.report.words import sentence, sentences
from tests.findings import said

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
REFRESH = "; `advisor prices refresh` pulls newer ones and needs no account"


def offer(*, gpu: str = "L4", age_days: int = 100, source: str = "test", **changes: str) -> Offer:
    values = {"provider": "aws", "region": "us-east-1"} | changes
    return Offer(
        instance_type="x",
        zone=None,
        gpu=gpu,
        num_gpus=1,
        market=Market.ON_DEMAND,
        list_usd_per_h=1.0,
        retrieved_at=NOW - timedelta(days=age_days),
        source=source,
        **values,
    )


def answer(*offers: Offer, is_live: bool = False) -> Answer:
    return Answer(source="fixed", is_live=is_live, offers=offers)


def test_offers_of_all_answers_are_joined() -> None:
    answers = [answer(offer()), answer(offer(provider="gcp"))]
    offers = load_offers(OfferQuery(), now=NOW, answers=answers)
    assert [o.provider for o in offers.offers] == ["aws", "gcp"]


def test_the_age_of_prices_is_told_by_provider() -> None:
    known = answer(offer(age_days=124), offer(age_days=511), offer(provider="gcp"))
    offers = load_offers(OfferQuery(), now=NOW, answers=[known])
    (warning,) = sentences(offers.warnings)
    assert warning == (
        "prices are not live: aws 124 to 511 days old (2025-06-28 to 2026-07-20);"
        f" gcp 100 days old (2026-08-13){REFRESH}"
    )


def test_a_family_is_widened_aloud_and_an_alias_silently() -> None:
    known = answer(offer(gpu="A100-SXM-80GB"), offer(gpu="T4"), offer())
    query = OfferQuery(gpus=("A100-80GB", "Tesla T4"))
    offers = load_offers(query, now=NOW, answers=[known])
    assert [o.gpu for o in offers.offers] == ["A100-SXM-80GB", "T4"]
    assert sentence(offers.warnings[0]) == ("A100-80GB is a family: taken as A100-PCIE-80GB, A100-SXM-80GB")


def test_an_unknown_gpu_is_an_error_not_an_empty_answer() -> None:
    with pytest.raises(UnknownGpuError, match="'A101'"):
        load_offers(OfferQuery(gpus=("A101",)), now=NOW, answers=[answer(offer())])


def test_nothing_that_matches_is_said() -> None:
    query = OfferQuery(regions=("mars-*",))
    offers = load_offers(query, now=NOW, answers=[answer(offer())])
    assert offers.offers == ()
    assert said(offers.warnings) == "no price matches these limits: see `advisor prices`"


def test_computed_prices_are_counted() -> None:
    known = answer(offer(), offer(source=f"{DERIVED} savings"))
    offers = load_offers(OfferQuery(), now=NOW, answers=[known])
    assert "1 of 2 prices were never quoted but computed from others" in sentence(offers.warnings[1])


def test_prices_from_the_future_blame_the_clock() -> None:
    offers = load_offers(OfferQuery(), now=NOW, answers=[answer(offer(age_days=-3))])
    assert "prices of aws are dated after today: check the clock" in said(offers.warnings)


def test_an_explicit_age_limit_makes_old_prices_an_error() -> None:
    known = answer(offer(age_days=5), offer(age_days=40, provider="gcp"))
    with pytest.raises(StaleCatalogError) as caught:
        load_offers(OfferQuery(), now=NOW, max_age_s=30 * DAY_S, answers=[known])
    message = str(caught.value)
    assert message.startswith("1 of 2 prices are older than 30 d: gcp 40 days old (2026-10-12)")
    assert "`prices.max_age`" in message


def test_only_prices_that_match_must_be_young_enough() -> None:
    known = answer(offer(age_days=5), offer(age_days=40, provider="gcp"))
    query = OfferQuery(providers=("aws",))
    offers = load_offers(query, now=NOW, max_age_s=5 * DAY_S, answers=[known])
    assert len(offers.offers) == 1


def test_the_first_answer_that_knows_a_machine_has_the_word() -> None:
    own, others = answer(offer(source="own")), answer(offer(source="other"), offer(region="eu-west-1"))
    offers = load_offers(OfferQuery(), now=NOW, answers=[own, others])
    assert [(o.region, o.source) for o in offers.offers] == [("us-east-1", "own"), ("eu-west-1", "test")]


def test_a_dear_price_still_silences_what_is_less_trusted() -> None:
    """The limit counts after the merge: a cheap stale price does not stand in for a dear own rate."""
    dear = dataclasses.replace(offer(), list_usd_per_h=9.0)
    offers = load_offers(OfferQuery(max_usd_per_h=2.0), now=NOW, answers=[answer(dear), answer(offer())])
    assert offers.offers == ()


def test_live_prices_have_no_age_to_tell() -> None:
    live = answer(offer(age_days=0), is_live=True)
    assert load_offers(OfferQuery(), now=NOW, answers=[live]).warnings == ()
    mixed = load_offers(OfferQuery(), now=NOW, answers=[live, answer(offer(provider="gcp"))])
    text = f"1 of 2 prices are not live: gcp 100 days old (2026-08-13){REFRESH}"
    assert said(mixed.warnings) == text


def test_what_was_pulled_long_ago_is_told_like_a_dated_file() -> None:
    live = answer(offer(age_days=800), is_live=True)
    (warning,) = sentences(load_offers(OfferQuery(), now=NOW, answers=[live]).warnings)
    assert warning.startswith("prices are not live: aws 800 days old")
    assert load_offers(OfferQuery(), now=NOW, fresh_s=1000 * DAY_S, answers=[live]).warnings == ()


def test_an_offer_that_holds_anywhere_is_in_every_region() -> None:
    own = answer(offer(region="any", age_days=0))
    query = OfferQuery(regions=("us-*",))
    assert len(load_offers(query, now=NOW, answers=[own]).offers) == 1


def test_whose_prices_nobody_publishes_are_not_told_to_be_pulled() -> None:
    own = answer(offer(provider="lab"), is_live=False)
    text = said(load_offers(OfferQuery(), now=NOW, answers=[own]).warnings)
    assert text == "prices are not live: lab 100 days old (2026-08-13)"


def test_a_date_of_today_east_of_greenwich_is_no_wrong_clock() -> None:
    offers = load_offers(OfferQuery(), now=NOW - timedelta(hours=10), answers=[answer(offer(age_days=0))])
    assert said(offers.warnings) == "prices are not live: aws 0 days old (2026-11-21)"


def test_live_prices_may_be_too_old_as_well() -> None:
    live = answer(offer(age_days=3), is_live=True)
    with pytest.raises(StaleCatalogError, match="aws 3 days old"):
        load_offers(OfferQuery(), now=NOW, max_age_s=2 * DAY_S, answers=[live])


def test_only_answers_that_have_the_word_must_be_young_enough() -> None:
    fresh, old = answer(offer(age_days=0), is_live=True), answer(offer(age_days=400))
    assert len(load_offers(OfferQuery(), now=NOW, max_age_s=DAY_S, answers=[fresh, old]).offers) == 1


def test_without_answers_the_shipped_snapshot_is_asked() -> None:
    query = OfferQuery(gpus=("L4",), max_usd_per_h=1.0)
    shipped = load_offers(query, now=NOW)
    assert shipped.offers
    assert shipped == load_offers(query, now=NOW, answers=[answer_of(SnapshotSource(), query)])


def test_an_answer_holds_prices_above_the_limit() -> None:
    """So that a dear price can silence what is less trusted."""
    limited = answer_of(SnapshotSource(), OfferQuery(gpus=("L4",), max_usd_per_h=0.01))
    assert limited == answer_of(SnapshotSource(), OfferQuery(gpus=("L4",)))
    assert (limited.source, limited.is_live, limited.covers) == ("snapshot", False, frozenset())
    assert {o.gpu for o in limited.offers} == {"L4"}
