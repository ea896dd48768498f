"""``predict(trace, gpu, num_gpus)``: time and memory of one iteration on a GPU of the catalog."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from advisor.core.arguments import check_count, check_each, check_kind
from advisor.core.errors import InputError
from advisor.core.findings import Code, Finding, finding
from advisor.core.values import Bound, GpuSpec, IterationEstimate, Layout, Method, Phase, Trace
from advisor.predict.batch_share import EXPONENT, BatchShare, batch_share, times_at, trace_at
from advisor.predict.bounds import bounds_of
from advisor.predict.calibration.receipt_corrections import Correction, corrected
from advisor.predict.constants import constants_for
from advisor.predict.distinct import SameTrace, merged
from advisor.predict.exchange.collectives import holds_buckets, resharded, shard_growth, sharded_over
from advisor.predict.exchange.data_parallel import Exchange, exchange_of_gradients
from advisor.predict.exchange.scaling import Scaling
from advisor.predict.exchange.sharded import exchange_of_shards
from advisor.predict.footprint.fitting import fitted
from advisor.predict.footprint.need import memory_need
from advisor.predict.interval import SIGMA_COMMUNICATION, SIGMA_HOST, sigma_of, spread, widened
from advisor.predict.knowledge import Knowledge, shipped
from advisor.predict.loading import assumed_note, fed, input_work, is_uncounted, work_beside_measured
from advisor.predict.methods import METHODS, OpTimes, op_times
from advisor.predict.notes import limit_notes, method_notes
from advisor.predict.roofline import HOST_DISPATCH_S
from advisor.predict.what_if.autocast import under_autocast
from advisor.predict.what_if.tf32 import allow_tf32

__all__ = [
    "HOST_DISPATCH_S",
    "allow_tf32",
    "holds_buckets",
    "predict",
    "predict_counts",
    "sharded_over",
    "under_autocast",
    "widened",
]

HOST = "waiting for the host"
OTHERS = "waiting for the slowest GPU"
K = TypeVar("K")


def predict(
    trace: Trace, gpu: GpuSpec, num_gpus: int | Layout = 1, *, knowledge: Knowledge | None = None
) -> IterationEstimate:
    """Time per iteration of ``trace`` on ``num_gpus`` of ``gpu``, the batch per GPU held.

    Args:
        trace: one steady iteration of the script.
        gpu: the destination.
        num_gpus: GPUs of one node, or how they are laid out; by data parallelism if more than one.
        knowledge: constants and networks, by default what ships.

    Raises:
        InputError: ``num_gpus`` is below 1, the trace has no operators, or an argument is of another kind.
        CatalogError: constants or networks are missing or broken.
    """
    return predict_counts(trace, gpu, [num_gpus], knowledge=knowledge)[0]


def predict_counts(
    trace: Trace,
    gpu: GpuSpec,
    counts: Sequence[int | Layout],
    *,
    knowledge: Knowledge | None = None,
    share_of: Callable[[int], float] = lambda _: 1.0,
    correction: Correction | None = None,
) -> tuple[IterationEstimate, ...]:
    """As :func:`predict` for several counts of one GPU; operators are timed once.

    Args:
        trace: as there.
        gpu: as there.
        counts: numbers of GPUs of one node, or layouts.
        knowledge: as there.
        share_of: what each of so many GPUs takes of the profiled batch.
        correction: what earlier runs on this GPU say; None without any.
    """
    check_kind("trace", trace, Trace, "read one by advisor.formats.trace_files.read_trace(path)")
    check_kind("gpu", gpu, GpuSpec, "take one by advisor.core.gpus.resolve_gpu(name)")
    layouts = _layouts(counts)
    check_kind("knowledge", knowledge, Knowledge | None, "read_knowledge(folder) reads one")
    if not trace.ops:
        raise InputError("the trace has no operators: there is nothing to predict.")
    knowledge = knowledge or shipped()
    trace = replace(trace, ops=merged(trace.ops))
    constants = constants_for(gpu, knowledge)
    times = op_times(trace, gpu, constants, knowledge)
    notes = method_notes(trace, gpu, constants, times)
    parts = _parts(times)
    by_bound = bounds_of(trace, gpu, constants, times)
    shares = [batch_share(trace, share_of(layout.num_gpus)) for layout in layouts]
    unfed = (
        _at_share(trace, gpu, layout, times, parts, by_bound, notes, share, knowledge.scaling)
        for layout, share in zip(layouts, shares, strict=True)
    )

    @cache
    def phases_s(share: BatchShare, changed: SameTrace) -> Mapping[Phase, float]:
        changed_times = op_times(changed.trace, gpu, constants, knowledge)
        return _phases_s(times_at(changed_times, replace(share, passes=1.0)))

    return tuple(
        fitted(
            fed(corrected(estimate, correction), None),
            trace_at(resharded(trace, estimate.num_gpus), share),
            gpu,
            partial(phases_s, share),
            slowdown=knowledge.scaling.slowdown,
        )
        for estimate, share in zip(unfed, shares, strict=True)
    )


def _phases_s(times: OpTimes) -> Mapping[Phase, float]:
    """Seconds of the operators of each phase."""
    backward, optimizer = times.columns.is_backward, times.columns.is_optimizer
    members = {Phase.FORWARD: ~(backward | optimizer), Phase.BACKWARD: backward, Phase.OPTIMIZER: optimizer}
    return {phase: float(times.time_s[member].sum()) for phase, member in members.items()}


def _layouts(counts: Sequence[int | Layout]) -> list[Layout]:
    """A number of GPUs stands for so many of one node; integers of numpy are as good as Python's."""
    check_each("num_gpus", counts, object, "such as 1 or 8")
    for count in counts:
        check_count("each of num_gpus", count.num_gpus if isinstance(count, Layout) else count)
    return [count if isinstance(count, Layout) else Layout(gpus_per_node=int(count)) for count in counts]


