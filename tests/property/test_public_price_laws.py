"""Laws of several sources that know the same machines at different times."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Market, Offer
from advisor.pricing.answers import Answer, machine_of, merged
from tests.builders import make_offer

DAY_0 = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("aws", "theirs", "gpuhunt")


def offers(source: str, days: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[Offer, ...]]:
    """Of a few machines and places; each machine once."""
    one = st.builds(
        lambda machine, region, market, day: make_offer(
            source=source, instance_type=machine, region=region, market=market,
            retrieved_at=DAY_0 + timedelta(days=day),
        ),
        st.sampled_from("abc"), st.sampled_from(("r", "s")),
        st.sampled_from((Market.ON_DEMAND, Market.SPOT)), days,
    )  # fmt: skip
    return st.lists(one, max_size=6, unique_by=machine_of).map(tuple)


def answers(*, knows_all: bool, days: st.SearchStrategy[int]) -> st.SearchStrategy[list[Answer]]:
    """Live ones in order of trust."""
    return st.tuples(*(offers(name, days) for name in NAMES)).map(
        lambda offers_by_source: [
            Answer(source=name, is_live=True, offers=own, knows_all=knows_all)
            for name, own in zip(NAMES, offers_by_source, strict=True)
        ]
    )


def shown(answers: tuple[Answer, ...]) -> list[Offer]:
    return [offer for answer in answers for offer in answer.offers]


@given(st.booleans().flatmap(lambda all_: answers(knows_all=all_, days=st.integers(0, 500))))
def test_of_a_machine_one_source_has_the_word(drawn):
    machines = [machine_of(offer) for offer in shown(merged(drawn))]
    assert len(machines) == len(set(machines))


@given(answers(knows_all=False, days=st.integers(0, 500)))
def test_lists_that_leave_machines_out_hide_none(drawn):
    named = {machine_of(offer) for answer in drawn for offer in answer.offers}
    assert {machine_of(offer) for offer in shown(merged(drawn))} == named


@given(answers(knows_all=False, days=st.integers(0, 500)))
def test_what_is_shown_is_at_most_a_day_older_than_what_anybody_knows(drawn):
    newest: dict[object, datetime] = {}
    for offer in (offer for answer in drawn for offer in answer.offers):
        newest[machine_of(offer)] = max(offer.retrieved_at, newest.get(machine_of(offer), offer.retrieved_at))
    for offer in shown(merged(drawn)):
        assert newest[machine_of(offer)] - offer.retrieved_at <= timedelta(days=1)


@given(
    answers(knows_all=False, days=st.integers(100, 500)), offers("late", st.integers(0, 99)), st.booleans()
)
def test_an_older_source_at_the_end_changes_nothing_of_those_before(drawn, older, knows_all):
    """A pull that brought nothing newer neither freshens nor hides."""
    late = Answer(source="late", is_live=True, offers=older, knows_all=knows_all)
    assert merged([*drawn, late])[:-1] == merged(drawn)
