"""How well the waits of a log would have been foreseen: its last 30 %, job by job, by what came before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.core.errors import InputError
from advisor.core.values import Quantiles
from recommender.queue.job_log import JobLog
from recommender.queue.waits import ALL, ENOUGH_JOBS, Expected, Waits, replay, to_log_minutes, to_wait_s

TRAINED_SHARE = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How one way to foresee waits did.

    Attributes:
        coverage: share of the waits at or below each quantile; 0.5 and 0.9 are perfect.
        pinball: mean loss of each quantile in log minutes; less is better.
    """

    coverage: Quantiles
    pinball: Quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCheck:
    """Conditional quantiles with and without online correction, beside the quantiles of all recent jobs."""

    num_jobs: int
    num_checked: int
    foreseen: Score
    uncorrected: Score
    baseline: Score


def check(log: JobLog) -> QueueCheck:
    """All are told the same: each wait at the moment its job starts, of the last 8,000 jobs.

    Raises:
        InputError: too few jobs to check anything.
    """
    first = math.floor(len(log.jobs) * TRAINED_SHARE)
    known = Waits()
    waits, foreseen, uncorrected, baseline = [], [], [], []
    for index, (job, expected) in enumerate(replay(log.jobs, known)):
        global_quantiles = known.expect_in(ALL)
        if index < first or expected is None or global_quantiles is None:
            continue
        waits.append(to_log_minutes(job.wait_s))
        foreseen.append(known.corrected(expected))
        uncorrected.append(as_they_are(expected))
        baseline.append(as_they_are(global_quantiles))
    if len(waits) < ENOUGH_JOBS:
        raise InputError(
            f"only {len(waits)} of {len(log.jobs)} jobs can be checked, which says nothing: a log for this"
            f" needs at least {math.ceil(ENOUGH_JOBS / (1 - TRAINED_SHARE))} jobs. Export a longer time."
        )
    return QueueCheck(
        num_jobs=len(log.jobs),
        num_checked=len(waits),
        foreseen=_score(waits, foreseen),
        uncorrected=_score(waits, uncorrected),
        baseline=_score(waits, baseline),
    )


def as_they_are(expected: Expected) -> Quantiles:
    """Seconds, without correction."""
    return Quantiles(p50=to_wait_s(expected.p50), p90=to_wait_s(expected.p90))


def pinball(value: float, quantile: float, probability: float) -> float:
    """Loss that the true quantile makes least (Koenker and Bassett 1978).

    >>> pinball(3.0, 1.0, 0.9), round(pinball(1.0, 3.0, 0.9), 12)
    (1.8, 0.2)
    """
    miss = value - quantile
    return max(probability * miss, (probability - 1) * miss)


def _score(waits: Sequence[float], foreseen: Sequence[Quantiles]) -> Score:
    p50 = _one(waits, [to_log_minutes(quantiles.p50) for quantiles in foreseen], 0.5)
    p90 = _one(waits, [to_log_minutes(quantiles.p90) for quantiles in foreseen], 0.9)
    return Score(
        coverage=Quantiles(p50=p50[0], p90=p90[0]),
        pinball=Quantiles(p50=p50[1], p90=p90[1]),
    )


def _one(waits: Sequence[float], foreseen: Sequence[float], probability: float) -> tuple[float, float]:
    """Coverage and mean pinball loss; a billionth is no miss, for quantiles went through a logarithm."""
    pairs = list(zip(waits, foreseen, strict=True))
    covered = sum(wait <= quantile + 1e-9 for wait, quantile in pairs)
    losses = (pinball(wait, quantile, probability) for wait, quantile in pairs)
    return covered / len(pairs), sum(losses) / len(pairs)
