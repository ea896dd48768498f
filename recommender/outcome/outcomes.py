"""Draws of what plans lead to, many plans at once: seconds trained, seconds until done, dollars."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from advisor.core.iterables import grouped
from advisor.core.units import DAY_S, HOUR_S
from advisor.core.values import AssumedWait, Elsewhere, Interval, IterationEstimate, Plan
from recommender.outcome.bill import costs_usd, is_guessed, most_rise, price_rise, rent_over_median
from recommender.outcome.draws import Array, Draws, log_normal
from recommender.outcome.feeding import EITHER_SIDE
from recommender.outcome.nodes import drawn_over_median
from recommender.outcome.spot import SpotTerms, drawn_hours, is_spot, leaving

# Spot runs that are drawn together: enough to hide the cost of a call, few enough for the cache.
CHUNK = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRun:
    """Draws [n] of the seconds of one run."""

    startup_s: Array | float
    """Until the training begins; one number where all of it is sure."""
    train_s: Array
    """Of the training, with the time that a spot machine is away."""
    run_s: Array
    """From boot on, as far as the machine is there."""
    kept_s: Array
    """From boot to the end."""
    time_s: Array
    """The same, and the wait before."""
    due_s: Array
    """What a deadline counts with: ``time_s``, an assumed wait at its longest."""
    moved_share: Array | float = 0.0
    """Of the time that is billed, the part in other zones."""
    on_demand_s: Array | float = 0.0
    """Billed on demand, beside ``run_s``."""

    @property
    def stays(self) -> bool:
        """Whether no draw of it goes on elsewhere."""
        return not any(isinstance(part, np.ndarray) for part in (self.moved_share, self.on_demand_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Draws [plans, n] of dollars, a row for each plan."""

    steady_usd: Array
    """The cost at the median of the price."""
    usd: Array
    """At the drawn price."""
    counted_usd: Array
    """The cost where plans are compared: that of a guessed price at its p90."""
    own_shares: Sequence[float]
    """As in `Means`, of each plan."""


def work_of(estimate: IterationEstimate, iterations: int, draws: Draws) -> Array:
    """Draws [n] of the seconds of training without a preemption.

    GPU and input are joined draw by draw: so no draw gets longer where the input gets shorter.
    """
    z = draws.prediction_of(estimate.gpu)
    if estimate.input_s is None:
        return iterations * log_normal(estimate.iteration_s, z)
    device_s, load_s = log_normal(estimate.device_s, z), log_normal(estimate.input_s, z)
    return iterations * (device_s + load_s if estimate.loads_in_turn else np.maximum(device_s, load_s))


def runs_of(
    plans: Sequence[Plan], works_s: Sequence[Array], terms: Sequence[SpotTerms], draws: Draws
) -> list[DrawnRun]:
    """How each plan runs; those that differ in price or place alone share one.

    Args:
        works_s: ``work_of`` each.
        terms: of each; they differ in how often a machine goes away, how long, and in restarts alone.
        draws: as those of ``works_s``.
    """
    asked = list(zip(plans, works_s, terms, strict=True))
    pairs = [(work_s, each) for plan, work_s, each in asked if is_spot(plan)]
    of_spot = _spot_seconds(pairs, draws)
    runs: dict[object, DrawnRun] = {}
    found = []
    for plan, work_s, each in asked:
        pair = (id(work_s), id(each) if is_spot(plan) else None)
        key = (*pair, plan.startup_s, plan.copied_s, plan.wait_s)
        if key not in runs:
            run = _run(plan, *of_spot.get(pair, (work_s, work_s)), draws)
            runs[key] = _recovered(plan, run, work_s, each, draws) if is_spot(plan) else run
        found.append(runs[key])
    return found


