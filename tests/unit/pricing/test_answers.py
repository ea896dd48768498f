"""Answers of several sources merged, loaded with ages and stand-ins."""

import dataclasses
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from advisor.core.errors import StaleCatalogError, UnknownGpuError
from advisor.core.units import DAY_S
from advisor.core.values import Market, Offer
from advisor.pricing.answers import Answer, Offers, answer_of, load_offers, merged
from advisor.pricing.refresh import refresh
from advisor.pricing.source_registry import answers_of
from advisor.pricing.sources.protocol import DERIVED, OfferQuery, Part, Place
from advisor.pricing.sources.snapshot import SnapshotSource
from advisor.report.words import sentence, sentences
from advisor.store.database import open_store
from advisor.store.handle import Store
from advisor.store.pulls import pulls, save_part
from tests.builders import make_offer
from tests.findings import said
from tests.unit.pricing.test_refresh import FakeSource

HERE: Place = ("aws", "us-east-1", Market.ON_DEMAND)


def offer(source: str, **changes: str | Market | None) -> Offer:
    return make_offer(source=source, **{"instance_type": "p5"} | changes)


def answer(source: str, *offers: Offer, covers: tuple[Place, ...] = (), is_live: bool = False) -> Answer:
    return Answer(source=source, is_live=is_live, offers=offers, covers=frozenset(covers))


def kept(*answers: Answer) -> list[list[Offer]]:
    return [list(answer_kept.offers) for answer_kept in merged(answers)]


def test_one_answer_stays_as_it_is():
    alone = answer("a", offer("a"), offer("a", zone="use1-az1"), covers=(HERE,), is_live=True)
    assert merged([alone]) == (alone,)


def test_a_machine_without_a_live_price_keeps_its_older_one_and_others_do_not_come_back():
    stale, retired = offer("snapshot", instance_type="p4d"), offer("snapshot", instance_type="p2")
    live = replace(
        answer("live", offer("live"), covers=(HERE,), is_live=True), unpriced=frozenset({(HERE, "p4d")})
    )
    assert kept(live, answer("snapshot", stale, retired)) == [list(live.offers), [stale]]
    own = offer("custom", instance_type="p4d")
    assert kept(answer("custom", own), live, answer("snapshot", stale)) == [[own], list(live.offers), []]


def test_an_answer_keeps_its_name_and_what_it_covers():
    dropped = merged([answer("a", offer("a")), answer("b", offer("b"), covers=(HERE,), is_live=True)])[1]
    assert (dropped.source, dropped.is_live, dropped.covers) == ("b", True, frozenset({HERE}))


# --- Live prices that were pulled long ago ------------------------------------------------------------

OLD, MIDDLE, NEW = (datetime(2026, month, 1, tzinfo=UTC) for month in (3, 6, 9))


def of(source: str, at: datetime, **changes: str) -> Offer:
    return replace(offer(source, **changes), retrieved_at=at)


def test_what_an_outdated_pull_could_not_price_is_no_gap_any_more():
    there: Place = ("aws", "eu-west-1", Market.ON_DEMAND)
    live = replace(
        answer("live", of("live", OLD), covers=(HERE, there), is_live=True),
        unpriced=frozenset({(HERE, "p4d"), (there, "p4d")}),
    )
    newer = of("snapshot", MIDDLE, instance_type="p4d")
    assert merged([live, answer("snapshot", newer)])[0].unpriced == {(there, "p4d")}
    assert merged([live, answer("snapshot", replace(newer, retrieved_at=OLD))])[0].unpriced == live.unpriced


# --- Live prices of several sources -------------------------------------------------------------------

DAY = timedelta(days=1)


def account(at: datetime, *more: Offer) -> Answer:
    return answer("aws", of("aws", at), *more, covers=(HERE,), is_live=True)


def public(at: datetime, **changes: str) -> Answer:
    """A list that leaves machines out."""
    return replace(answer("gpuhunt", of("gpuhunt", at, **changes), is_live=True), knows_all=False)


