"""The order of methods, per operator: measured there, learned, scaled from where it was measured, roofline.

An operator that the networks know and that was measured on another GPU is a blend: the direct prediction,
corrected by a quarter of what the networks were off where it was measured (``docs/accuracy``: more adds the
origin's noise).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from advisor.core.gpus import resolve_gpu
from advisor.core.values import FittedConstants, GpuSpec, Method, Op, Trace
from advisor.operators.family import Family, Roofs
from advisor.operators.rates import compute_rate
from advisor.operators.registry import family_of
from advisor.predict.constants import constants_for
from advisor.predict.distinct import asked_rates
from advisor.predict.interval import (
    SIGMA_MEASURED,
    SIGMA_ROOFLINE_ASSUMED,
    SIGMA_ROOFLINE_FITTED,
    SIGMA_WAVE,
)
from advisor.predict.knowledge import Knowledge
from advisor.predict.learned.model import OpTimes
from advisor.predict.learned.times import SHARED, learned_times
from advisor.predict.roofline import roofs_of, time_under
from advisor.predict.wave import op_times_s as wave_times_s

BLEND = 0.25


class OpTime(NamedTuple):
    """All calls of one operator on one GPU; a tuple, since an answer makes a hundred thousand of them.

    Attributes:
        time_s: seconds of all calls.
        sigma: log-normal, of one call.
        shared_sigma: the part of it that calls have in common; the rest cancels in their sum.
        method: how they were found.
        constant: the roofline's constant they rest on, empty for other methods.
    """

    op: Op
    family: Family
    time_s: float
    sigma: float
    shared_sigma: float
    method: Method
    constant: str


def op_times(
    trace: Trace, gpu: GpuSpec, constants: FittedConstants, knowledge: Knowledge
) -> tuple[OpTime, ...]:
    """Seconds of every operator of the trace on ``gpu``, each by the best method that can tell.

    Args:
        trace: the operators, and where they were measured.
        gpu: the destination.
        constants: of the destination.
        knowledge: the networks, and constants of the origin.

    Raises:
        UnknownGpuError: the trace's origin is not in the catalog.
        CatalogError: this machine's calibration is broken.
    """
    scaled_s = np.full(len(trace.ops), math.nan)
    learned = learned_times(trace.ops, gpu, constants, trace.precision, knowledge)
    if trace.origin_gpu is not None and trace.origin_gpu != gpu.name:

        def peak(op: Op, spec: GpuSpec) -> float:
            return compute_rate(op, family_of(op), spec, constants, trace.precision).peak_flops_per_s

        origin = resolve_gpu(trace.origin_gpu)
        scaled_s = wave_times_s(trace.ops, origin, gpu, peak)
        learned = _blended(learned, trace, origin, knowledge)
    is_measured = trace.origin_gpu == gpu.name
    roofs = cache(lambda rate, family: roofs_of(rate, family, gpu, constants))
    times_s = (scaled_s.tolist(), learned.time_s.tolist(), learned.sigma.tolist())
    asked = asked_rates(trace.ops, trace.precision)
    return tuple(
        _op_time(op, family, partial(roofs, rate, family), constants, times, is_measured=is_measured)
        for op, (rate, family), *times in zip(trace.ops, asked, *times_s, strict=True)
    )


def _blended(direct: OpTimes, trace: Trace, origin: GpuSpec, knowledge: Knowledge) -> OpTimes:
    """``direct^(1-w) * (measured * direct / direct at the origin)^w``, where there is a measurement."""
    constants = constants_for(origin, knowledge)
    at_origin = learned_times(trace.ops, origin, constants, trace.precision, knowledge)
    measured_s = np.array([op.measured_s or math.nan for op in trace.ops])
    off = np.nan_to_num(np.log(measured_s / at_origin.time_s))
    return OpTimes(time_s=direct.time_s * np.exp(BLEND * off), sigma=direct.sigma)


def _op_time(
    op: Op,
    family: Family,
    roofs: Callable[[], Roofs],
    constants: FittedConstants,
    times: Sequence[float],
    *,
    is_measured: bool,
) -> OpTime:
    (scaled_s, learned_s, sigma), constant = times, ""
    if is_measured and op.measured_s is not None:
        method, call_s, sigma = Method.MEASURED, op.measured_s, SIGMA_MEASURED
    elif not math.isnan(learned_s):
        method, call_s = Method.LEARNED, learned_s
    elif not math.isnan(scaled_s):
        method, call_s, sigma = Method.WAVE, scaled_s, SIGMA_WAVE
    else:
        time = time_under(roofs(), op, family)
        method, call_s, constant = Method.ROOFLINE, time.time_s, time.constant
        sigma = _roofline_sigma(family, constant, constants)
    return OpTime(
        op=op,
        family=family,
        time_s=op.count * call_s,
        sigma=sigma,
        shared_sigma=SHARED * sigma if method is Method.LEARNED else sigma,
        method=method,
        constant=constant,
    )


def _roofline_sigma(family: Family, constant: str, constants: FittedConstants) -> float:
    if family.sigma is not None:
        return family.sigma
    is_fitted = constant in constants.measured or not constant
    return SIGMA_ROOFLINE_FITTED if is_fitted else SIGMA_ROOFLINE_ASSUMED
