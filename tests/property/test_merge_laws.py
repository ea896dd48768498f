"""Laws of merging: equal to a slow clear reference, blind to order inside an answer, one source a machine."""

import dataclasses
from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Market, Offer
from advisor.pricing.answers import Answer, merged
from advisor.pricing.sources.protocol import Place
from tests.builders import make_offer

PLACES: list[Place] = [
    (provider, region, market)
    for provider in ("aws", "acme")
    for region in ("us-east-1", "eu-west-1")
    for market in (Market.ON_DEMAND, Market.SPOT)
]


@st.composite
def answers(draw: st.DrawFn) -> list[Answer]:
    """Up to four answers, each offer's source telling whose it is."""
    return [_answer(draw, f"source {number}") for number in range(draw(st.integers(0, 4)))]


def _answer(draw: st.DrawFn, source: str) -> Answer:
    offers = [
        make_offer(
            provider=provider, region=region, market=market, source=source,
            instance_type=draw(st.sampled_from(["p4d", "p5"])), zone=draw(st.sampled_from([None, "az1"])),
        )
        for provider, region, market in draw(st.lists(st.sampled_from(PLACES), max_size=8))
    ]  # fmt: skip
    covers = draw(st.frozensets(st.sampled_from(PLACES), max_size=3))
    machines = st.tuples(st.sampled_from(PLACES), st.sampled_from(["p4d", "p5"]))
    return Answer(
        source=source,
        is_live=draw(st.booleans()),
        offers=tuple(offers),
        covers=covers,
        unpriced=draw(st.frozensets(machines, max_size=3)),
    )


def place(offer: Offer) -> Place:
    return offer.provider, offer.region, offer.market


def has_the_word(offer: Offer, earlier: list[Answer]) -> bool:
    """No earlier answer names its machine in its place, nor covers the place, unless one lacks its price."""
    named = any(machine(o) == machine(offer) for answer in earlier for o in answer.offers)
    covered = any(place(offer) in answer.covers for answer in earlier)
    return not named and (not covered or lacks_its_price(offer, earlier))


def lacks_its_price(offer: Offer, earlier: Sequence[Answer]) -> bool:
    """Said by an answer before any other covered the place."""
    first = next((n for n, answer in enumerate(earlier) if place(offer) in answer.covers), len(earlier))
    return any(machine(offer) in answer.unpriced for answer in earlier[: first + 1])


def machine(offer: Offer) -> tuple[Place, str]:
    return place(offer), offer.instance_type


@given(answers())
def test_merging_equals_the_reference(given_answers):
    expected = tuple(
        dataclasses.replace(
            answer, offers=tuple(o for o in answer.offers if has_the_word(o, given_answers[:number]))
        )
        for number, answer in enumerate(given_answers)
    )
    assert merged(given_answers) == expected


@given(answers(), st.randoms(use_true_random=False))
def test_order_inside_an_answer_changes_nothing_but_the_order(given_answers, random):
    shuffled = [
        dataclasses.replace(a, offers=tuple(random.sample(a.offers, len(a.offers)))) for a in given_answers
    ]
    for one, other in zip(merged(given_answers), merged(shuffled), strict=True):
        assert Counter(one.offers) == Counter(other.offers)


@given(answers())
def test_every_machine_has_one_source_in_a_region_and_market(given_answers):
    sources: dict[tuple[Place, str], set[str]] = {}
    for answer in merged(given_answers):
        for offer in answer.offers:
            sources.setdefault((place(offer), offer.instance_type), set()).add(offer.source)
    assert all(len(names) == 1 for names in sources.values())
    known = {(place(o), o.instance_type): place(o) for a in given_answers for o in a.offers}
    covered = {p for a in given_answers for p in a.covers}
    assert {machine for machine, where in known.items() if where not in covered} <= set(sources)


@given(answers())
def test_a_covered_place_never_shows_offers_of_a_later_source(given_answers):
    joined = merged(given_answers)
    for number, answer in enumerate(joined):
        for later in joined[number + 1 :]:
            shown = [offer for offer in later.offers if place(offer) in answer.covers]
            assert all(lacks_its_price(offer, joined[: joined.index(later)]) for offer in shown)


@given(answers())
def test_merging_again_changes_nothing(given_answers):
    once = merged(given_answers)
    assert merged(once) == once