ZONES = [offer("b", zone="use1-az1"), offer("b", zone="use1-az2")]
ELSEWHERE = [
    offer("b", region="eu-west-1"),
    offer("b", market=Market.SPOT),
    offer("b", provider="gcp"),
    offer("b", instance_type="p4d"),
]
P2, P3, P4D, P6 = ({"instance_type": name} for name in ("p2", "p3", "p4d", "p6"))
LIVE_OLD = answer("live", of("live", OLD), of("live", OLD, **P4D), covers=(HERE,), is_live=True)
LIVE_NEW = answer("live", of("live", NEW), covers=(HERE,), is_live=True)
EMPTY = replace(answer("live", covers=(HERE,), is_live=True), asked_at={HERE: MIDDLE})
FRESH = of("live", NEW, region="eu-west-1")
STALE_BUT_ONE = answer("live", of("live", OLD), FRESH, covers=(HERE,), is_live=True)
OWN = answer("custom", of("custom", OLD))
OLD_FILE, FILE, NEW_FILE = (answer("file", of("file", at)) for at in (OLD, MIDDLE, NEW))
ALL, NONE = "all of it", ()
"""Of an answer's offers."""


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        # Of a machine the first answer that names it counts, with all its zones: others' are of other times.
        (answer("a", offer("a")), answer("b", offer("b")), (ALL, NONE)),
        (answer("b", offer("b")), answer("a", offer("a")), (ALL, NONE)),
        (answer("a", offer("a")), answer("b", *ELSEWHERE), (ALL, ALL)),
        (answer("a", offer("a")), answer("b", *ZONES), (ALL, NONE)),
        (answer("b", *ZONES), answer("a", offer("a")), (ALL, NONE)),
        # What a covered place does not name is not for rent there.
        (answer("a", offer("a"), covers=(HERE,)), answer("b", offer("b", **P2), ELSEWHERE[0]), (ALL, (1,))),
        (answer("a", covers=(HERE,)), answer("b", offer("b")), (NONE, NONE)),
        (OWN, answer("a", of("a", NEW), of("a", NEW, **P4D), covers=(HERE,)), (ALL, (1,))),
        # Newer files take the place of what was pulled long ago; own rates are believed whatever their day.
        (EMPTY, OLD_FILE, (NONE, NONE)),
        (EMPTY, NEW_FILE, (NONE, ALL)),
        (LIVE_OLD, FILE, (NONE, ALL)),
        (LIVE_NEW, answer("file", of("file", MIDDLE), of("file", MIDDLE, **P2)), (ALL, NONE)),
        (STALE_BUT_ONE, FILE, ((1,), ALL)),
        (OWN, LIVE_NEW, (ALL, NONE)),
        (OWN, public(NEW), (ALL, NONE)),
        # An account has the word as long as its prices are of the same day; a list leaves machines out.
        (account(NEW), public(NEW), (ALL, NONE)),
        (account(NEW), public(NEW - DAY), (ALL, NONE)),
        (account(NEW), public(NEW + DAY), (ALL, NONE)),
        (account(MIDDLE), public(NEW), (NONE, ALL)),
        (account(MIDDLE), public(OLD), (ALL, NONE)),
        (account(MIDDLE, of("aws", MIDDLE, **P3)), public(NEW), ((1,), ALL)),
        (account(MIDDLE), public(NEW, **P6), (ALL, ALL)),
        (account(NEW), public(NEW, **P6), (ALL, NONE)),
        (public(NEW), answer("file", of("file", OLD, **P3)), (ALL, ALL)),
        # When a list was asked for says nothing of how old its prices are.
        (replace(public(OLD), asked_at={HERE: NEW}), FILE, (NONE, ALL)),
    ],
)
def test_each_answer_keeps_what_it_has_the_word_in(first, second, left):
    for kept, whole, places in zip(merged([first, second]), (first, second), left, strict=True):
        assert kept.offers == (whole.offers if places is ALL else tuple(whole.offers[i] for i in places))


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
THERE = ("aws", "us-east-1", Market.ON_DEMAND)
DATED = tuple(
    make_offer("L4", 2.0, instance_type=name, retrieved_at=NOON - timedelta(days=100), source="a file")
    for name in ("p4d", "p5", "p6")
)


