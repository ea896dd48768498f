"""How sure an iteration time is, until intervals are calibrated per operator.

The spread is log-normal: ``p90 / p50 = exp(1.2816 sigma)``. Sigma is an average over the operators'
time of what the method is worth, wider where a constant was not fitted on the GPU itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from advisor.predict.methods import OpTime
from advisor.types import FittedConstants, Interval, Method

Z90 = 1.2815515655446004  # the normal distribution's 90 % quantile

SIGMA_MEASURED = 0.03
SIGMA_WAVE = 0.25
SIGMA_ROOFLINE_FITTED = 0.25
SIGMA_ROOFLINE_ASSUMED = 0.35
SIGMA_HOST = 0.5
SIGMA_COMMUNICATION = 0.4
# Another machine's cores, disks and network load up to about twice as fast or slow.
SIGMA_LOADING = 0.5


def sigma_of(times: Sequence[OpTime], constants: FittedConstants) -> float:
    """Log-normal sigma of the sum: errors of one method agree in sign, so they add up linearly."""
    total_s = sum(t.time_s for t in times)
    if not total_s:
        return SIGMA_ROOFLINE_ASSUMED
    return sum(t.time_s * _op_sigma(t, constants) for t in times) / total_s


def _op_sigma(time: OpTime, constants: FittedConstants) -> float:
    if time.method is Method.MEASURED:
        return SIGMA_MEASURED
    if time.method is Method.WAVE:
        return SIGMA_WAVE
    fitted = time.constant in constants.measured or not time.constant
    return SIGMA_ROOFLINE_FITTED if fitted else SIGMA_ROOFLINE_ASSUMED


def spread(p50_s: float, sigma: float) -> Interval:
    """The interval of a log-normal with median ``p50_s``.

    >>> spread(1.0, 0.0)
    Interval(p10=1.0, p50=1.0, p90=1.0)
    """
    factor = math.exp(Z90 * sigma)
    return Interval(p10=p50_s / factor, p50=p50_s, p90=p50_s * factor)