def _recovered(plan: Plan, run: DrawnRun, work_s: Array, terms: SpotTerms, draws: Draws) -> DrawnRun:
    """The run with what its policy does after a preemption, beside the time away that the terms tell."""
    spot_s = run.run_s - run.startup_s
    if terms.recovery.moves:
        # All but the first of 1 + n equal stretches are in other zones.
        hours = np.where(run.train_s > spot_s, np.minimum(spot_s, 1e12) / HOUR_S, 0.0)
        run = replace(run, moved_share=1 - 1 / (1 + _rates_per_h([terms], draws)[0] * hours))
    if terms.work_ends_by_s is None:
        return run
    waited_s = draws.waits_of(plan.wait_s)
    begun_s = waited_s + run.startup_s
    left_s, done = leaving(terms.work_ends_by_s, work_s=work_s, begun_s=begun_s, time_s=run.time_s)
    # A spot run that never ends is billed all the time before.
    spot_s = np.multiply(spot_s, done, out=np.maximum(left_s - begun_s, 0.0), where=np.isfinite(spot_s))
    on_demand_s = np.where(done < 1, plan.startup_s + work_s * (1 - done), 0.0)
    there = plan.elsewhere.on_demand_wait_s if plan.elsewhere is not None else None
    time_s = np.where(done < 1, left_s + draws.waits_of(there) + on_demand_s, run.time_s)
    kept_s = time_s - np.minimum(waited_s, left_s)
    return replace(
        run,
        train_s=kept_s - run.startup_s,
        run_s=np.clip(left_s - waited_s, 0.0, run.startup_s) + spot_s,
        kept_s=kept_s,
        time_s=time_s,
        due_s=time_s,
        on_demand_s=on_demand_s,
    )


def _run(plan: Plan, train_s: Array, running_s: Array, draws: Draws) -> DrawnRun:
    startup_s: Array | float = plan.startup_s
    if plan.copied_s:  # of a network that reads slower, a copy takes longer as well
        doubt = Interval(p10=1 / EITHER_SIDE, p50=1.0, p90=EITHER_SIDE)
        startup_s += plan.copied_s * (log_normal(doubt, draws.prediction_of(plan.gpu)) - 1)
    kept_s = startup_s + train_s
    time_s = draws.waits_of(plan.wait_s) + kept_s
    return DrawnRun(
        startup_s=startup_s,
        train_s=train_s,
        run_s=kept_s if running_s is train_s else startup_s + running_s,
        kept_s=kept_s,
        time_s=time_s,
        due_s=plan.wait_s.longest_s + kept_s if isinstance(plan.wait_s, AssumedWait) else time_s,
    )


def _spot_seconds(
    pairs: Sequence[tuple[Array, SpotTerms]], draws: Draws
) -> dict[tuple[int, int | None], tuple[Array, Array]]:
    """Draws [n] of the seconds until done and of those billed, by the identities of work and terms."""
    distinct = {(id(work_s), id(terms)): (work_s, terms) for work_s, terms in pairs}
    alike = grouped(distinct, lambda key: _CADENCE(distinct[key][1]))
    found: dict[tuple[int, int | None], tuple[Array, Array]] = {}
    for keys in alike.values():
        for start in range(0, len(keys), CHUNK):
            members = keys[start : start + CHUNK]
            works_s, terms = zip(*(distinct[key] for key in members), strict=True)
            rates_per_h, works_h = _rates_per_h(terms, draws), np.array(works_s) / HOUR_S
            away = [(t.reacquire_h, t.sigma_reacquire, t.most_away_h) for t in terms]
            medians, sigmas, most = np.array(away).T[:, :, None]
            away_h = medians * np.exp(sigmas * draws.reacquire)
            away_h = np.minimum(away_h, most / np.maximum(rates_per_h, 1e-12))
            makespan_h, billed_h = drawn_hours(
                works_h, terms[0], rate_per_h=rates_per_h, reacquire_h=away_h, z=draws.preemption
            )
            rows = zip(makespan_h * HOUR_S, billed_h * HOUR_S, strict=True)
            found.update(zip(members, rows, strict=True))
    return found


# What runs that are drawn together must have in common.
_CADENCE = attrgetter(
    "checkpoint_interval_h", "checkpoint_h", "restart_h", "dispersion_up", "dispersion_down"
)


_Usd = tuple[Array, Array, Array]
"""Draws [n] of a cost: at the median of the price, at the drawn one, and as it counts in comparisons."""