@pytest.fixture
def store(tmp_path):
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
    answers = [*answers_of([source], OfferQuery(), store), Answer(source="file", is_live=False, offers=dated)]
    return load_offers(OfferQuery(), now=now, answers=answers, max_age_s=max_age_s)


def prices(answered: Offers) -> dict[str, float]:
    return {offer.instance_type: offer.usd_per_h for offer in answered.offers}


def test_what_could_not_be_priced_shows_its_older_price_and_is_told(store):
    answered = shown(store, Part(scope="here", offers=(live("p5"),), place=THERE, unpriced=("p4d",)))
    assert prices(answered) == {"p5": 3.0, "p4d": 2.0}, "p6 is no longer sold"
    (warning_text,) = [warning for warning in sentences(answered.warnings) if "stale" in warning]
    assert warning_text.startswith(
        "the last pull could not price aws p4d on-demand in us-east-1: 1 stale prices of file stand"
    )
    (stale,) = [offer for offer in answered.offers if offer.instance_type == "p4d"]
    assert stale.retrieved_at == DATED[0].retrieved_at


def test_a_place_without_any_offer_brings_nothing_back(store):
    assert prices(shown(store, Part(scope="here", place=THERE))) == {}


def test_a_place_where_nothing_could_be_priced_shows_older_prices_of_just_that(store):
    assert prices(shown(store, Part(scope="here", place=THERE, unpriced=("p5", "p9")))) == {"p5": 2.0}


def test_a_file_that_is_newer_than_an_empty_pull_counts(store):
    later = tuple(
        make_offer("L4", 1.0, retrieved_at=NOON + timedelta(days=1), instance_type="p4d") for _ in "x"
    )
    assert prices(shown(store, Part(scope="here", place=THERE), dated=later)) == {"p4d": 1.0}


def test_a_failure_leaves_what_was_known_of_the_place(store):
    shown(store, Part(scope="here", offers=(live("p5"),), place=THERE, unpriced=("p4d",)))
    assert prices(shown(store, Part(scope="here", failure="down"))) == {"p5": 3.0, "p4d": 2.0}


def test_a_source_that_tells_no_place_covers_those_of_its_offers_as_before(store):
    assert prices(shown(store, Part(scope="here", offers=(live("p5"),)))) == {"p5": 3.0}
    assert prices(shown(store, Part(scope="here"))) == dict.fromkeys(("p4d", "p5", "p6"), 2.0)


def test_a_price_of_0_counts_as_not_priced(store):
    answered = shown(store, Part(scope="here", offers=(live("p5"), live("p4d", 0.0)), place=THERE))
    assert prices(answered) == {"p5": 3.0, "p4d": 2.0}
    (pull,) = [pull for pull in pulls(store, "aws") if pull.scope == "here"]
    assert (pull.place, pull.unpriced) == (THERE, ("p4d",))


def test_stand_ins_that_are_too_old_are_left_out_and_do_not_refuse_the_rest(store):
    part = Part(scope="here", offers=(live("p5"),), place=THERE, unpriced=("p4d",))
    answered = shown(store, part, max_age_s=10 * DAY_S)
    assert prices(answered) == {"p5": 3.0}
    assert "older than allowed and left out" in said(answered.warnings)
    assert prices(shown(store, part, max_age_s=101 * DAY_S)) == {"p5": 3.0, "p4d": 2.0}


def test_a_price_that_is_newer_than_the_pull_is_none_that_stands_in(store):
    now = NOON + timedelta(days=30)
    newer = (make_offer("L4", 1.0, instance_type="p4d", retrieved_at=NOON + timedelta(days=1)),)
    part = Part(scope="here", offers=(live("p5"),), place=THERE, unpriced=("p4d",))
    answered = shown(store, part, dated=newer, now=now)
    assert prices(answered) == {"p4d": 1.0}
    assert "stale" not in said(answered.warnings)
    with pytest.raises(StaleCatalogError):
        shown(store, part, dated=newer, now=now, max_age_s=10 * DAY_S)


