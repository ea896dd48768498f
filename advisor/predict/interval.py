"""How sure an iteration time is.

The spread is log-normal: ``p90 / p50 = exp(1.2816 sigma)``. An operator's sigma is what its method is worth:
learned times say it themselves (``advisor.predict.learned``), the roofline is wider where a constant was not
fitted on the GPU itself. What is left of them in a step: ``advisor.predict.methods.OpTimes``.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TypeVar

from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import CorrectedByReceipts, Drift
from advisor.core.iterables import grouped
from advisor.core.values import Z90, Interval, IterationEstimate

SIGMA_MEASURED = 0.03
SIGMA_WAVE = 0.25
SIGMA_ROOFLINE_FITTED = 0.25
SIGMA_ROOFLINE_ASSUMED = 0.35
# The part of what calls of a family share that is left in a step, and by how much steps of labs differ: both
# such that p10..p90 holds 80 % of the steps of whichever lab is left out (research/docs/accuracy/lambda.md).
LEFT_IN_A_STEP, SIGMA_LAB = 0.55, 0.05
SIGMA_COMMUNICATION = 0.4
# Compiled over eager steps of published models (research/docs/accuracy/compiled.md).
SIGMA_COMPILED = 0.15
# Another machine's cores, disks and network load up to about twice as fast or slow.
SIGMA_LOADING = 0.5


def spread(p50_s: float, sigma: float) -> Interval:
    """The interval of a log-normal with median ``p50_s``.

    >>> spread(1.0, 0.0)
    Interval(p10=1.0, p50=1.0, p90=1.0)
    """
    factor = math.exp(Z90 * sigma)
    return Interval(p10=p50_s / factor, p50=p50_s, p90=p50_s * factor)


def part_of(whole_s: float, part_s: Interval) -> Interval:
    """A time of which a part is uncertain, and the rest is sure.

    >>> part_of(2.0, Interval(p10=1.0, p50=1.0, p90=4.0))
    Interval(p10=2.0, p50=2.0, p90=4.0)
    """
    share = part_s.p50 / whole_s
    p10, p90 = (whole_s * (side_s / part_s.p50) ** share for side_s in (part_s.p10, part_s.p90))
    return Interval(p10=p10, p50=whole_s, p90=p90)


def widened(interval: Interval, sigma: float) -> Interval:
    """An interval with a further, independent log-normal error; the median stays.

    >>> widened(Interval(p10=1.0, p50=1.0, p90=1.0), 0.0)
    Interval(p10=1.0, p50=1.0, p90=1.0)
    """
    if not interval.p10 > 0:
        return interval

    def factor(ratio: float) -> float:
        return math.exp(math.hypot(math.log(ratio), Z90 * sigma))

    p10, p50, p90 = interval.p10, interval.p50, interval.p90
    return Interval(p10=p50 / factor(p50 / p10), p50=p50, p90=p50 * factor(p90 / p50))


# A team's own runs -> how far predictions for a GPU are off, and how sure they are by then.
#
# The log of measured over predicted time has two parts: what is off for a GPU as this team uses it, and
# what is off for one job. Before any run, half of the variance that a prediction tells is taken for the one
# and half for the other. Runs of one job share its part, so they count as one: their median. The median
# over jobs m, shrunk towards 0, corrects the next prediction:
#
#     w = t / (t + (pi / 2) s / n),  p50' = p50 exp(w m),  sigma'^2 = s + t (1 - w)
#
# where sigma is what the prediction tells, t = sigma^2 / 2, s the larger of sigma^2 / 2 and the variance
# between jobs, and n their number; pi / 2 since a median of n is as sure as a mean of 0.64 n. m counts up
# to 2 sigma, so that one wild run moves little. sigma' is at most sigma. (Normal prior and normal error:
# Gelman et al., Bayesian Data Analysis, 2.5.)

K = TypeVar("K")
LAST = 5
"""So many runs are looked at for a drift."""
LEAST = 3
"""So many of them have to be there, and to lie on one side of their intervals."""
MOST_SIGMAS = 2.0
# The median absolute deviation of a normal distribution times this is its standard deviation.
_MAD = 1.4826


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """A run beside what was predicted for it, on the same GPUs."""

    gpu: str
    job: str
    """What shares an error, such as one script of one project."""
    measured_s: float
    """The median of its steps."""
    predicted_s: Interval
    """Of a step, as it was answered."""
    uncorrected_p50_s: float
    """Before receipts of earlier runs corrected it: these must not confirm themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What the runs on a GPU say of its predictions."""

    num_jobs: int
    num_runs: int
    shift: float
    """Median over jobs of the log of measured over predicted time."""
    scatter: float
    """Between jobs, as a standard deviation of that log."""


def corrections_of(runs: Iterable[ComparedRun]) -> dict[str, Correction]:
    """What the runs say of each GPU that they were on."""
    by_gpu: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        log_ratio = math.log(run.measured_s / run.uncorrected_p50_s)
        by_gpu.setdefault(run.gpu, {}).setdefault(run.job, []).append(log_ratio)
    found = {}
    for gpu, jobs in by_gpu.items():
        medians = [median(logs) for logs in jobs.values()]
        scatter = _MAD * median(abs(one - median(medians)) for one in medians)
        num_runs = sum(map(len, jobs.values()))
        found[gpu] = Correction(num_jobs=len(jobs), num_runs=num_runs, shift=median(medians), scatter=scatter)
    return found


def corrected(estimate: IterationEstimate, correction: Correction | None) -> IterationEstimate:
    """The estimate of GPU, host and communication, moved by what earlier runs say.

    Args:
        estimate: without its input.
        correction: of its GPU; None leaves it as it is.
    """
    before = estimate.device_s
    sigma = math.log(before.p90 / before.p50) / Z90 if before.p50 > 0 else 0.0
    if correction is None or not sigma:
        return estimate
    of_gpu, of_job = sigma**2 / 2, max(sigma**2 / 2, correction.scatter**2)
    weight = of_gpu / (of_gpu + math.pi / 2 * of_job / correction.num_jobs)
    most = MOST_SIGMAS * sigma
    factor = math.exp(weight * min(max(correction.shift, -most), most))
    left = min(sigma, math.sqrt(of_job + of_gpu * (1 - weight)))
    device_s = spread(before.p50 * factor, left)
    note = CorrectedByReceipts(
        num_runs=correction.num_runs, num_jobs=correction.num_jobs, factor=factor, band=left / sigma
    )

    def scaled(seconds: Mapping[K, float]) -> dict[K, float]:
        return {name: part_s * factor for name, part_s in seconds.items()}

    return replace(
        estimate,
        iteration_s=device_s,
        device_s=device_s,
        by_bound=scaled(estimate.by_bound),
        by_family=scaled(estimate.by_family),
        by_method=scaled(estimate.by_method),
        by_operator=scaled(estimate.by_operator),
        communication_s=estimate.communication_s * factor,
        correction=factor,
        assumptions=(*estimate.assumptions, note),
    )


def uncorrected_p50_s(estimate: IterationEstimate) -> float:
    """The median of an iteration as it would be without receipts."""
    device_s = estimate.device_s.p50 / estimate.correction
    if estimate.input_s is None:
        return device_s
    load_s = estimate.input_s.p50
    return device_s + load_s if estimate.loads_in_turn else max(device_s, load_s)


def drifts_of(runs: Sequence[ComparedRun]) -> list[Finding]:
    """GPUs whose last runs took longer or shorter than their intervals, in order of time of the runs."""
    drifts: list[Finding] = []
    for gpu, those in sorted(grouped(runs, lambda run: run.gpu).items()):
        last = those[-LAST:]
        slow = sum(run.measured_s > run.predicted_s.p90 for run in last)
        fast = sum(run.measured_s < run.predicted_s.p10 for run in last)
        outside = max(slow, fast)
        if outside >= LEAST and not min(slow, fast) and 2 * outside > len(last):
            ratio = median(run.measured_s / run.predicted_s.p50 for run in last)
            drifts.append(Drift(gpu=gpu, num_runs=len(last), num_outside=outside, ratio=ratio))
    return drifts
