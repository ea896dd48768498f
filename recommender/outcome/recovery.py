"""What a job does when its spot machine is taken away: the policies, and what each makes of the draws.

A policy changes the terms of a plan (how long it is away) or what follows from the draws (a run that goes on
on demand, a rent that is another zone's). So all policies are judged by the same draws.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from advisor.core.units import HOUR_S
from advisor.core.values import Elsewhere, Job, Plan, Recovery, StartWait
from recommender.outcome.draws import Array
from recommender.outcome.spot import SpotTerms

# Correlation of the log rates of two zones of a region: 0.55 in nine regions of three collections of traces.
# That of log times away is not above 0 (research/docs/methods/spot.md).
SHARED_RATE = 0.5
# The most hours away for each running hour of any job that moved, in the first halves of those traces.
MOST_AWAY_MOVING_H = 0.86


def suits(policy: Recovery, plan: Plan, job: Job, spot: SpotTerms) -> bool:
    """Whether the plan can follow it: into another zone, or for a deadline with saved work on demand."""
    there = plan.elsewhere or Elsewhere()
    needed = (job.deadline_s, spot.checkpoint_interval_h, there.on_demand_usd_per_h)
    return not (policy.moves and not there.num_zones) and not (policy.falls_back and None in needed)


def under(policy: Recovery, job: Job, terms_of: Callable[[Plan], SpotTerms]) -> Callable[[Plan], SpotTerms]:
    """The terms of plans that follow the policy; equal ones are the same object, as those given are."""
    if policy is Recovery.WAIT:
        return terms_of
    made: dict[object, tuple[SpotTerms, SpotTerms]] = {}

    def of(plan: Plan) -> SpotTerms:
        given, there = terms_of(plan), plan.elsewhere or Elsewhere()
        key = id(given), there.num_zones, there.on_demand_wait_s, plan.startup_s, _left_behind_s(plan)
        # What it is made of is kept, too: no other one gets its id.
        return made.setdefault(key, (given, _terms(policy, job, plan, given)))[1]

    return of


def _terms(policy: Recovery, job: Job, plan: Plan, terms: SpotTerms) -> SpotTerms:
    there = plan.elsewhere or Elsewhere()
    if policy.falls_back and job.deadline_s is not None:
        wait, lost_h = there.on_demand_wait_s, (terms.checkpoint_interval_h or 0.0) + terms.checkpoint_h
        wait_s = (
            wait.after_s(1 - job.confidence) if isinstance(wait, StartWait) else wait.p90 if wait else 0.0
        )
        terms = replace(terms, work_ends_by_s=job.deadline_s - plan.startup_s - wait_s - lost_h * HOUR_S)
    if not policy.moves:
        return replace(terms, recovery=policy)
    zones = 1 + there.num_zones
    return replace(
        terms,
        recovery=policy,
        restart_h=terms.restart_h + _left_behind_s(plan) / HOUR_S,
        # The first of several zones has one so many times as soon. Regions differ by the mean of theirs.
        reacquire_h=terms.reacquire_h / zones,
        most_away_h=min(terms.most_away_h, MOST_AWAY_MOVING_H),
        sigma_rate=terms.sigma_rate * math.sqrt(SHARED_RATE + (1 - SHARED_RATE) / zones),
        sigma_reacquire=terms.sigma_reacquire / math.sqrt(zones),
    )


def _left_behind_s(plan: Plan) -> float:
    """What fetching the data takes that a disk of the first zone keeps; other disks are filled anyway."""
    return max(plan.download_s - plan.copied_s, 0.0)


def leaving(by_s: float, *, work_s: Array, begun_s: Array, time_s: Array) -> tuple[Array, Array]:
    """When a run leaves spot, as what is left of the work just ends by then; and the work done before, of 1.

    Infinity, and all of it, where it ends on spot. It advances evenly from ``begun_s`` to ``time_s``.
    """
    slack_s = by_s - work_s
    with np.errstate(invalid="ignore", divide="ignore"):
        pace = np.where(np.isfinite(time_s), work_s / np.maximum(time_s - begun_s, 1e-9), 0.0)
        on_the_way_s = (slack_s - pace * begun_s) / (1 - pace)
    left_s = np.where(slack_s < begun_s, np.maximum(slack_s, 0.0), on_the_way_s)
    is_late = time_s > by_s
    done = np.where(is_late, pace * np.maximum(left_s - begun_s, 0.0) / work_s, 1.0)
    return np.where(is_late, left_s, np.inf), done