@pytest.mark.parametrize("scopes", [("old", "young"), ("young", "old")])
def test_of_several_scopes_in_a_place_the_newest_tells_when_it_was_asked(store, scopes):
    for days, scope in enumerate(scopes):
        save_part(store, "aws", scope, (), (), (), NOON + timedelta(days=days), place=THERE)
    (answer,) = answers_of([FakeSource(name="aws")], OfferQuery(), store)
    assert answer.asked_at == {THERE: NOON + timedelta(days=1)}


def test_the_warning_names_each_source_that_stands_in():
    gaps = frozenset({(THERE, "p4d"), (THERE, "p5")})
    live = Answer(source="aws", is_live=True, offers=(), unpriced=gaps, asked_at={THERE: NOON})
    own = Answer(source="custom", is_live=False, offers=DATED[:1])
    file = Answer(source="snapshot", is_live=False, offers=DATED[1:2])
    offers = load_offers(OfferQuery(), now=NOON, answers=[live, own, file])
    assert "2 stale prices of custom, snapshot stand in" in sentences(offers.warnings)[-1]
    before = load_offers(OfferQuery(), now=NOON, answers=[own, live, file])
    assert (
        "could not price aws p5 on-demand in us-east-1: 1 stale prices of snapshot"
        in sentences(before.warnings)[-1]
    )


def test_where_only_a_stand_in_is_left_and_too_old_nothing_is_shown_and_both_are_told(store):
    answered = shown(store, Part(scope="here", place=THERE, unpriced=("p4d",)), max_age_s=10 * DAY_S)
    assert prices(answered) == {}
    nothing, left_out = sentences(answered.warnings)
    assert nothing.startswith("no price matches")
    assert "aws p4d on-demand in us-east-1: 1 stale prices of file are older than allowed" in left_out


def test_many_machines_are_counted(store):
    names = tuple(f"p{number}" for number in range(9))
    dated = tuple(make_offer("L4", 2.0, instance_type=name, retrieved_at=NOON) for name in names)
    part = Part(scope="here", place=THERE, unpriced=names)
    (warning,) = [w for w in sentences(shown(store, part, dated=dated).warnings) if "stale" in w]
    assert "p0 on-demand in us-east-1" in warning
    assert "and 6 more: 9 stale prices" in warning


NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
REFRESH = "; `advisor prices refresh` pulls newer ones and needs no account"


def aged(*, gpu: str = "L4", age_days: int = 100, source: str = "test", **changes: str) -> Offer:
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


def answered_by(*offers: Offer, is_live: bool = False) -> Answer:
    return Answer(source="fixed", is_live=is_live, offers=offers)


LIVE = answered_by(aged(age_days=0), is_live=True)
LONG_AGO = answered_by(aged(age_days=800), is_live=True)
DATED_GCP = answered_by(aged(provider="gcp"))
AGES_OF_THREE = "aws 124 to 511 days old (2025-06-28 to 2026-07-20); gcp 100 days old (2026-08-13)"
THREE = answered_by(aged(age_days=124), aged(age_days=511), aged(provider="gcp"))


@pytest.mark.parametrize(
    ("answers", "now", "told"),
    [
        # Live prices have no age to tell; what was pulled long ago is told like a dated file.
        ([LIVE], NOW, ""),
        ([LIVE, DATED_GCP], NOW, f"1 of 2 prices are not live: gcp 100 days old (2026-08-13){REFRESH}"),
        ([LONG_AGO], NOW, f"prices are not live: aws 800 days old (2024-09-12){REFRESH}"),
        ([THREE], NOW, f"prices are not live: {AGES_OF_THREE}{REFRESH}"),
        # Whose prices nobody publishes are not told to be pulled.
        ([answered_by(aged(provider="lab"))], NOW, "prices are not live: lab 100 days old (2026-08-13)"),
        # A date of today east of Greenwich is no wrong clock.
        (
            [answered_by(aged(age_days=0))],
            NOW - timedelta(hours=10),
            "prices are not live: aws 0 days old (2026-11-21)",
        ),
    ],
)
def test_the_age_of_prices_is_told_by_provider(answers, now, told):
    assert said(load_offers(OfferQuery(), now=now, answers=answers).warnings) == told


