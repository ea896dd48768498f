"""The odds of a class of machines, corrected by what was seen of one: little seen counts for little."""

from __future__ import annotations

import math
from dataclasses import replace

from advisor.core.values import StartWait
from advisor.pricing.spot import SpotOdds
from recommender.availability.series import Watched

# Nothing shorter is told apart: no provider hands out a machine faster.
_LEAST_OUTAGE_H = 1 / 60


def with_history(odds: SpotOdds, seen: Watched) -> SpotOdds:
    """Odds of one machine: the class as prior, the log as evidence, both log-normal.

    A log of n preemptions is off by ``drift^2 + dispersion / n`` of variance, where n is what was seen or was
    to be expected, whichever is more: none in a long time says much. What comes next drifts once more.

    Args:
        odds: of the machine's class.
        seen: its log.
    """
    rate, sigma_rate = _updated(
        math.log(odds.preemptions_per_h),
        odds.sigma_rate,
        math.log((seen.num_losses + 0.5) / max(seen.up_h, _LEAST_OUTAGE_H)),
        error=_error(odds, seen),
        drift=odds.drift_rate,
    )
    outage, sigma_outage = math.log(odds.outage_h), odds.sigma_outage
    if seen.num_outages:
        outage, sigma_outage = _updated(
            outage,
            sigma_outage,
            math.log(max(seen.down_h / seen.num_outages, _LEAST_OUTAGE_H)),
            error=odds.dispersion_down / seen.num_outages,
            drift=odds.drift_outage,
        )
    return replace(
        odds,
        preemptions_per_h=math.exp(rate),
        sigma_rate=sigma_rate,
        most_per_h=max(odds.most_per_h, 2 * math.exp(rate)),
        outage_h=math.exp(outage),
        sigma_outage=sigma_outage,
        most_away_h=max(odds.most_away_h, 2 * math.exp(rate + outage)),
    )


def start_with_history(wait: StartWait, odds: SpotOdds, seen: Watched) -> StartWait:
    """How long a start of one spot machine waits: as often as its log says, as far as that says anything.

    Args:
        wait: of the machine's class.
        odds: of the class, too.
        seen: its log.
    """
    error = odds.drift_rate**2 + _error(odds, seen)
    weight = odds.sigma_rate**2 / (odds.sigma_rate**2 + error)
    p_at_once = wait.p_at_once + weight * (1 - seen.share_down - wait.p_at_once)
    longer = with_history(odds, seen).outage_h / odds.outage_h
    return StartWait.of(
        p_at_once=min(max(p_at_once, 0.001), 0.999),
        at_once_s=wait.at_once_s,
        later_p50_s=wait.later_p50_s * longer,
        later_p90_s=wait.later_p90_s * longer,
    )


def _error(odds: SpotOdds, seen: Watched) -> float:
    """Variance of the logarithm of a logged rate that chance alone explains."""
    return odds.dispersion_up / (max(seen.num_losses, odds.preemptions_per_h * seen.up_h) + 0.5)


def _updated(prior: float, sigma: float, seen: float, *, error: float, drift: float) -> tuple[float, float]:
    """Mean and standard deviation of what comes next, normal prior and evidence."""
    variance = drift**2 + error
    weight = sigma**2 / (sigma**2 + variance)
    return prior + weight * (seen - prior), math.sqrt(weight * variance + drift**2)
