"""How sure an iteration time is.

The spread is log-normal: ``p90 / p50 = exp(1.2816 sigma)``. Sigma is an average over the operators' time of
what the method is worth: learned times say it themselves (``advisor.predict.learned``), the roofline is
wider where a constant was not fitted on the GPU itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul

from advisor.core.values import Interval
from advisor.core.values.estimate import Z90

SIGMA_MEASURED = 0.03
SIGMA_WAVE = 0.25
SIGMA_ROOFLINE_FITTED = 0.25
SIGMA_ROOFLINE_ASSUMED = 0.35
SIGMA_COMMUNICATION = 0.4
# Compiled over eager steps of published models (research/docs/accuracy/compiled.md).
SIGMA_COMPILED = 0.15
# Another machine's cores, disks and network load up to about twice as fast or slow.
SIGMA_LOADING = 0.5


def sigma_of(times_s: Sequence[float], shared_sigmas: Sequence[float]) -> float:
    """Log-normal sigma of a sum: errors of one method agree in sign, so they add up linearly.

    Args:
        times_s: seconds of each part.
        shared_sigmas: log-normal sigma of each, as far as it does not cancel between parts.
    """
    total_s = sum(times_s)
    if not total_s:
        return SIGMA_ROOFLINE_ASSUMED
    products_s: list[float] = list(map(mul, times_s, shared_sigmas))
    return sum(products_s) / total_s


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
