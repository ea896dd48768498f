"""Whether a job gets cheaper if it starts some hours later, from what the same hours cost on past days."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from advisor.core.findings.about_options import LaterStart
from advisor.core.units import HOUR_S
from advisor.core.values import PricePoint, Recommendation
from recommender.outcome.draws import Array

DAY_H = 24
LEAST_DAYS = 14
# A saving below this share is not worth waiting for.
LEAST_SHARE = 0.01


def cheapest_start(
    points: Sequence[PricePoint], *, run_s: float, now: datetime, num_nodes: int = 1
) -> LaterStart | None:
    """When to start a run of ``run_s`` seconds, if the prices of past days say so clearly.

    A start at this hour of the day is compared with later ones on each past day on which all of them could
    have run to their end. The start of least mean price is reported if its mean saving exceeds the standard
    deviation of the saving from day to day, and a hundredth of the price. None without points of 14 days and
    as many days to compare, or where now is as good a time as any. Prices of the past promise nothing: told
    are their means over past days.

    Args:
        points: prices of one machine in one place and market, in any order; each holds until the next one,
            the last until now.
        run_s: how long the machine runs, above 0.
        now: with a time zone.
        num_nodes: machines of that price that run together.
    """
    if run_s <= 0:
        raise ValueError(f"a run takes more than 0 s, got {run_s:g}")
    known = sorted((point for point in points if point.observed_at <= now), key=lambda p: p.observed_at)
    if not known or known[-1].observed_at - known[0].observed_at < timedelta(days=LEAST_DAYS):
        return None
    usd = _past_runs_usd(known, run_s / HOUR_S, now)
    if len(usd) < LEAST_DAYS:
        return None
    savings = usd[:, :1] - usd
    delay_h = int(np.argmax(savings.mean(axis=0)))
    saving_usd = float(savings[:, delay_h].mean())
    spread_usd = float(savings[:, delay_h].std(ddof=1))
    at_once_usd = float(usd[:, 0].mean())
    if saving_usd <= max(spread_usd, LEAST_SHARE * at_once_usd):
        return None
    return LaterStart(
        delay_h=delay_h,
        start_at=(now + timedelta(hours=delay_h)).isoformat(),
        saving_usd=saving_usd * num_nodes,
        spread_usd=spread_usd * num_nodes,
        usd=at_once_usd * num_nodes,
        num_days=len(usd),
    )


def _past_runs_usd(points: Sequence[PricePoint], run_h: float, now: datetime) -> Array:
    """Dollars of a run by day and by hours of delay: [days, 24]."""
    first = points[0].observed_at
    times_h = np.array([(point.observed_at - first).total_seconds() for point in points]) / HOUR_S
    now_h = (now - first).total_seconds() / HOUR_S
    ends_h = np.append(times_h, now_h)
    paid_usd = np.append(0.0, np.cumsum(np.diff(ends_h) * [point.usd_per_h for point in points]))
    least_days_ago = math.ceil((DAY_H - 1 + run_h) / DAY_H)
    days_ago = np.arange(least_days_ago, math.floor(now_h / DAY_H) + 1)
    starts_h = now_h - DAY_H * days_ago[:, np.newaxis] + np.arange(DAY_H)
    runs: Array = np.interp(starts_h + run_h, ends_h, paid_usd) - np.interp(starts_h, ends_h, paid_usd)
    return runs


def with_shifts(
    recommendation: Recommendation, history: Mapping[str, Sequence[PricePoint]], now: datetime
) -> Recommendation:
    """Options with a later start instead of at once, where that pays; ``history`` is by plan id."""
    shifted = []
    for option in recommendation.options:
        points, num_nodes = history.get(option.plan.id, ()), option.plan.num_nodes
        run_s = option.plan.startup_s + option.train_s.p50
        if points and math.isfinite(run_s):
            advice = cheapest_start(points, run_s=run_s, now=now, num_nodes=num_nodes)
            option = replace(option, reasons=(*option.reasons, advice)) if advice else option
        shifted.append(option)
    return replace(recommendation, options=tuple(shifted))
