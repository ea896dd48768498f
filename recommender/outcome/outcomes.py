"""Draws of what plans lead to, many plans at once: seconds trained, seconds until done, dollars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from advisor.core.units import DAY_S, HOUR_S
from advisor.core.values import IterationEstimate, Plan
from recommender.outcome.bill import cost_usd, costs_usd
from recommender.outcome.draws import Array, Draws, log_normal
from recommender.outcome.gangs import drawn_over_median
from recommender.outcome.rent import is_guessed, price_rise, rent_factors
from recommender.outcome.spot import SpotTerms, drawn_hours, is_spot


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Draws [plans, n], a row for each plan.

    Attributes:
        steady_usd: the cost at the median of the price.
        counted_usd: the cost where plans are compared: that of a guessed price at its p90.
    """

    train_s: Array
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
        terms: of each; they differ in how often a machine goes away and how long alone.
        draws: as those of ``works_s``.
        runs: keeps what was drawn for other plans; by default nothing was.
    """
    train_s = np.array(works_s)
    running_s = train_s.copy()
    spot = [i for i, plan in enumerate(plans) if is_spot(plan)]
    if spot:
        asked = [works_s[i] for i in spot], [terms[i] for i in spot]
        train_s[spot], running_s[spot] = (runs or SpotRuns(draws)).seconds(*asked)
    startup_s = np.array([[plan.startup_s] for plan in plans])
    wait_s = np.array([draws.waits_of(plan.wait_s) for plan in plans])
    kept_s = startup_s + train_s
    steady_usd, usd, counted_usd = _costs_usd(plans, startup_s + running_s, kept_s, draws)
    return Outcome(
        train_s=train_s,
        time_s=wait_s + kept_s,
        cost_usd=usd,
        steady_usd=steady_usd,
        counted_usd=counted_usd,
    )


def _costs_usd(
    plans: Sequence[Plan], run_s: Array, kept_s: Array, draws: Draws
) -> tuple[Array, Array, Array]:
    """At the median of the price, at the drawn one, and as it counts in comparisons."""
    days = (kept_s.mean(axis=1) / DAY_S).tolist()
    costs = [
        _cost_usd(plan, run, kept, price_rise(plan, run_days), draws)
        for plan, run, kept, run_days in zip(plans, run_s, kept_s, days, strict=True)
    ]
    steady, risen, counted = zip(*costs, strict=True)
    return np.array(steady), np.array(risen), np.array(counted)


def _cost_usd(
    plan: Plan, run_s: Array, kept_s: Array, rise: float, draws: Draws
) -> tuple[Array, Array, Array]:
    """The same of one plan, [n] each."""
    if rise <= 1:
        steady = cost_usd(plan, run_s=run_s, kept_s=kept_s)
        return steady, steady, steady
    factors: list[Array | float] = [1.0, rent_factors(plan, draws, rise)]
    factors += [rise] if is_guessed(plan) else []
    steady, risen, *counted = costs_usd(plan, factors, run_s=run_s, kept_s=kept_s)
    return steady, risen, counted[0] if counted else risen


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
