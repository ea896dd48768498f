"""What a job does when its spot machine is taken away: the policies, and what each makes of the draws.

A policy changes the terms of a plan (how long it is away) or what follows from the draws (a run that goes on
on demand, a rent that is another zone's). So all policies are judged by the same draws.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from advisor.core.units import HOUR_S
from advisor.core.values import Job, Plan, Quantiles, StartWait
from recommender.outcome.spot import Fallback, SpotTerms, is_spot

Array = NDArray[np.float64]

# Correlation between two zones of one region of their log rates, and of their log times away: in nine regions
# of three collections of traces it is 0.55 and below 0 (research/docs/methods/spot.md).
SHARED_RATE, SHARED_OUTAGE = 0.5, 0.0
# The most hours away for each running hour of any job that moved, in the first halves of those traces.
MOST_AWAY_MOVING_H = 0.82


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One way to recover; what it may do beyond waiting for the same zone."""

    name: str
    moves: bool = False
    falls_back: bool = False

    def suits(self, plan: Plan, job: Job) -> bool:
        """Whether the plan can follow it: there is another zone, or a deadline and the machine on demand."""
        there = plan.elsewhere
        if not is_spot(plan) or there is None:
            return self is WAIT
        can_fall_back = job.deadline_s is not None and there.on_demand_usd_per_h is not None
        return (not self.moves or there.num_zones > 0) and (not self.falls_back or can_fall_back)


WAIT = Policy(name="wait")
POLICIES = (
    WAIT,
    Policy(name="move", moves=True),
    Policy(name="wait-or-on-demand", falls_back=True),
    Policy(name="move-or-on-demand", moves=True, falls_back=True),
)


def spread_of_mean(num_zones: int, correlation: float) -> float:
    """Standard deviation of the mean over so many zones, over that of one.

    >>> spread_of_mean(1, 0.5), spread_of_mean(4, 0.0)
    (1.0, 0.5)
    """
    return math.sqrt((1 + (num_zones - 1) * correlation) / num_zones)


def under(policy: Policy, job: Job, terms_of: Callable[[Plan], SpotTerms]) -> Callable[[Plan], SpotTerms]:
    """The terms of plans that follow the policy; equal ones are the same object, as those given are."""
    if policy is WAIT:
        return terms_of
    made: dict[object, tuple[SpotTerms, SpotTerms]] = {}

    def of(plan: Plan) -> SpotTerms:
        given, there = terms_of(plan), plan.elsewhere
        assert there is not None  # noqa: S101 - `suits` was asked
        key = id(given), there.num_zones, there.on_demand_wait_s, plan.startup_s
        # What it is made of is kept, too: no other one gets its id.
        return made.setdefault(key, (given, _terms(policy, job, plan, given)))[1]

    return of


def _terms(policy: Policy, job: Job, plan: Plan, terms: SpotTerms) -> SpotTerms:
    there = plan.elsewhere
    assert there is not None  # noqa: S101
    zones = 1 + (there.num_zones if policy.moves else 0)
    fallback = None
    if policy.falls_back and job.deadline_s is not None:
        lost_h = (terms.checkpoint_interval_h or 0.0) + terms.checkpoint_h
        reserve_s = plan.startup_s + lost_h * HOUR_S + wait_at(there.on_demand_wait_s, job.confidence)
        fallback = Fallback(due_s=job.deadline_s, reserve_s=reserve_s, wait_s=there.on_demand_wait_s)
    return replace(
        terms,
        recovery=policy.name,
        moves=policy.moves,
        # The first of several zones to have a machine again has it so many times as soon.
        reacquire_h=terms.reacquire_h / zones,
        most_away_h=min(terms.most_away_h, MOST_AWAY_MOVING_H) if policy.moves else terms.most_away_h,
        sigma_rate=terms.sigma_rate * spread_of_mean(zones, SHARED_RATE),
        sigma_reacquire=terms.sigma_reacquire * spread_of_mean(zones, SHARED_OUTAGE),
        fallback=fallback,
    )


def wait_at(wait_s: Quantiles | None, probability: float) -> float:
    """The wait that so many starts do not exceed; of a wait with two quantiles known, the upper one."""
    if isinstance(wait_s, StartWait):
        return wait_s.after_s(1 - probability)
    return 0.0 if wait_s is None else wait_s.p90


def moved_share(rate_per_h: Array, running_s: Array, train_s: Array) -> Array:
    """Of the running time, the part in other zones: all but the first of 1 + n stretches of equal length."""
    num_stretches = np.where(train_s > running_s, rate_per_h * np.minimum(running_s, 1e12) / HOUR_S, 0.0)
    return np.asarray(num_stretches / (1 + num_stretches))


@dataclass(frozen=True, slots=True, kw_only=True)
class FallenBack:
    """Draws [n] of seconds of a run that goes on on demand once its deadline leaves no more slack.

    Attributes:
        spot_share: of the spot run that came before; 1 where it ended by itself.
        on_demand_s: on demand, start-up included; 0 where it was not needed.
        time_s: until done.
        left_s: when it left spot; infinite where it did not.
    """

    spot_share: Array
    on_demand_s: Array
    time_s: Array
    left_s: Array


def fall_back(
    fallback: Fallback, *, work_s: Array, begun_s: Array, time_s: Array, startup_s: float, wait_s: Array
) -> FallenBack:
    """A spot run is given up when what is left of the work, on demand, just ends in time.

    The run is taken to advance evenly from ``begun_s`` to ``time_s``. What it has done by then is kept, but
    for what its last checkpoint lacks, which the terms' restarts count already.

    Args:
        fallback: the deadline and what is kept in reserve for the start on demand.
        work_s: without a preemption.
        begun_s: when the training begins.
        time_s: when it would end on spot.
        startup_s: of the machine on demand.
        wait_s: until it is there.
    """
    slack_s = fallback.due_s - fallback.reserve_s - work_s
    with np.errstate(invalid="ignore", divide="ignore"):
        pace = np.where(np.isfinite(time_s), work_s / np.maximum(time_s - begun_s, 1e-9), 0.0)
        on_the_way_s = (slack_s - pace * begun_s) / (1 - pace)
    left_s = np.where(slack_s < begun_s, np.maximum(slack_s, 0.0), on_the_way_s)
    left_s = np.where(time_s > fallback.due_s - fallback.reserve_s, left_s, np.inf)
    gone = np.isfinite(left_s)
    done = np.where(gone, pace * np.maximum(np.where(gone, left_s, 0.0) - begun_s, 0.0) / work_s, 1.0)
    on_demand_s = np.where(gone, startup_s + work_s * (1 - done), 0.0)
    return FallenBack(
        spot_share=done,
        on_demand_s=on_demand_s,
        time_s=np.where(gone, left_s + wait_s + on_demand_s, time_s),
        left_s=left_s,
    )
