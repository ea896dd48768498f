"""Recovery policies are replayed step by step, and predicted as the page says."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from advisor.core.values import Recovery
from recommender.outcome.spot import MOST_AWAY_MOVING_H, SpotTerms
from recommender.outcome.spot_history import Stretch, watched
from research.spot_policies import ON_DEMAND_USD, Case, Clock, agreement, cases, regions_of, replay
from research.spot_traces import Trace, read_traces
from tests.shared import SHARED, needs_shared

PUBLISHED = Path(__file__).resolve().parents[2] / "research" / "docs" / "methods" / "spot_policies.json"
TERMS = SpotTerms(checkpoint_interval_h=1.0, checkpoint_h=0.0, restart_h=0.5)
WAIT, MOVE, WAIT_OR_ON_DEMAND, MOVE_OR_ON_DEMAND = POLICIES = tuple(Recovery)


def zone(*hours: float, is_up: bool = True) -> Trace:
    """In turn up and down."""
    rows: list[Stretch] = []
    for one in hours:
        rows.append(Stretch(start_h=rows[-1].end_h if rows else 0.0, hours=one, is_up=is_up))
        is_up = not is_up
    return Trace(collection="c", place="z", num_gpus=1, sums=watched(rows), stretches=tuple(rows))


# The job's own zone is up for 2.5 hours and then away for 7; the other is up from hour 4.
ZONES = (zone(2.5, 7.0, 30.5), zone(4.0, 36.0, is_up=False))


@pytest.mark.parametrize(
    ("policy", "time_h", "usd"),
    [
        (WAIT, 9.5 + 0.5 + 2, 2.5 + 2.5),
        (MOVE, 4 + 0.5 + 2, 2.5 + 2.5),
        # Due at 6: what is left, two hours, must begin on demand before a step of 1.5 hours more is lost.
        (WAIT_OR_ON_DEMAND, 2.5 + 2, 2.5 + 2 * ON_DEMAND_USD),
        (MOVE_OR_ON_DEMAND, 2.5 + 2, 2.5 + 2 * ON_DEMAND_USD),
    ],
)
def test_what_each_policy_makes_of_one_preemption(policy, time_h, usd):
    run = replay(Clock(ZONES), [0, 1], 0.0, 4.0, TERMS, policy)
    assert (run.time_h, run.usd) == (pytest.approx(time_h), pytest.approx(usd))


def test_pairs_that_the_replay_does_not_tell_apart_do_not_count():
    def case(policy: str, usd: float, predicted_usd: float) -> Case:
        return Case(
            collection="c", zone="z", basis="b", policy=policy, work_h=1.0, usd=usd, time_h=1.0, in_time=1.0,
            predicted_usd=predicted_usd, predicted_h=1.0, bill_error=0.0, bill_covered=1.0, time_covered=1.0,
        )  # fmt: skip

    made = [case("a", 1.0, 1.0), case("b", 1.005, 0.5), case("c", 2.0, 0.8)]
    assert agreement(made, "bill") == {"pairs": 2, "alike": 0.5}


@cache
def thinned() -> tuple[Case, ...]:
    return tuple(cases(read_traces(SHARED), lengths_h=(4.0, 24.0), num_starts=10))


@needs_shared
def test_zones_that_were_watched_together_share_their_clock():
    regions = regions_of(read_traces(SHARED))
    assert sum(len(region.traces) for region in regions) == 21
    for region in regions:
        assert len({round(trace.stretches[-1].end_h, 6) for trace in region.traces}) == 1


@needs_shared
def test_who_falls_back_is_in_time_in_every_replay():
    runs = [case for case in thinned() if case.policy.endswith("or-on-demand")]
    assert runs
    assert all(case.in_time == 1 for case in runs)


@needs_shared
def test_policies_are_ranked_as_the_replay_ranks_them():
    """With all lengths and starts: research/docs/methods/spot.md; thinned out a little wider."""
    for basis in ("defaults", "first half"):
        judged = [case for case in thinned() if case.basis == basis]
        assert agreement(judged, "bill")["alike"] >= 0.87
        assert agreement(judged, "time")["alike"] >= 0.9


def test_the_published_figures_keep_the_promise():
    published = json.loads(PUBLISHED.read_text())
    for basis in ("defaults", "first half"):
        assert published[basis]["ranked by bill"]["alike"] >= 0.9
        assert published[basis]["ranked by time"]["alike"] >= 0.9
        assert published[basis]["wait"]["mean_time_ratio"] <= 1.25
    assert published["first half"]["ranked by total"]["alike"] >= 0.9
    assert published["first half"]["move"]["mean_time_ratio"] <= 1.25
    # The defaults have seen neither half.
    halves = [published[basis]["move"] for basis in ("defaults", "defaults, the first half")]
    predicted_h = sum(half["mean_time_ratio"] * half["time_h"] for half in halves)
    assert predicted_h / sum(half["time_h"] for half in halves) <= 1.25
    assert 0.86 <= sum(half["time_covered"] for half in halves) / 2 <= 0.94
    seen = published["hours away for each hour up"]["first half"]
    assert {zones: round(one["left"], 1) for zones, one in seen.items()} == {"2": 0.5, "3": 0.4, "4": 0.2}
    assert round(max(one["most_moving"] for one in seen.values()), 2) == MOST_AWAY_MOVING_H
    assert all(one["bill_error_median"] <= 0.06 for one in list(published["first half"].values())[:4])
