"""Current offers and pulls: a part replaces its scope, a failure changes no price."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from advisor.core.errors import StoreError
from advisor.core.values import Interval, Market
from advisor.store.pulls import Pull, current_offers, price_points, pulls, save_failure, save_part
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
