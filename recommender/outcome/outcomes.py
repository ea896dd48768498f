"""Draws of what plans lead to, many plans at once: seconds trained, seconds until done, dollars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from advisor.core.units import DAY_S, HOUR_S
from advisor.core.values import Interval, IterationEstimate, Plan
from recommender.outcome.bill import cost_usd
from recommender.outcome.draws import Array, Draws, log_normal
from recommender.outcome.gangs import drawn_over_median
from recommender.outcome.reading import EITHER_SIDE
from recommender.outcome.rent import counted_over_median, price_rise, rent_factors
from recommender.outcome.spot import SpotTerms, drawn_hours, is_spot


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Draws [plans, n], a row for each plan.

    Attributes:
        startup_s: [plans, 1] where all of it is sure.
        steady_usd: the cost at the median of the price.
        counted_usd: the cost where plans are compared: that of a guessed price at its p90.
    """

    train_s: Array
    startup_s: Array
    time_s: Array
    cost_usd: Array
    steady_usd: Array
    counted_usd: Array


def work_of(estimate: IterationEstimate, iterations: int, draws: Draws) -> Array:
    """Draws [n] of the seconds of training without a preemption.

    GPU and input are joined draw by draw: so no draw gets longer where the input gets shorter.
    """
    z = draws.prediction_of(estimate.gpu)
    if estimate.input_s is None:
        return iterations * log_normal(estimate.iteration_s, z)
    device_s, load_s = log_normal(estimate.device_s, z), log_normal(estimate.input_s, z)
    return iterations * (device_s + load_s if estimate.loads_in_turn else np.maximum(device_s, load_s))


class SpotRuns:
    """Draws of runs on spot machines, made once for plans with the same work and the same terms."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        # The objects themselves are kept, too: no other one gets their ids.
        self._kept: dict[tuple[int, int], tuple[Array, SpotTerms, Array, Array]] = {}

    def seconds(self, works_s: Sequence[Array], terms: Sequence[SpotTerms]) -> tuple[Array, Array]:
        """Seconds until done and seconds billed, [plans, n] each; arguments as of ``outcome_of``."""
        asked = list(zip(works_s, terms, strict=True))
        keys = [(id(work), id(each)) for work, each in asked]
        new = {key: pair for key, pair in zip(keys, asked, strict=True) if key not in self._kept}
        if new:
            drawn = self._drawn([work for work, _ in new.values()], [each for _, each in new.values()])
            for (key, pair), makespan_s, billed_s in zip(new.items(), *drawn, strict=True):
                self._kept[key] = *pair, makespan_s, billed_s
        rows = [self._kept[key] for key in keys]
        return np.array([row[2] for row in rows]), np.array([row[3] for row in rows])

    def _drawn(self, works_s: Sequence[Array], terms: Sequence[SpotTerms]) -> tuple[Array, Array]:
        rate_per_h = _rates_per_h(terms, self._draws)
        makespan_h, billed_h = drawn_hours(
            np.array(works_s) / HOUR_S,
            terms[0],
            rate_per_h=rate_per_h,
            reacquire_h=_reacquire_h(terms, rate_per_h, self._draws),
            z=self._draws.preemption,
            restart_h=np.array([[each.restart_h] for each in terms]),
        )
        return makespan_h * HOUR_S, billed_h * HOUR_S


def outcome_of(
    plans: Sequence[Plan],
    works_s: Sequence[Array],
    terms: Sequence[SpotTerms],
    draws: Draws,
    runs: SpotRuns | None = None,
) -> Outcome:
    """What each plan leads to.

    Args:
        plans: what is rented or used.
        works_s: ``work_of`` each.
        terms: of each; they differ in how often a machine goes away, how long, and in restarts alone.
        draws: as those of ``works_s``.
        runs: keeps what was drawn for other plans; by default nothing was.
    """
    train_s = np.array(works_s)
    running_s = train_s.copy()
    spot = [i for i, plan in enumerate(plans) if is_spot(plan)]
    if spot:
        asked = [works_s[i] for i in spot], [terms[i] for i in spot]
        train_s[spot], running_s[spot] = (runs or SpotRuns(draws)).seconds(*asked)
    startup_s = _startups_s(plans, draws)
    wait_s = np.array([draws.waits_of(plan.wait_s) for plan in plans])
    kept_s = startup_s + train_s
    steady_usd, usd, counted_usd = _costs_usd(plans, startup_s + running_s, kept_s, draws)
    return Outcome(
        train_s=train_s,
        startup_s=startup_s,
        time_s=wait_s + kept_s,
        cost_usd=usd,
        steady_usd=steady_usd,
        counted_usd=counted_usd,
    )


def _startups_s(plans: Sequence[Plan], draws: Draws) -> Array:
    """Draws [plans, n], or [plans, 1]: of a network that reads slower, a copy takes longer as well."""
    startups_s = np.array([[plan.startup_s] for plan in plans])
    copied_s = np.array([[plan.copied_s] for plan in plans])
    if not copied_s.any():
        return startups_s
    doubt = Interval(p10=1 / EITHER_SIDE, p50=1.0, p90=EITHER_SIDE)
    factors = np.array([log_normal(doubt, draws.prediction_of(plan.gpu)) for plan in plans])
    return np.asarray(startups_s + copied_s * (factors - 1))


def _costs_usd(
    plans: Sequence[Plan], run_s: Array, kept_s: Array, draws: Draws
) -> tuple[Array, Array, Array]:
    """At the median of the price, at the drawn one, and as it counts in comparisons."""
    steady = [cost_usd(p, run_s=run, kept_s=kept) for p, run, kept in zip(plans, run_s, kept_s, strict=True)]
    days = [kept / DAY_S for kept in kept_s.mean(axis=1).tolist()]
    risen = [*steady]
    for i, plan in enumerate(plans):
        if price_rise(plan, days[i]) > 1:
            factors = rent_factors(plan, draws, days[i])
            risen[i] = cost_usd(plan, run_s=run_s[i], kept_s=kept_s[i], over_median=factors)
    counted = [*risen]
    for i, plan in enumerate(plans):
        if (factor := counted_over_median(plan, days[i])) is not None:
            counted[i] = cost_usd(plan, run_s=run_s[i], kept_s=kept_s[i], over_median=factor)
    return np.array(steady), np.array(risen), np.array(counted)


def _rates_per_h(terms: Sequence[SpotTerms], draws: Draws) -> Array:
    """Draws [plans, n] of the rate of preemptions: the higher it is, the less the nodes of a gang share."""
    medians, sigmas, most = np.array([(t.preemptions_per_h, t.sigma_rate, t.most_per_h) for t in terms]).T
    z, num_nodes = draws.preemption_rate, np.array([float(t.num_nodes) for t in terms])
    drawn = np.minimum(medians[:, None] * np.exp(sigmas[:, None] * z), most[:, None])
    return np.asarray(drawn * drawn_over_median(num_nodes, z), dtype=np.float64)


def _reacquire_h(terms: Sequence[SpotTerms], rate_per_h: Array, draws: Draws) -> Array:
    """Draws [plans, n] of the mean time until a machine is free again."""
    medians, sigmas, most = np.array([(t.reacquire_h, t.sigma_reacquire, t.most_away_h) for t in terms]).T
    drawn = medians[:, None] * np.exp(sigmas[:, None] * draws.reacquire)
    return np.asarray(np.minimum(drawn, most[:, None] / np.maximum(rate_per_h, 1e-12)), dtype=np.float64)
