"""What operators take in a whole step beyond what they take alone.

Kernels are timed one by one, short and cool. In a step they follow each other for hours, in the software and
on the hosts of many labs: ``t = t_alone exp(excess)``, by the kind of operator. Nothing is faster than alone.

Source: ``catalogs/steps.toml`` (``python -m research.training.fit_steps``; research/docs/accuracy/lambda.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import GpuSpec, Phase, Trace
from advisor.operators.elementwise import ELEMENTWISE
from advisor.operators.family import base_name
from advisor.operators.optimizer import OPTIMIZER
from advisor.predict.constants import constants_for
from advisor.predict.distinct import merged
from advisor.predict.knowledge import Knowledge, shipped
from advisor.predict.methods import IN_A_STEP, OpTimes, op_times


def in_a_step(times: OpTimes, excess: Mapping[str, float]) -> OpTimes:
    """Operators as they run in a step; what was measured in one stays.

    Args:
        times: of the operators alone.
        excess: logs of factors by kind, as ``Knowledge.excess``.
    """
    kinds, index = kinds_of(times)
    factors = np.array([math.exp(excess.get(kind, 0.0)) for kind in kinds])[index]
    in_step = np.isin(times.methods, IN_A_STEP)
    return replace(times, time_s=np.where(in_step, 1.0, factors) * times.time_s)


def kinds_of(times: OpTimes) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The kinds of operators, and which of them each is of, [N].

    A kind is the word of a family: at another rate an operator keeps its factor, so that no rate gets slower
    than one that it replaces. Optimizers stream as element-wise operators do.
    """
    kinds = (ELEMENTWISE.word if word == OPTIMIZER.word else word for word in times.columns.words)
    return tuple(kinds), times.columns.word_index


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

    Raises CatalogError: constants or networks are missing or broken.
    """
    knowledge = knowledge or shipped()
    whole = replace(trace, ops=merged(trace.ops))
    count, flops = Counter[Called](), Counter[Called]()
    time_s: dict[Called, float] = {}
    alone = op_times(whole, gpu, constants_for(gpu, knowledge), knowledge)
    for time in in_a_step(alone, knowledge.excess):
        called = Called(base_name(time.op.name), time.op.phase)
        count[called] += time.op.count
        flops[called] += time.op.count * time.op.flops
        time_s[called] = time_s.get(called, 0.0) + time.time_s
    return {
        called: Calls(count=count[called], time_s=seconds, flops=flops[called])
        for called, seconds in time_s.items()
    }
