"""What operators take in a whole step beyond what they take alone.

Kernels are timed one by one, short and cool. In a step they follow each other for hours, in the software and
on the hosts of many labs: ``t = t_alone exp(excess)``, by the kind of operator. Nothing is faster than alone.

Source: ``catalogs/steps.toml`` (``python -m research.training.fit_steps``; research/docs/accuracy/lambda.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import GpuSpec, Method, Phase, Trace
from advisor.operators.elementwise import ELEMENTWISE
from advisor.operators.family import base_name
from advisor.operators.optimizer import OPTIMIZER
from advisor.predict.constants import constants_for
from advisor.predict.distinct import asked_rates, merged
from advisor.predict.knowledge import Knowledge, shipped
from advisor.predict.methods import METHODS, OpTimes, op_times

# What was measured as it runs, or scaled from that.
_IN_A_STEP = [METHODS.index(Method.MEASURED), METHODS.index(Method.WAVE)]


def in_a_step(times: OpTimes, trace: Trace, gpu: GpuSpec, excess: Mapping[str, float]) -> OpTimes:
    """The operators of a trace as they run in a step; what was measured in one stays.

    Args:
        times: of the operators alone.
        trace: of those operators, in their order.
        gpu: the destination.
        excess: logs of factors by kind, as ``Knowledge.excess``.
    """
    kinds, index = kinds_of(trace, gpu)
    factors = np.array([math.exp(excess.get(kind, 0.0)) for kind in kinds])[index]
    in_step = np.isin(times.methods, _IN_A_STEP)
    return replace(times, time_s=np.where(in_step, 1.0, factors) * times.time_s)


def kinds_of(trace: Trace, gpu: GpuSpec) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The kinds of a trace's operators on a GPU, and which of them each is of, [N].

    A kind is the word of a family; of those on tensor cores with the rate that the GPU has for the call:
    ``gemm.half``, ``gemm.tf32`` or ``gemm.fp32``. Optimizers stream as element-wise operators do.
    """
    each = list(_kinds(trace, gpu))
    place = {kind: i for i, kind in enumerate(dict.fromkeys(each))}
    return tuple(place), np.array([place[kind] for kind in each])


def _kinds(trace: Trace, gpu: GpuSpec) -> Iterator[str]:
    halves = gpu.tensor_flops_per_s.keys() - {"fp32", "tf32", "fp64"}
    for asked, family in asked_rates(trace.ops, trace.precision):
        if not family.compute.tensor_cores:
            yield ELEMENTWISE.word if family is OPTIMIZER else family.word
        elif asked in halves:
            yield f"{family.word}.half"
        else:
            is_tf32 = asked == "tf32" and "tf32" in gpu.tensor_flops_per_s
            yield f"{family.word}.{'tf32' if is_tf32 else 'fp32'}"


@dataclass(frozen=True, slots=True)
class Called:
    """All calls of one operator in one part of an iteration."""

    name: str
    phase: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Their number in one iteration, and what they take together."""

    count: int
    time_s: float
    flops: int


def operator_times(
    trace: Trace, gpu: GpuSpec, *, knowledge: Knowledge | None = None
) -> Mapping[Called, Calls]:
    """What each operator of one iteration takes on one ``gpu``, launches and communication aside.

    Args:
        trace: one steady iteration of the script.
        gpu: the destination.
        knowledge: constants and networks, by default what ships.

    Raises:
        CatalogError: constants or networks are missing or broken.
    """
    knowledge = knowledge or shipped()
    whole = replace(trace, ops=merged(trace.ops))
    count, flops = Counter[Called](), Counter[Called]()
    time_s: dict[Called, float] = {}
    alone = op_times(whole, gpu, constants_for(gpu, knowledge), knowledge)
    for time in in_a_step(alone, whole, gpu, knowledge.excess):
        called = Called(base_name(time.op.name), time.op.phase)
        count[called] += time.op.count
        flops[called] += time.op.count * time.op.flops
        time_s[called] = time_s.get(called, 0.0) + time.time_s
    return {
        called: Calls(count=count[called], time_s=seconds, flops=flops[called])
        for called, seconds in time_s.items()
    }
