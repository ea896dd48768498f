"""The order of methods, per operator: measured there, learned, scaled from where it was measured, roofline.

An operator that the networks know and that was measured on another GPU is a blend: the direct prediction,
corrected by a quarter of what the networks were off where it was measured (``docs/accuracy``: more adds the
origin's noise).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.core.gpus import resolve_gpu
from advisor.core.values import FittedConstants, GpuSpec, Method, Op, Phase, Trace
from advisor.operators.cycles import CallWork, StreamCost
from advisor.operators.elementwise import ELEMENTWISE
from advisor.operators.family import Family, RooflineTime, Tf32Flag, base_name, compute_rate
from advisor.operators.optimizer import OPTIMIZER
from advisor.operators.registry import family_of
from advisor.predict.constants import constants_for
from advisor.predict.distinct import OpColumns, asked_rates, columns_of, in_fp32, kept, merged
from advisor.predict.interval import (
    LEFT_IN_A_STEP,
    SIGMA_LAB,
    SIGMA_MEASURED,
    SIGMA_ROOFLINE_ASSUMED,
    SIGMA_ROOFLINE_FITTED,
    SIGMA_WAVE,
)
from advisor.predict.knowledge import Knowledge, shipped
from advisor.predict.learned import CallTimes, learned_times
from advisor.predict.roofline import KERNEL_FLOOR_S, roofs_of, time_under
from advisor.predict.roofline import op_times_s as wave_times_s

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Streams:
    """N operators of a sequence that stream."""

    index: NDArray[np.int64]
    """Where they stand in the sequence, [N]."""
    work: CallWork[Floats]
    """Of each."""
    costs: Floats
    """As ``StreamCost.costs`` orders them, [5, N]."""
    kinds: tuple[StreamCost, ...]
    """Of the distinct kinds among them."""
    kind_index: NDArray[np.int64]
    """Which of them each has, [N]."""
    bandwidths: tuple[str, ...]
    """The fitted constant of each one's memory traffic."""


def stream_times(ops: Sequence[Op], gpu: GpuSpec, constants: FittedConstants) -> CallTimes:
    """One call of each operator on ``gpu``, as far as it streams."""
    streams = _streams_of(ops)
    time_s, sigma = np.full((2, len(ops)), np.nan)
    if not streams.kinds:
        return CallTimes(time_s=time_s, sigma=sigma)
    bytes_per_s = np.array(
        [constants.fractions[name] * gpu.memory_bytes_per_s for name in streams.bandwidths]
    )
    paces = [kind.pace_on(gpu) for kind in streams.kinds]
    factors, sigmas = np.array([(pace.factor, pace.sigma) for pace in paces])[streams.kind_index].T
    time_s[streams.index] = streams.work.time_s(KERNEL_FLOOR_S, gpu, bytes_per_s, streams.costs, factors)
    sigma[streams.index] = sigmas
    return CallTimes(time_s=time_s, sigma=sigma)


@kept(4)
def _streams_of(ops: Sequence[Op]) -> _Streams:
    families = [family_of(op) for op in ops]
    each = [family.stream(op) for op, family in zip(ops, families, strict=True)]
    known = [(i, stream) for i, stream in enumerate(each) if stream is not None]
    kinds = {id(stream.cost): stream.cost for _, stream in known}
    place = {kind: i for i, kind in enumerate(kinds)}
    names = [each.name for each in fields(CallWork)]
    work = {name: np.array([getattr(stream.work, name) for _, stream in known], float) for name in names}
    return _Streams(
        index=np.array([i for i, _ in known], np.int64),
        work=CallWork(**work),
        costs=np.array([stream.cost.costs for _, stream in known]).T,
        kinds=tuple(kinds.values()),
        kind_index=np.array([place[id(stream.cost)] for _, stream in known], np.int64),
        bandwidths=tuple(families[i].bandwidth for i, _ in known),
    )