def test_how_long_a_pull_counts_as_live_may_be_said():
    assert load_offers(OfferQuery(), now=NOW, fresh_s=1000 * DAY_S, answers=[LONG_AGO]).warnings == ()


def test_a_family_is_widened_aloud_and_an_alias_silently():
    known = answered_by(aged(gpu="A100-SXM-80GB"), aged(gpu="T4"), aged())
    query = OfferQuery(gpus=("A100-80GB", "Tesla T4"))
    offers = load_offers(query, now=NOW, answers=[known])
    assert [o.gpu for o in offers.offers] == ["A100-SXM-80GB", "T4"]
    assert sentence(offers.warnings[0]) == ("A100-80GB is a family: taken as A100-PCIE-80GB, A100-SXM-80GB")


def test_an_unknown_gpu_is_an_error_not_an_empty_answer():
    with pytest.raises(UnknownGpuError, match="'A101'"):
        load_offers(OfferQuery(gpus=("A101",)), now=NOW, answers=[answered_by(aged())])


def test_nothing_that_matches_is_said():
    query = OfferQuery(regions=("mars-*",))
    offers = load_offers(query, now=NOW, answers=[answered_by(aged())])
    assert offers.offers == ()
    assert said(offers.warnings) == "no price matches these limits: see `advisor prices`"


def test_computed_prices_are_counted():
    known = answered_by(aged(), aged(source=f"{DERIVED} savings"))
    offers = load_offers(OfferQuery(), now=NOW, answers=[known])
    assert "1 of 2 prices were never quoted but computed from others" in sentence(offers.warnings[1])


def test_prices_from_the_future_blame_the_clock():
    offers = load_offers(OfferQuery(), now=NOW, answers=[answered_by(aged(age_days=-3))])
    assert "prices of aws are dated after today: check the clock" in said(offers.warnings)


def test_an_explicit_age_limit_makes_old_prices_an_error():
    known = answered_by(aged(age_days=5), aged(age_days=40, provider="gcp"))
    with pytest.raises(StaleCatalogError) as caught:
        load_offers(OfferQuery(), now=NOW, max_age_s=30 * DAY_S, answers=[known])
    message = str(caught.value)
    assert message.startswith("1 of 2 prices are older than 30 d: gcp 40 days old (2026-10-12)")
    assert "`prices.max_age`" in message


def test_only_prices_that_match_and_have_the_word_must_be_young_enough():
    known = answered_by(aged(age_days=5), aged(age_days=40, provider="gcp"))
    query = OfferQuery(providers=("aws",))
    offers = load_offers(query, now=NOW, max_age_s=5 * DAY_S, answers=[known])
    assert len(offers.offers) == 1
    answers = [LIVE, answered_by(aged(age_days=400))]
    assert len(load_offers(OfferQuery(), now=NOW, max_age_s=DAY_S, answers=answers).offers) == 1


def test_a_dear_price_still_silences_what_is_less_trusted():
    """The limit counts after the merge: a cheap stale price does not stand in for a dear own rate."""
    dear = dataclasses.replace(aged(), list_usd_per_h=9.0)
    offers = load_offers(
        OfferQuery(max_usd_per_h=2.0), now=NOW, answers=[answered_by(dear), answered_by(aged())]
    )
    assert offers.offers == ()


def test_without_answers_the_shipped_snapshot_is_asked():
    query = OfferQuery(gpus=("L4",), max_usd_per_h=1.0)
    shipped = load_offers(query, now=NOW)
    assert shipped.offers
    assert shipped == load_offers(query, now=NOW, answers=[answer_of(SnapshotSource(), query)])


def test_an_answer_holds_prices_above_the_limit():
    """So that a dear price can silence what is less trusted."""
    limited = answer_of(SnapshotSource(), OfferQuery(gpus=("L4",), max_usd_per_h=0.01))
    assert limited == answer_of(SnapshotSource(), OfferQuery(gpus=("L4",)))
    assert (limited.source, limited.is_live, limited.covers) == ("snapshot", False, frozenset())
    assert {o.gpu for o in limited.offers} == {"L4"}