def _at_share(
    trace: Trace,
    gpu: GpuSpec,
    layout: Layout,
    times: OpTimes,
    parts: _Parts,
    by_bound: Mapping[Bound, float],
    notes: Sequence[Finding],
    share: BatchShare,
    scaling: Scaling,
) -> IterationEstimate:
    """The estimate where each GPU takes a share of the profiled batch, without its input."""
    growth, trace = shard_growth(trace, layout.num_gpus), resharded(trace, layout.num_gpus)
    if share.whole == growth == 1:
        return _estimate(trace, gpu, layout, parts, by_bound, notes, scaling)
    there, other = trace_at(trace, share), _parts(times_at(times, share, growth))
    before_s, after_s = parts.gpu_s, other.gpu_s
    if trace.iteration_s is not None:
        there = replace(there, iteration_s=trace.iteration_s - (before_s - after_s))
    # What binds an operator hardly changes with its batch.
    bounds = {bound: seconds * after_s / before_s for bound, seconds in by_bound.items()}
    if share.whole != 1:
        notes = [*notes, finding(Code.BATCH_SHARE, share=share.whole, batch=share.batch, exponent=EXPONENT)]
    return _estimate(there, gpu, layout, other, bounds, notes, scaling, sigma_share=share.sigma)


def _estimate(
    trace: Trace,
    gpu: GpuSpec,
    layout: Layout,
    parts: _Parts,
    by_bound: Mapping[Bound, float],
    notes: Sequence[Finding],
    scaling: Scaling,
    *,
    sigma_share: float = 0.0,
) -> IterationEstimate:
    gpu_s, num_gpus = parts.gpu_s, layout.num_gpus
    measured = trace.iteration_s if trace.origin_gpu == gpu.name else None
    work = input_work(trace) if measured is None else work_beside_measured(trace, measured)
    host_s = max(_host_s(trace) - gpu_s, 0.0) if measured is None else max(measured - gpu_s, 0.0)
    exchange = _exchange(trace, parts, gpu, layout, scaling)
    others_s = scaling.waiting(num_gpus) * (gpu_s + host_s)
    device_s = gpu_s + host_s + others_s + exchange.seconds
    waits = {wait: seconds for wait, seconds in ((HOST, host_s), (OTHERS, others_s)) if seconds}
    variance = (
        (parts.sigma * gpu_s) ** 2
        + (sigma_share * gpu_s) ** 2
        + (SIGMA_HOST * host_s) ** 2
        + exchange.sigma_s**2
        + (scaling.sigma * device_s) ** 2 * (num_gpus > 1)
        + (_sigma_unknown_exchange(trace, num_gpus) * gpu_s) ** 2
    )
    memory, assumed = memory_need(trace, gpu, layout), assumed_note(work)
    interval = spread(device_s, math.sqrt(variance) / device_s)
    return IterationEstimate(
        gpu=gpu.name,
        layout=layout,
        iteration_s=interval,
        device_s=interval,
        input=work,
        input_s=None,
        by_bound=_bounds(by_bound, host_s if measured is None else 0.0, others_s, exchange.seconds),
        by_family=_sorted(waits | parts.by_family),
        by_method=_with_waits(parts.by_method, waits),
        by_operator=_sorted(waits | parts.by_operator),
        communication_s=exchange.seconds,
        loading_s=0.0,
        memory=memory,
        memory_limit_bytes=gpu.memory_bytes,
        assumptions=(
            *notes,
            *limit_notes(trace, num_gpus, host_s, scaling, has_memory=memory is not None),
            *([finding(Code.LOADING_NOT_COUNTED)] if is_uncounted(trace, device_s) else []),
            *([] if assumed is None else [assumed]),
        ),
    )


