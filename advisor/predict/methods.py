"""The order of methods, per operator: what was measured beats what was scaled beats the roofline."""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.gpus import load_gpus
from advisor.predict import wave
from advisor.predict.families import Family, family_of
from advisor.predict.roofline import op_time_s
from advisor.types import FittedConstants, GpuSpec, Method, Op, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTime:
    """All calls of one operator on one GPU: seconds, and how they were found."""

    op: Op
    family: Family
    time_s: float
    method: Method


def op_times(trace: Trace, gpu: GpuSpec, constants: FittedConstants) -> tuple[OpTime, ...]:
    """Seconds of every operator of the trace on ``gpu``, each by the best method that can tell."""
    scaled_s = [math.nan] * len(trace.ops)
    if trace.origin_gpu is not None and trace.origin_gpu != gpu.name:
        scaled_s = wave.op_times_s(trace.ops, load_gpus()[trace.origin_gpu], gpu).tolist()
    return tuple(
        _op_time(op, wave_s, trace, gpu, constants) for op, wave_s in zip(trace.ops, scaled_s, strict=True)
    )


def _op_time(op: Op, wave_s: float, trace: Trace, gpu: GpuSpec, constants: FittedConstants) -> OpTime:
    if op.measured_s is not None and trace.origin_gpu == gpu.name:
        method, call_s = Method.MEASURED, op.measured_s
    elif not math.isnan(wave_s):
        method, call_s = Method.WAVE, wave_s
    else:
        method, call_s = Method.ROOFLINE, op_time_s(op, gpu, constants, trace.precision)
    return OpTime(op=op, family=family_of(op), time_s=op.count * call_s, method=method)