BLEND = 0.25
METHODS = tuple(Method)
_LEARNED, _ROOFLINE = METHODS.index(Method.LEARNED), METHODS.index(Method.ROOFLINE)
# What was measured as it runs, or scaled from that.
IN_A_STEP = np.array([method in (Method.MEASURED, Method.WAVE) for method in METHODS])


class OpTime(NamedTuple):
    """All calls of one operator on one GPU."""

    op: Op
    family: Family
    time_s: float
    """Seconds of all calls."""
    sigma: float
    """Log-normal, of one call."""
    method: Method
    """How they were found."""
    constant: str
    """The roofline's constant they rest on, empty for other methods."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpTimes:
    """Those of a trace, as columns, since an answer makes a hundred thousand of them."""

    columns: OpColumns
    time_s: Floats
    sigma: Floats
    own_sigma: Floats
    """The part of it that no other operator shares, [N]."""
    methods: NDArray[np.int64]
    """Which of ``METHODS`` each was found by, [N]."""
    constants: Mapping[int, str]
    """By the index of what rests on the roofline."""

    @property
    def step_sigma(self) -> float:
        """Log-normal, of the sum.

        What operators of a family share on a board adds up; families and what is an operator's own add as
        squares; what a lab's hosts, libraries and heat do to a step is shared by all. So is what was measured
        in a step.
        """
        if not self.time_s.any():
            return SIGMA_ROOFLINE_ASSUMED
        in_a_step = IN_A_STEP[self.methods]
        of_family = LEFT_IN_A_STEP * np.sqrt(np.maximum(self.sigma**2 - self.own_sigma**2, 0.0))
        errors_s = (
            np.bincount(self.columns.word_index, weights=np.where(in_a_step, 0.0, of_family) * self.time_s),
            self.own_sigma * self.time_s,
            [(np.where(in_a_step, self.sigma, SIGMA_LAB) * self.time_s).sum()],
        )
        return float(np.linalg.norm(np.concatenate(errors_s)) / self.time_s.sum())

    def by(self, method: Method) -> list[int]:
        """The indices of those that were found so."""
        found: list[int] = np.flatnonzero(self.methods == METHODS.index(method)).tolist()
        return found

    def __iter__(self) -> Iterator[OpTime]:
        columns = self.columns
        figures = (self.time_s.tolist(), self.sigma.tolist(), self.methods.tolist())
        rows = zip(columns.ops, columns.families, *figures, strict=True)
        for i, (op, family, time_s, sigma, method) in enumerate(rows):
            yield OpTime(op, family, time_s, sigma, METHODS[method], self.constants.get(i, ""))


def op_times(trace: Trace, gpu: GpuSpec, constants: FittedConstants, knowledge: Knowledge) -> OpTimes:
    """Seconds of every operator of the trace on ``gpu``, each by the best method that can tell.

    A step whose convolutions may use TF32 is never slower than one in FP32 (`in_fp32`).

    Args:
        trace: the operators, and where they were measured.

    Raises:
        UnknownGpuError: the trace's origin is not in the catalog.
        CatalogError: this machine's calibration is broken.
    """
    times = _op_times(trace, gpu, constants, knowledge)
    exactly = in_fp32(trace.ops, trace.precision, Tf32Flag.CUDNN, gpu)
    if exactly is None:
        return times
    exact = _op_times(replace(trace, precision=exactly), gpu, constants, knowledge)
    return exact if exact.time_s.sum() < times.time_s.sum() else times


def _op_times(trace: Trace, gpu: GpuSpec, constants: FittedConstants, knowledge: Knowledge) -> OpTimes:
    columns = columns_of(trace.ops)
    scaled_s = np.full(len(trace.ops), math.nan)
    learned = learned_times(trace.ops, gpu, constants, trace.precision, knowledge)
    if trace.origin_gpu is not None and trace.origin_gpu != gpu.name:

        def peak(op: Op, spec: GpuSpec) -> float:
            return compute_rate(op, family_of(op), spec, constants, trace.precision).peak_flops_per_s

        origin = resolve_gpu(trace.origin_gpu)
        scaled_s = wave_times_s(trace.ops, origin, gpu, peak)
        learned = _blended(learned, trace, origin, knowledge)
    measured_s = columns.measured_s if trace.origin_gpu == gpu.name else np.full(len(trace.ops), math.nan)
    # The best comes last, and replaces what is there.
    call_s, sigma = np.full((2, len(trace.ops)), math.nan)
    methods = np.full(len(trace.ops), _ROOFLINE)
    streamed = stream_times(trace.ops, gpu, constants)
    for method, better_s, its_sigma in (
        (Method.ROOFLINE, streamed.time_s, streamed.sigma),
        (Method.WAVE, scaled_s, SIGMA_WAVE),
        (Method.LEARNED, learned.time_s, learned.sigma),
        (Method.MEASURED, measured_s, SIGMA_MEASURED),
    ):
        known = ~np.isnan(better_s)
        call_s, sigma = np.where(known, better_s, call_s), np.where(known, its_sigma, sigma)
        methods[known] = METHODS.index(method)
    streams = np.flatnonzero((methods == _ROOFLINE) & ~np.isnan(call_s)).tolist()
    used = {i: columns.families[i].bandwidth for i in streams}
    for i, time, own_sigma in _under_roofs(np.flatnonzero(np.isnan(call_s)).tolist(), trace, gpu, constants):
        used[i], call_s[i], sigma[i] = time.constant, time.time_s, own_sigma
    return OpTimes(
        columns=columns,
        time_s=columns.counts * call_s * trace.mean_step.work,
        sigma=sigma,
        own_sigma=np.where(methods == _LEARNED, learned.own_sigma, 0.0),
        methods=methods,
        constants=used,
    )


def _under_roofs(
    places: Iterable[int], trace: Trace, gpu: GpuSpec, constants: FittedConstants
) -> Iterator[tuple[int, RooflineTime, float]]:
    """Operators that no other method knows, at these places: each with its time and its sigma."""
    roofs = cache(lambda rate, family: roofs_of(rate, family, gpu, constants))
    asked, families = asked_rates(trace.ops, trace.precision), columns_of(trace.ops).families
    for i in places:
        time = time_under(roofs(*asked[i]), trace.ops[i], families[i])
        own = families[i].sigma if time.sigma is None else time.sigma
        is_fitted = time.constant in constants.measured or not time.constant
        assumed = SIGMA_ROOFLINE_FITTED if is_fitted else SIGMA_ROOFLINE_ASSUMED
        yield i, time, assumed if own is None else own


def _blended(direct: CallTimes, trace: Trace, origin: GpuSpec, knowledge: Knowledge) -> CallTimes:
    """``direct^(1-w) * (measured * direct / direct at the origin)^w``, where there is a measurement."""
    constants = constants_for(origin, knowledge)
    at_origin = learned_times(trace.ops, origin, constants, trace.precision, knowledge)
    measured_s = np.array([op.measured_s or math.nan for op in trace.ops])
    off = np.nan_to_num(np.log(measured_s / at_origin.time_s))
    return replace(direct, time_s=direct.time_s * np.exp(BLEND * off))


# Kernels are timed one by one, short and cool. In a step they follow each other for hours, in the software
# and on the hosts of many labs: ``t = t_alone exp(excess)``, by the kind of operator. Nothing is faster than
# alone. Source: ``catalogs/steps.toml`` (``python -m research.training.fit_steps``;
# research/docs/accuracy/lambda.md).


def in_a_step(times: OpTimes, excess: Mapping[str, float]) -> OpTimes:
    """Operators as they run in a step, by ``Knowledge.excess``; what was measured in one stays.

    One lab's steps tell what they add, so a step is as unsure of that as it is large.
    """
    kinds, index = kinds_of(times)
    added = np.array([excess.get(kind, 0.0) for kind in kinds])[index]
    added = np.where(IN_A_STEP[times.methods], 0.0, added)
    return replace(
        times, time_s=np.exp(added) * times.time_s, sigma=np.hypot(times.sigma, added / LEFT_IN_A_STEP)
    )


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