def _bounds(
    by_bound: Mapping[Bound, float], host_s: float, others_s: float, communication_s: float
) -> Mapping[Bound, float]:
    """Where kernels wait to be launched, the host decides over all the time that they take.

    The slowest GPU is late with what all of them do, whatever binds it.
    """
    own = {Bound.HOST: sum(by_bound.values()) + host_s} if host_s else dict(by_bound)
    late = 1 + others_s / sum(own.values())
    own = {bound: seconds * late for bound, seconds in own.items()}
    return own | ({Bound.NETWORK: communication_s} if communication_s else {})


def _exchange(trace: Trace, parts: _Parts, gpu: GpuSpec, layout: Layout, scaling: Scaling) -> Exchange:
    slowdown = scaling.slowdown
    if sharded_over(trace):
        compute_s = parts.gpu_s - parts.optimizer_s
        return exchange_of_shards(trace, compute_s, gpu, layout, slowdown=slowdown)
    backward_s = parts.backward_s
    return exchange_of_gradients(trace, parts.time_s, backward_s, gpu, layout, slowdown=slowdown)


def _sigma_unknown_exchange(trace: Trace, num_gpus: int) -> float:
    return SIGMA_COMMUNICATION if num_gpus > 1 and trace.memory.gradient_bytes is None else 0.0


def _host_s(trace: Trace) -> float:
    return HOST_DISPATCH_S * sum(op.count for op in trace.ops)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Seconds of the operators, also by what they are, the same for any number of GPUs."""

    time_s: NDArray[np.float64]
    gpu_s: float
    backward_s: float
    optimizer_s: float
    sigma: float
    by_family: dict[str, float]
    by_operator: dict[str, float]
    by_method: dict[Method, float]


def _parts(times: OpTimes) -> _Parts:
    columns, times_s, methods = times.columns, times.time_s.tolist(), times.methods.tolist()
    calls = (times.methods + columns.name_index * len(METHODS)).tolist()
    named = ((*divmod(call, len(METHODS)), time_s) for call, time_s in _summed(calls, times_s).items())
    by_method = {METHODS[method]: time_s for method, time_s in _summed(methods, times_s).items()}
    return _Parts(
        time_s=times.time_s,
        gpu_s=sum(times_s),
        backward_s=sum(times.time_s[columns.is_backward].tolist()),
        optimizer_s=sum(times.time_s[columns.is_optimizer].tolist()),
        sigma=sigma_of(times_s, times.shared_sigma.tolist()),
        by_family=_summed((family.word for family in columns.families), times_s),
        by_operator={f"{columns.names[name]} ({METHODS[method]})": time_s for name, method, time_s in named},
        by_method=dict.fromkeys(Method, 0.0) | by_method,
    )


def _summed(keys: Iterable[K], times_s: Iterable[float]) -> dict[K, float]:
    """The seconds of each key, in the order in which they come."""
    sums: dict[K, float] = {}
    for key, time_s in zip(keys, times_s, strict=True):
        sums[key] = sums.get(key, 0.0) + time_s
    return sums


def _sorted(seconds: Mapping[str, float]) -> Mapping[str, float]:
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))


def _with_waits(by_method: Mapping[Method, float], waits: Mapping[str, float]) -> Mapping[Method, float]:
    seconds = dict(by_method)
    seconds[Method.ROOFLINE] += sum(waits.values())
    return {method: s for method, s in seconds.items() if s}
