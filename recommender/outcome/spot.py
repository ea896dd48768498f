"""Expected makespan and billed time of a preemptible run.

Notation: work W, checkpoint interval t, checkpoint cost c, restart r (billed), mean re-acquire time D
(not billed), L preemptions per running hour. With exponential preemptions

    E[makespan] = (W / t) e^(L r) (1/L + D) (e^(L (t + c)) - 1)
    E[billed]   = (W / t) e^(L r) (1/L)     (e^(L (t + c)) - 1)

Source: Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22,
2006. The best interval is Young's ``sqrt(2 c / L)``. All times here are in hours.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.core.findings.about_options import PreemptionRate
from advisor.core.units import HOUR_S
from advisor.core.values import Elsewhere, Job, Market, Plan, Recovery, StartWait
from advisor.pricing.spot_odds import Interruptions, spot_odds
from recommender.outcome.nodes import slowest_boot, times_of_one
from recommender.outcome.spot_history import Watched, with_history

Array = NDArray[np.float64]

# What a configured figure may be off by (log-normal sigmas).
SIGMA_RATE = 0.6
SIGMA_REACQUIRE = 0.8
CONFIGURED = PreemptionRate(of="configured")
RATE, REACQUIRE, DISPERSION = "preemptions_per_h", "reacquire_h", "dispersion"
ASSUMED = frozenset({RATE, REACQUIRE, DISPERSION})
# The normal distribution as a table: draws lie well within it.
_SCORES = np.linspace(-4.0, 4.0, 801)
_PROBABILITIES = np.array([NormalDist().cdf(score) for score in _SCORES.tolist()])
# A century; beyond it a figure would only look exact.
HOPELESS_H = 100 * 365.25 * 24


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotTerms:
    """How often a spot machine goes away and what that costs."""

    preemptions_per_h: float = 0.33
    """Per running hour of the whole plan. The nodes of a gang are one unit: where one goes, all stop, and
    many go at once, so that N nodes are not preempted N times as often."""
    checkpoint_interval_h: float | None = 0.5
    """None if the script saves none, so that all work is lost each time."""
    checkpoint_h: float = 1 / 60
    restart_h: float = 0.1
    reacquire_h: float = 0.8
    sigma_rate: float = SIGMA_RATE
    """Standard deviation of the logarithm of the rate."""
    most_per_h: float = math.inf
    """A drawn rate is cut there."""
    sigma_reacquire: float = SIGMA_REACQUIRE
    """The same of the mean time until a machine is free again."""
    most_away_h: float = math.inf
    """Drawn hours away for each running hour are cut there."""
    dispersion_up: float = 1.0
    """Variance of the time until a preemption over its squared mean: 1 without memory."""
    dispersion_down: float = 1.0
    """The same of the time until a machine is free again."""
    rate_source: PreemptionRate = CONFIGURED
    """Where the rate comes from."""
    assumed: frozenset[str] = frozenset()
    """Fields that were not given: ``terms_of_plans`` takes them from the machine's class."""
    history: Mapping[str, Watched] = field(default_factory=dict)
    """What was seen of machines, by instance type; ``""`` is any."""
    num_nodes: int = 1
    """Machines of the gang, whose number widens the rate, as their correlation is unknown."""
    recovery: Recovery = Recovery.WAIT
    """The policy that these terms hold under."""
    work_ends_by_s: float | None = None
    """A run that would be later continues on demand, so that its work fits before that; None where it never
    does."""


def is_spot(plan: Plan) -> bool:
    """Whether the plan can be preempted."""
    return plan.offer is not None and plan.offer.market is Market.SPOT


ASSUMED_TERMS = SpotTerms(assumed=ASSUMED)


def seen_of(plan: Plan, history: Mapping[str, Watched]) -> Watched | None:
    """What was seen of the plan's machine; None where nothing was."""
    instance_type = plan.offer.instance_type if plan.offer is not None else ""
    return history.get(instance_type) or history.get("")


def terms_of_plans(
    terms: SpotTerms, buckets: Mapping[tuple[str, str], Interruptions] | None
) -> Callable[[Plan], SpotTerms]:
    """The terms of plans: what is assumed is that of their class, corrected by their log.

    A rate that was not given is no lower than the provider's published floor: its buckets are by instance
    type and region, None where the rate is configured. Plans of one machine and region get the same object,
    as do those of one class where nothing is published.
    """
    made: dict[object, SpotTerms] = {}  # all are kept, so that no other one gets an id that is part of a key

    def once(key: object, make: Callable[[], SpotTerms]) -> SpotTerms:
        if key not in made:
            made[key] = make()
        return made[key]

    def of(plan: Plan) -> SpotTerms:
        offer = plan.offer
        if offer is None or not is_spot(plan):
            return terms
        kind = plan.gpu, plan.layout.gpus_per_node, id(seen_of(plan, terms.history))
        of_class = once(kind, lambda: _of_class(plan, terms) if terms.assumed else terms)
        machine = kind, offer.provider, offer.instance_type, offer.region
        of_one = once(machine, lambda: _floored(plan, of_class, buckets))
        here = once(("gang", id(of_one), plan.num_nodes), lambda: _of_gang(of_one, plan.num_nodes))
        return once(("copied", id(here), plan.copied_s), lambda: restarting(plan, here))

    return of


