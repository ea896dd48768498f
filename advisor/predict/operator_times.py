"""Seconds of a trace's operators on one GPU, by what they are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from advisor.core.values import GpuSpec, Phase, Trace
from advisor.operators.family import base_name
from advisor.predict.constants import constants_for
from advisor.predict.distinct import merged
from advisor.predict.knowledge import Knowledge, shipped
from advisor.predict.methods import op_times


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
    for time in op_times(whole, gpu, constants_for(gpu, knowledge), knowledge):
        called = Called(base_name(time.op.name), time.op.phase)
        count[called] += time.op.count
        flops[called] += time.op.count * time.op.flops
        time_s[called] = time_s.get(called, 0.0) + time.time_s
    return {
        called: Calls(count=count[called], time_s=seconds, flops=flops[called])
        for called, seconds in time_s.items()
    }
