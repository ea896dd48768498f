"""Stretches of a log, and their sums."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import InputError
from recommender.outcome.spot_history import Stretch, Watched, joined, watched

STATES = st.lists(
    st.tuples(st.floats(0.01, 100), st.sampled_from([True, False, None])), min_size=2, max_size=30
).map(lambda pairs: [(sum(gap for gap, _ in pairs[: i + 1]), state) for i, (_, state) in enumerate(pairs)])


def test_equal_states_are_one_stretch():
    (stretches_joined,) = joined([(0.0, True), (1.0, True), (3.0, False), (4.0, None)])
    assert stretches_joined == [
        Stretch(start_h=0.0, hours=3.0, is_up=True),
        Stretch(start_h=3.0, hours=1.0, is_up=False),
    ]


def test_nobody_watches_between_an_end_and_the_next_event():
    watches = joined([(0.0, True), (2.0, None), (10.0, False), (11.0, True), (12.0, None)])
    assert [len(watch) for watch in watches] == [1, 2]
    assert sum(s.hours for watch in watches for s in watch) == pytest.approx(4.0)


def test_one_event_alone_watches_nothing():
    assert joined([(0.0, True)]) == []
    assert joined([]) == []


def test_a_state_of_no_time_is_no_stretch():
    (stretches,) = joined([(0.0, True), (2.0, False), (2.0, True), (3.0, None)])
    assert watched(stretches) == Watched(up_h=3.0, down_h=0.0, num_losses=0, num_outages=0)


def test_sums_of_a_watch():
    (stretches,) = joined([(0.0, False), (1.0, True), (5.0, False), (7.0, True), (8.0, None)])
    stretches_joined = watched(stretches)
    assert stretches_joined == Watched(up_h=5.0, down_h=3.0, num_losses=1, num_outages=2)
    assert stretches_joined.share_down == pytest.approx(3 / 8)
    assert stretches_joined + stretches_joined == Watched(up_h=10.0, down_h=6.0, num_losses=2, num_outages=4)


@given(STATES)
def test_no_hour_is_lost_or_counted_twice(states):
    gaps = pairwise(states)
    expected = sum(end - start for (start, state), (end, _) in gaps if state is not None)
    sums = [watched(stretches) for stretches in joined(states)]
    assert sum(s.up_h + s.down_h for s in sums) == pytest.approx(expected)
    for one in sums:
        assert abs(one.num_losses - one.num_outages) <= 1


def test_a_machine_cannot_be_away_for_less_than_no_time():
    with pytest.raises(InputError, match="down_h"):
        Watched(down_h=-1.0)