def _of_gang(of_one: SpotTerms, num_nodes: int) -> SpotTerms:
    """Nodes stop where one of them goes, and go on when all are back."""
    if num_nodes == 1:
        return of_one
    times = times_of_one(num_nodes)
    return replace(
        of_one,
        preemptions_per_h=of_one.preemptions_per_h * times,
        most_per_h=of_one.most_per_h * times,
        reacquire_h=of_one.reacquire_h * times,
        most_away_h=of_one.most_away_h * times**2,
        restart_h=of_one.restart_h * slowest_boot(num_nodes),
        num_nodes=num_nodes,
    )


def restarting(plan: Plan, terms: SpotTerms) -> SpotTerms:
    """The terms where a machine that comes back has empty disks, to which the data set is copied again."""
    return replace(terms, restart_h=terms.restart_h + plan.copied_s / HOUR_S) if plan.copied_s else terms


def _of_class(plan: Plan, terms: SpotTerms) -> SpotTerms:
    odds, seen = spot_odds(plan.gpu, plan.layout.gpus_per_node), seen_of(plan, terms.history)
    source = PreemptionRate(
        of="assumed", basis=odds.basis, num_traces=odds.num_traces, source=odds.source, as_of=str(odds.as_of)
    )
    if seen is not None:
        odds = with_history(odds, seen)
        source = PreemptionRate(of="log", num_preemptions=seen.num_losses, up_h=seen.up_h)
    known: dict[str, Any] = {}
    if RATE in terms.assumed:
        known |= {name: getattr(odds, name) for name in ("preemptions_per_h", "sigma_rate", "most_per_h")}
        known["rate_source"] = source
    if REACQUIRE in terms.assumed:
        known |= {"reacquire_h": odds.outage_h, "sigma_reacquire": odds.sigma_outage}
        known["most_away_h"] = odds.most_away_h
    if DISPERSION in terms.assumed:
        known |= {name: getattr(odds, name) for name in ("dispersion_up", "dispersion_down")}
    return replace(terms, **known)


def _floored(
    plan: Plan, terms: SpotTerms, buckets: Mapping[tuple[str, str], Interruptions] | None
) -> SpotTerms:
    offer, rate_per_h = plan.offer, terms.preemptions_per_h
    if not buckets or offer is None or offer.provider != "aws":
        return terms
    bucket = buckets.get((offer.instance_type, offer.region))
    if bucket is None:
        return terms
    floor = bucket.least_preemptions_per_h
    if floor <= rate_per_h and terms.rate_source.of == "log":
        return terms
    source = PreemptionRate(
        of="published",
        is_floor=floor > rate_per_h,
        source=bucket.source,
        as_of=str(bucket.as_of),
        low_pct=bucket.low_pct,
        high_pct=bucket.high_pct,
        least_preemptions_per_h=floor,
    )
    return replace(terms, preemptions_per_h=max(floor, rate_per_h), rate_source=source)


def makespan_and_billed_h(
    work_h: Array, terms: SpotTerms, *, rate_per_h: Array | float, reacquire_h: Array | float
) -> tuple[Array, Array]:
    """Expected hours until done and hours billed, elementwise; infinite where hopeless."""
    rate, interval, cost = _segments(work_h, terms, rate_per_h)
    with np.errstate(over="ignore"):
        lost = np.exp(rate * terms.restart_h) * np.expm1(rate * (interval + cost))
        billed = work_h / interval * lost / rate
        makespan = work_h / interval * lost * (1 / rate + reacquire_h)
    hopeless = makespan > HOPELESS_H
    return np.where(hopeless, np.inf, makespan), np.where(hopeless, np.inf, billed)