def costs_of(plans: Sequence[Plan], runs: Sequence[DrawnRun], draws: Draws) -> Costs:
    """What each plan costs, run so."""
    costs = [_cost_usd(plan, run, draws) for plan, run in zip(plans, runs, strict=True)]
    steady, risen, counted = zip(*costs, strict=True)
    usd = np.array(risen)
    is_counted = all(one is other for one, other in zip(risen, counted, strict=True))
    return Costs(
        steady_usd=np.array(steady),
        usd=usd,
        counted_usd=usd if is_counted else np.array(counted),
        own_shares=[_own_share(plan, run) for plan, run in zip(plans, runs, strict=True)],
    )


def _own_share(plan: Plan, run: DrawnRun) -> float:
    if plan.elsewhere is None or run.stays:
        return 1.0
    billed_s = np.where(np.isfinite(run.run_s), run.run_s, 0.0)
    own_usd = float(np.mean(billed_s * (1 - run.moved_share))) * (plan.usd_per_h or 0.0)
    elsewhere_usd = float(np.mean(billed_s * run.moved_share)) * plan.elsewhere.usd_per_h
    on_demand_usd = float(np.mean(run.on_demand_s)) * (plan.elsewhere.on_demand_usd_per_h or 0.0)
    total_usd = own_usd + elsewhere_usd + on_demand_usd
    return own_usd / total_usd if total_usd else 1.0


def _cost_usd(plan: Plan, run: DrawnRun, draws: Draws) -> _Usd:
    if run.stays:
        over = _over_medians(plan, run, draws)
        return _three(list(costs_usd(plan, over, run_s=run.run_s, kept_s=run.kept_s)))
    there, own = plan.elsewhere or Elsewhere(), plan.usd_per_h or 1.0
    moved = 1 + run.moved_share * (there.usd_per_h / own - 1)
    # Each stretch elsewhere fetches the data anew.
    num_again = run.moved_share / np.maximum(1 - run.moved_share, 1e-12) + (np.asarray(run.on_demand_s) > 0)
    again_usd = plan.transfer_usd * num_again
    rents = [moved * over for over in _over_medians(plan, run, draws)]
    spot = _three([usd + again_usd for usd in costs_usd(plan, rents, run_s=run.run_s, kept_s=run.kept_s)])
    if there.on_demand is None or not np.any(run.on_demand_s):
        return spot
    usd = np.asarray(run.on_demand_s) * (there.on_demand.usd_per_h or 0.0) / HOUR_S
    on_demand = _three([usd * over for over in _over_medians(there.on_demand, run, draws)])
    return spot[0] + on_demand[0], spot[1] + on_demand[1], spot[2] + on_demand[2]


def _over_medians(plan: Plan, run: DrawnRun, draws: Draws) -> list[Array | float]:
    """What the rent costs over its median: at that, as drawn, as a guess counts; as far as they differ."""
    rise = price_rise(plan, float(run.kept_s.mean()) / DAY_S)
    if rise <= 1:
        return [1.0]
    # What one GPU costs in one region is one draw.
    z = draws.price_of(f"{plan.provider}/{plan.gpu}/{'' if plan.offer is None else plan.offer.region}")
    return [1.0, rent_over_median(z, rise, most_rise(plan)), *([rise] if is_guessed(plan) else [])]


def _three(usd: Sequence[Array]) -> _Usd:
    return usd[0], usd[min(1, len(usd) - 1)], usd[-1]


def _rates_per_h(terms: Sequence[SpotTerms], draws: Draws) -> Array:
    """Draws [plans, n] of the rate of preemptions: the higher it is, the less the nodes of a gang share."""
    medians, sigmas, most = np.array([(t.preemptions_per_h, t.sigma_rate, t.most_per_h) for t in terms]).T
    z, num_nodes = draws.preemption_rate, np.array([float(t.num_nodes) for t in terms])
    drawn = np.minimum(medians[:, None] * np.exp(sigmas[:, None] * z), most[:, None])
    times = drawn_over_median(num_nodes, z) if num_nodes.max() > 1 else 1.0
    return np.asarray(drawn * times, dtype=np.float64)
