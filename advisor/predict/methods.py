"""The order of methods, per operator: what was measured beats what was scaled beats the roofline."""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.gpus import resolve_gpu
from advisor.predict import wave
from advisor.predict.families import Family, family_of
from advisor.predict.roofline import compute_rate, op_time
from advisor.types import FittedConstants, GpuSpec, Method, Op, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTime:
    """All calls of one operator on one GPU.

    Attributes:
        time_s: seconds of all calls.
        method: how they were found.
        constant: the roofline's constant they rest on, empty for other methods.
    """

    op: Op
    family: Family
    time_s: float
    method: Method
    constant: str


def op_times(trace: Trace, gpu: GpuSpec, constants: FittedConstants) -> tuple[OpTime, ...]:
    """Seconds of every operator of the trace on ``gpu``, each by the best method that can tell.

    Raises:
        UnknownGpuError: the trace's origin is not in the catalog.
    """
    scaled_s = [math.nan] * len(trace.ops)
    if trace.origin_gpu is not None and trace.origin_gpu != gpu.name:

        def peak(op: Op, spec: GpuSpec) -> float:
            return compute_rate(op, family_of(op), spec, constants, trace.precision).peak_flops_per_s

        scaled_s = wave.op_times_s(trace.ops, resolve_gpu(trace.origin_gpu), gpu, peak).tolist()
    return tuple(
        _op_time(op, wave_s, trace, gpu, constants) for op, wave_s in zip(trace.ops, scaled_s, strict=True)
    )


def _op_time(op: Op, wave_s: float, trace: Trace, gpu: GpuSpec, constants: FittedConstants) -> OpTime:
    constant = ""
    if op.measured_s is not None and trace.origin_gpu == gpu.name:
        method, call_s = Method.MEASURED, op.measured_s
    elif not math.isnan(wave_s):
        method, call_s = Method.WAVE, wave_s
    else:
        found = op_time(op, gpu, constants, trace.precision)
        method, call_s, constant = Method.ROOFLINE, found.time_s, found.constant
    family = family_of(op)
    return OpTime(op=op, family=family, time_s=op.count * call_s, method=method, constant=constant)