def drawn_hours(
    work_h: Array, terms: SpotTerms, *, rate_per_h: Array, reacquire_h: Array, z: Array
) -> tuple[Array, Array]:
    """Hours until done and hours billed of single runs: the expectation with the luck of preemptions.

    The number of failed attempts at a segment of length s is geometric with mean m = ``e^(Ls) - 1``. With n
    segments and dispersions u and d of the times up and down, the squared coefficient of variation is

        (u (1 + m) + 1 / 3) / (n m)   of what failures cost, a random part of a segment each
        (u (1 + m) + d) / (n m)       of the time away

    Runs without a preemption cost nothing of it. What the others cost is drawn log-normal by the standard
    normal draw ``z``, which one run's makespan and bill share. A Monte-Carlo simulation in the tests agrees.
    """
    makespan, billed = makespan_and_billed_h(work_h, terms, rate_per_h=rate_per_h, reacquire_h=reacquire_h)
    rate, interval, cost = _segments(work_h, terms, rate_per_h)
    with np.errstate(over="ignore", invalid="ignore"):
        failures = np.expm1(np.minimum(rate * (interval + cost + terms.restart_h), 700.0))
        num_segments = work_h / interval
        num_failures = np.maximum(num_segments * failures, 1e-12)
        varied = terms.dispersion_up * (1 + failures)
        # Times up are hyperexponential with balanced means, and a start falls into one in proportion to its
        # length: with equal odds into one of the many short ones or the few long ones.
        expected = rate * (work_h + num_segments * cost)
        apart = math.sqrt(max(terms.dispersion_up - 1, 0.0) / (terms.dispersion_up + 1))
        p_any = (-np.expm1(-(1 + apart) * expected) - np.expm1(-(1 - apart) * expected)) / 2
        # The upper ``p_any`` of a standard normal draw as a draw of its own; minus infinity below it.
        share = (np.interp(z, _SCORES, _PROBABILITIES) - (1 - p_any)) / p_any
        z_of_any = np.where(share > 0, np.interp(share, _PROBABILITIES, _SCORES), -np.inf)
        repeated = _luck(z_of_any, (varied + 1 / 3) / num_failures, p_any)
        away = _luck(z_of_any, (varied + terms.dispersion_down) / num_failures, p_any)
        undisturbed_h = work_h + num_segments * cost
        drawn_billed = undisturbed_h + repeated * (billed - undisturbed_h)
        drawn_makespan = drawn_billed + away * (makespan - billed)
    drawn = (makespan, drawn_makespan), (billed, drawn_billed)
    hours_h, billed_h = (np.where(np.isfinite(mean), one, np.inf) for mean, one in drawn)
    return hours_h, billed_h


def _segments(work_h: Array, terms: SpotTerms, rate_per_h: Array | float) -> tuple[Array, Array, Array]:
    """Rate, interval and checkpoint cost, elementwise; a run shorter than the interval saves nothing."""
    rate = np.maximum(np.asarray(rate_per_h, dtype=np.float64), 1e-12)
    wanted = terms.checkpoint_interval_h
    interval = work_h if wanted is None else np.minimum(work_h, wanted)
    cost = np.where(work_h > interval, terms.checkpoint_h, 0.0)
    return rate, interval, cost


def _luck(z: Array, squared_variation: Array, p_any: Array) -> Array:
    """A variable of mean 1 that is 0 at minus infinity, and log-normal with the odds ``p_any``."""
    variance = np.log(np.maximum((1 + squared_variation) * p_any, 1.0))
    drawn = np.exp(np.sqrt(variance) * np.maximum(z, _SCORES[0]) - variance / 2) / p_any
    return np.where(np.isfinite(z), drawn, 0.0)


def best_checkpoint_interval_h(terms: SpotTerms) -> float:
    """Young's interval: the one that loses least to checkpoints and to repeated work together.

    >>> round(best_checkpoint_interval_h(SpotTerms(preemptions_per_h=0.4, checkpoint_h=0.02)), 4)
    0.3162
    """
    if not terms.preemptions_per_h:
        return math.inf
    return math.sqrt(2 * terms.checkpoint_h / terms.preemptions_per_h)


# A policy changes the terms of a plan (how long it is away) or what follows from the draws (a run that goes
# on on demand, a rent that is another zone's). So all policies are judged by the same draws.

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
        return made.setdefault(key, (given, _terms_under(policy, job, plan, given)))[1]

    return of


def _terms_under(policy: Recovery, job: Job, plan: Plan, terms: SpotTerms) -> SpotTerms:
    there = plan.elsewhere or Elsewhere()
    if policy.falls_back and job.deadline_s is not None:
        wait, lost_h = there.on_demand_wait_s, (terms.checkpoint_interval_h or 0.0) + terms.checkpoint_h
        wait_s = wait.p90 if wait else 0.0
        if isinstance(wait, StartWait):
            wait_s = wait.after_s(1 - job.confidence)
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
