"""Which source has the word on a machine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from advisor.core.values import Market, Offer
from advisor.pricing.answers import Answer, Place, merged
from tests.builders import make_offer

HERE: Place = ("aws", "us-east-1", Market.ON_DEMAND)


def offer(source: str, **changes: str | Market | None) -> Offer:
    return make_offer(source=source, **{"instance_type": "p5"} | changes)


def answer(source: str, *offers: Offer, covers: tuple[Place, ...] = (), is_live: bool = False) -> Answer:
    return Answer(source=source, is_live=is_live, offers=offers, covers=frozenset(covers))


def kept(*answers: Answer) -> list[list[Offer]]:
    return [list(answer_kept.offers) for answer_kept in merged(answers)]


def test_nothing_becomes_nothing() -> None:
    assert merged([]) == ()


def test_one_answer_stays_as_it_is() -> None:
    alone = answer("a", offer("a"), offer("a", zone="use1-az1"), covers=(HERE,), is_live=True)
    assert merged([alone]) == (alone,)


def test_the_first_answer_that_names_a_machine_has_it() -> None:
    first, second = offer("first"), offer("second")
    assert kept(answer("first", first), answer("second", second)) == [[first], []]
    assert kept(answer("second", second), answer("first", first)) == [[second], []]


def test_other_places_and_markets_of_a_machine_stay_open() -> None:
    first = offer("first")
    others = [
        offer("second", region="eu-west-1"),
        offer("second", market=Market.SPOT),
        offer("second", provider="gcp"),
        offer("second", instance_type="p4d"),
    ]
    assert kept(answer("first", first), answer("second", *others)) == [[first], others]


def test_a_machine_is_taken_with_all_its_zones() -> None:
    """Zones of one source are not filled up from another, whose prices are of another time."""
    regional = offer("first")
    zonal = [offer("second", zone="use1-az1"), offer("second", zone="use1-az2")]
    assert kept(answer("first", regional), answer("second", *zonal)) == [[regional], []]
    assert kept(answer("second", *zonal), answer("first", regional)) == [zonal, []]


def test_what_a_covered_place_does_not_name_is_not_for_rent_there() -> None:
    retired, elsewhere = offer("snapshot", instance_type="p2"), offer("snapshot", region="eu-west-1")
    live = answer("live", offer("live"), covers=(HERE,), is_live=True)
    answers_merged = merged([live, answer("snapshot", retired, elsewhere)])
    assert answers_merged[1].offers == (elsewhere,)


def test_a_place_may_be_covered_without_an_offer() -> None:
    assert kept(answer("live", covers=(HERE,)), answer("snapshot", offer("snapshot"))) == [[], []]


def test_a_machine_without_a_live_price_keeps_its_older_one_and_others_do_not_come_back() -> None:
    stale, retired = offer("snapshot", instance_type="p4d"), offer("snapshot", instance_type="p2")
    live = replace(
        answer("live", offer("live"), covers=(HERE,), is_live=True), unpriced=frozenset({(HERE, "p4d")})
    )
    assert kept(live, answer("snapshot", stale, retired)) == [list(live.offers), [stale]]
    own = offer("custom", instance_type="p4d")
    assert kept(answer("custom", own), live, answer("snapshot", stale)) == [[own], list(live.offers), []]


def test_a_place_that_was_empty_gives_way_to_a_newer_file_alone() -> None:
    old, new = of("snapshot", OLD), of("snapshot", NEW)
    empty = replace(answer("live", covers=(HERE,), is_live=True), asked_at={HERE: MIDDLE})
    assert kept(empty, answer("snapshot", old)) == [[], []]
    assert kept(empty, answer("snapshot", new)) == [[], [new]]


def test_own_rates_go_before_a_place_that_is_covered_later() -> None:
    own, live = (
        offer("custom"),
        answer("live", offer("live"), offer("live", instance_type="p4d"), covers=(HERE,)),
    )
    assert kept(answer("custom", own), live) == [[own], [live.offers[1]]]


def test_an_answer_keeps_its_name_and_what_it_covers() -> None:
    dropped = merged([answer("a", offer("a")), answer("b", offer("b"), covers=(HERE,), is_live=True)])[1]
    assert (dropped.source, dropped.is_live, dropped.covers) == ("b", True, frozenset({HERE}))


# --- Live prices that were pulled long ago ------------------------------------------------------------

OLD, MIDDLE, NEW = (datetime(2026, month, 1, tzinfo=UTC) for month in (3, 6, 9))


def of(source: str, at: datetime, **changes: str) -> Offer:
    return replace(offer(source, **changes), retrieved_at=at)


def test_a_newer_file_takes_the_place_of_what_was_pulled_long_ago() -> None:
    live = answer("live", of("live", OLD), of("live", OLD, instance_type="p4d"), covers=(HERE,), is_live=True)
    dated = answer("snapshot", of("snapshot", MIDDLE))
    assert kept(live, dated) == [[], [dated.offers[0]]]


def test_what_was_pulled_later_keeps_its_place() -> None:
    live = answer("live", of("live", NEW), covers=(HERE,), is_live=True)
    dated = answer("snapshot", of("snapshot", MIDDLE), of("snapshot", MIDDLE, instance_type="p2"))
    assert kept(live, dated) == [list(live.offers), []]


def test_what_an_outdated_pull_could_not_price_is_no_gap_any_more() -> None:
    there: Place = ("aws", "eu-west-1", Market.ON_DEMAND)
    live = replace(
        answer("live", of("live", OLD), covers=(HERE, there), is_live=True),
        unpriced=frozenset({(HERE, "p4d"), (there, "p4d")}),
    )
    newer = of("snapshot", MIDDLE, instance_type="p4d")
    assert merged([live, answer("snapshot", newer)])[0].unpriced == {(there, "p4d")}
    assert merged([live, answer("snapshot", replace(newer, retrieved_at=OLD))])[0].unpriced == live.unpriced


def test_one_place_that_is_outdated_leaves_the_others() -> None:
    fresh = of("live", NEW, region="eu-west-1")
    live = answer("live", of("live", OLD), fresh, covers=(HERE,), is_live=True)
    dated = answer("snapshot", of("snapshot", MIDDLE))
    assert kept(live, dated) == [[fresh], list(dated.offers)]


def test_own_rates_are_believed_whatever_their_day() -> None:
    own, live = answer("custom", of("custom", OLD)), answer("live", of("live", NEW), is_live=True)
    assert kept(own, live) == [list(own.offers), []]


# --- Live prices of several sources -------------------------------------------------------------------

DAY = timedelta(days=1)


def account(at: datetime, *more: Offer) -> Answer:
    return answer("aws", of("aws", at), *more, covers=(HERE,), is_live=True)


def public(at: datetime, **changes: str) -> Answer:
    """A list that leaves machines out."""
    return replace(answer("gpuhunt", of("gpuhunt", at, **changes), is_live=True), knows_all=False)


def test_an_account_has_the_word_as_long_as_its_prices_are_of_the_same_day() -> None:
    for at in (NEW, NEW - DAY, NEW + DAY):
        own = account(NEW)
        assert kept(own, public(at)) == [list(own.offers), []]


def test_what_an_account_told_long_ago_gives_way_to_what_is_published_now() -> None:
    published = public(NEW)
    assert kept(account(MIDDLE), published) == [[], list(published.offers)]
    assert kept(account(MIDDLE), public(OLD)) == [[of("aws", MIDDLE)], []]


def test_a_list_that_leaves_machines_out_takes_the_place_of_those_that_it_names() -> None:
    other = of("aws", MIDDLE, instance_type="p3")
    newer = public(NEW)
    assert kept(account(MIDDLE, other), newer) == [[other], list(newer.offers)]


def test_a_machine_that_is_newer_than_the_accounts_answer_is_for_rent() -> None:
    """The account knew all that was for rent there, then."""
    newer = public(NEW, instance_type="p6")
    assert kept(account(MIDDLE), newer) == [[of("aws", MIDDLE)], list(newer.offers)]
    assert kept(account(NEW), newer) == [[of("aws", NEW)], []]


def test_a_list_that_leaves_machines_out_hides_none_of_a_file() -> None:
    retired = of("snapshot", OLD, instance_type="p3")
    assert kept(public(NEW), answer("snapshot", retired)) == [list(public(NEW).offers), [retired]]


def test_an_old_list_that_was_pulled_just_now_gives_way_to_a_newer_file() -> None:
    """When it was asked for says nothing of how old its prices are."""
    pulled = replace(public(OLD), asked_at={HERE: NEW})
    dated = of("snapshot", MIDDLE)
    assert kept(pulled, answer("snapshot", dated)) == [[], [dated]]


def test_own_rates_stay_whatever_is_published_later() -> None:
    own = answer("custom", of("custom", OLD))
    assert kept(own, public(NEW)) == [list(own.offers), []]
