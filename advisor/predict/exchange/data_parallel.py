"""How much longer an iteration takes because its GPUs exchange gradients, or share a model.

Buckets are exchanged one after the other, each as soon as it is complete. Meanwhile kernels of the backward
pass run slower, since both need SMs and memory bandwidth. What is left when the pass ends is exposed: at
least the last bucket. PyTorch DDP also copies gradients into its buckets and back.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from math import exp

import numpy as np
from numpy.typing import NDArray

from advisor.core.units import MIB
from advisor.core.values import Z90, Collective, GpuSpec, Layout, Op, Phase, Sharding, TensorSpec, Trace
from advisor.operators.family import base_name
from advisor.operators.work import folded_shape, tensor_bytes
from advisor.predict.distinct import blocks_of, kept
from advisor.predict.exchange.collective_time import CollectiveTime, collective_law, collective_time
from advisor.predict.exchange.collectives import (
    SHARDING,
    buckets_of_pass,
    exchanged_bytes,
    exchanging_passes,
    gathered_bytes,
    sharding_group,
    updated_tensors,
)
from advisor.predict.host import Copies

# PyTorch DDP (Li et al., "PyTorch Distributed", PVLDB 13(12), 2020) fills a first bucket of 1 MiB and
# further ones of 25 MiB in the order in which gradients become complete. A bucket takes whole tensors, so
# that the gradient of a large embedding, complete at the very end, travels alone and in the open.

FIRST_BUCKET_BYTES, BUCKET_BYTES = MIB, 25 * MIB
# 1.6 TiB of gradients are as many. A file may tell any number of bytes, and none may fill our memory.
_MOST_BUCKETS = 2**16
# What is done to gradients that were made: sums of them, and what gives a tensor of the shape that it took.
_SUM, _TAKES = "add", ("mul", "div", "copy", "_to_copy")
_LEAST_S = 1e-12

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Buckets:
    """K buckets in the order in which they are exchanged, and where in a backward pass each is complete.

    A pass is S stretches of time: each an operator, or neighbours of several calls each, as those of equal
    layers are, which take turns.
    """

    num_bytes: tuple[float, ...]
    """Of each, [K]."""
    stretch: NDArray[np.int64]
    """In which it is completed, [K]."""
    share: Floats
    """Of that stretch that is over then, [K]."""
    stretch_of: NDArray[np.int64]
    """Of each operator of the trace; -1 outside the backward pass, [N]."""

    def ready(self, time_s: Floats) -> Floats:
        """The share of a pass after which each is complete, [K], given the seconds of every operator, [N]."""
        inside = self.stretch_of >= 0
        num_stretches = int(self.stretch_of.max(initial=0)) + 1
        lasts_s = np.bincount(self.stretch_of[inside], weights=time_s[inside], minlength=num_stretches)
        ready_s: Floats = np.cumsum(lasts_s)[self.stretch] - (1 - self.share) * lasts_s[self.stretch]
        return ready_s / max(float(lasts_s.sum()), _LEAST_S)


def buckets_of(trace: Trace) -> Buckets:
    """The buckets of one backward pass: recorded, else as DDP would make them."""
    recorded = buckets_of_pass(trace)
    total = exchanged_bytes(trace) or sum(recorded)
    # Equal parts are cut out of one long tensor, which shows no shapes.
    is_cut = gathered_bytes(trace) is not None
    tensors = () if is_cut else updated_tensors(trace.ops, total)
    return _buckets_of(trace.ops, total, recorded, trace.accumulation, tensors)


@kept(8)
def _buckets_of(
    ops: Sequence[Op],
    total_bytes: int,
    recorded: tuple[int, ...],
    accumulation: int,
    tensors: tuple[TensorSpec, ...],
) -> Buckets:
    backward = [(i, op) for i, op in enumerate(ops) if op.phase is Phase.BACKWARD]
    stretch_of = np.full(len(ops), -1)
    stretches = _stretches([op for _, op in backward], accumulation) if tensors else repeat(0)
    places: Sequence[tuple[int, Op]] = [(s, op) for s, (_, op) in zip(stretches, backward, strict=False)]
    stretch_of[[i for i, _ in backward]] = [stretch for stretch, _ in places]
    pieces = (
        _completed(tensors, places, accumulation) if tensors else [(0, size) for size in _pieces(total_bytes)]
    )
    stretch = np.array([place for place, _ in pieces])
    sizes = np.array([size for _, size in pieces], dtype=np.float64)
    ends = np.cumsum(sizes)
    whole = np.bincount(stretch, weights=sizes)
    rest = np.cumsum(whole)[stretch] - ends
    share = 1 - rest / np.maximum(whole[stretch], 1.0)
    if recorded:  # the tensor in which each of them ends
        bounds = np.cumsum(recorded) / max(sum(recorded), 1) * ends[-1]
        last = np.minimum(np.searchsorted(ends, bounds * (1 - 1e-9)), len(ends) - 1)
    else:
        last = np.array(_ddp_ends(sizes.tolist()))
    num_bytes = recorded or np.diff(ends[last], prepend=0.0).tolist()
    return Buckets(
        num_bytes=tuple(num_bytes), stretch=stretch[last], share=share[last], stretch_of=stretch_of
    )


def _pieces(total_bytes: int) -> list[int]:
    """Gradients of which only the sum is known."""
    first = min(total_bytes, FIRST_BUCKET_BYTES)
    bucket = max(BUCKET_BYTES, total_bytes // _MOST_BUCKETS)
    whole, rest = divmod(total_bytes - first, bucket)
    return [first, *[bucket] * whole, *([rest] if rest else [])]


def _stretches(ops: Sequence[Op], accumulation: int) -> Iterator[int]:
    number, was_repeated = -1, False
    for op in ops:
        is_repeated = op.count > accumulation
        number += not (is_repeated and was_repeated)
        was_repeated = is_repeated
        yield number


def _completed(
    tensors: Sequence[TensorSpec], backward: Sequence[tuple[int, Op]], accumulation: int
) -> list[tuple[int, int]]:
    """The stretch that completes each tensor, and its bytes, in order.

    Operators that make one of its shape show it, the last of them if several do; what none shows is completed
    with its neighbour.
    """
    shown = _shown(backward, accumulation)
    places = (shown.get(folded_shape(tensor), []) for tensor in tensors)
    known = [of_shape.pop() if of_shape else None for of_shape in places]
    last, pieces = 0, []
    for tensor, place in zip(reversed(tensors), reversed(known), strict=True):
        last = last if place is None else place
        pieces.append((last, tensor_bytes(tensor)))
    return sorted(pieces, key=lambda piece: piece[0])


def _shown(backward: Sequence[tuple[int, Op]], accumulation: int) -> dict[tuple[int, ...], list[int]]:
    """By shape the stretches in which tensors of it are made, one a tensor and pass.

    A sum of two is the gradient of one tensor that was used twice. But where each pass except the first adds
    all tensors of a shape, it adds them to those of earlier passes. That, and how DDP scales and copies,
    makes none: the first pass does without, so a trace has such operators behind all others.
    """
    shown: dict[tuple[int, ...], list[int]] = defaultdict(list)
    sums: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    for stretch, op in backward:
        name = base_name(op.name).rstrip("_")
        for output in op.outputs:
            if name == _SUM:
                sums[folded_shape(output)].append((stretch, op.count))
            elif name not in _TAKES or folded_shape(op.inputs[0]) != folded_shape(output):
                shown[folded_shape(output)] += [stretch] * op.count
    for shape, added in sums.items():
        if sum(count for _, count in added) * accumulation == len(shown[shape]) * (accumulation - 1):
            continue
        for stretch, count in added:
            del shown[shape][-2 * count :]
            shown[shape] += [stretch] * count
    return shown


def _ddp_ends(sizes: Sequence[float]) -> list[int]:
    """The last tensor of each bucket: a bucket is full as soon as it holds no less than its size."""
    ends, held, limit = [], 0.0, FIRST_BUCKET_BYTES
    for i, size in enumerate(sizes):
        held += size
        if held >= limit or i == len(sizes) - 1:
            ends.append(i)
            held, limit = 0.0, BUCKET_BYTES
    return ends


COMMUNICATION = "exposed communication"
"""What takes time beside operators and waits, where times are listed by name."""
# Into the buckets and back: each copy reads and writes.
_COPIED = 4
COPY_BACK = "aten::copy_"
"""What brings gradients back when all are reduced."""


def bucket_copies(trace: Trace) -> tuple[Op, ...]:
    """What DDP would run to copy gradients into its buckets and back, as a script that has DDP records it.

    None where gradients show no shapes, or where the script exchanges them itself: then it is among its
    operators already.
    """
    return () if trace.collectives else _bucket_copies(trace.ops, exchanged_bytes(trace) or 0)


@kept(8)
def _bucket_copies(ops: Sequence[Op], gradient_bytes: int) -> tuple[Op, ...]:
    return tuple(
        Op(
            name=name,
            phase=Phase.BACKWARD,
            inputs=(tensor, tensor),
            outputs=(tensor,),
            attributes={},
            flops=flops,
            bytes=passes * tensor_bytes(tensor),
            count=count,
        )
        for tensor, count in Counter(updated_tensors(ops, gradient_bytes)).items()
        for name, flops, passes in (("aten::mul", math.prod(tensor.shape), 3), (COPY_BACK, 0, 2))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Seconds by which exchanging lengthens an iteration, and their standard deviation."""

    seconds: float = 0.0
    sigma_s: float = 0.0


def together(*parts: Exchange) -> Exchange:
    """One after the other; machines that are slow in one are slow in the others."""
    return Exchange(seconds=sum(part.seconds for part in parts), sigma_s=sum(part.sigma_s for part in parts))


def exchange_of_gradients(
    trace: Trace,
    time_s: Floats,
    backward_s: float,
    gpu: GpuSpec,
    layout: Layout,
    *,
    slowdown: float,
    crowd: int = 1,
    copied: Copies | None = None,
) -> Exchange:
    """What data parallelism adds to an iteration.

    Args:
        trace: tells of gradients, buckets and passes.
        time_s: seconds of each operator on one GPU.
        backward_s: of all backward passes together; operators keep their shares of them.
        gpu: of which kind all are.
        layout: how many they are, and over what they exchange.
        slowdown: of kernels while GPUs exchange, as a share of their time.
        crowd: groups of this layout that share a node's network.
        copied: the `bucket_copies` of a pass, which lengthen it; None has them as fast as memory, after it.
    """
    if layout.num_gpus == 1:
        return Exchange()
    buckets, passes = buckets_of(trace), exchanging_passes(trace)
    behind_s = 0.0
    if trace.collectives:
        copied = Copies()  # they are in the recorded pass
    elif copied is None:
        copied, behind_s = Copies(), _COPIED * sum(buckets.num_bytes) / gpu.memory_bytes_per_s
    pass_s = backward_s / trace.accumulation + copied.seconds
    # Who waits for each bucket computes nothing meanwhile: as if all came at the end, where nothing hides.
    ready_s = buckets.ready(time_s) * (pass_s - copied.last_s)
    if trace.awaits_reductions:
        ready_s, slowdown = np.full_like(ready_s, pass_s), 0.0
    times = collective_law("all_reduce", layout, gpu).times(
        crowd * np.array(buckets.num_bytes, dtype=np.float64)
    )
    median_s = _added_s(times.seconds, ready_s, pass_s, slowdown)
    late_s = _added_s(times.seconds * np.exp(Z90 * times.sigma), ready_s, pass_s, slowdown)
    return Exchange(
        seconds=passes * (median_s + copied.seconds + behind_s), sigma_s=passes * (late_s - median_s) / Z90
    )


def _added_s(lasts_s: Floats, ready_s: Floats, pass_s: float, slowdown: float) -> float:
    """Seconds by which exchanging buckets, ready at these times, lengthens a backward pass."""
    # Kernels run slower for as long as both go on.
    stretched = 1 + slowdown * min(1.0, float(lasts_s.sum()) / pass_s) if pass_s else 1.0
    to_come_s = np.cumsum(lasts_s[::-1])[::-1]
    return max(float(np.max(ready_s * stretched + to_come_s)), pass_s * stretched) - pass_s


# Ranks that share parameters (FSDP, ZeRO-3) gather each unit before it is used and scatter its gradients
# after: all but the first gather and the last scatter can hide behind the computation of other units, whose
# kernels run slower meanwhile (Zhao et al., "PyTorch FSDP", PVLDB 16(12), 2023). Ranks that split layers
# (tensor, sequence and pipeline parallelism) need what they exchange at once, so nothing of it hides.


def exchange_of_shards(
    trace: Trace, compute_s: float, gpu: GpuSpec, layout: Layout, *, slowdown: float
) -> Exchange:
    """What the recorded collectives add to an iteration.

    Args:
        trace: of one of as many ranks as the layout has GPUs.
        compute_s: seconds of forward and backward.
        slowdown: of kernels while GPUs exchange, as a share of their time.
    """
    known = [c for c in trace.collectives if c.num_bytes is not None and c.world_size != 1]
    times = [(c, _time_of(c, trace, gpu, layout)) for c in known]
    beside_s = 0.0 if sharding_group(trace) is None else compute_s
    median_s, late_s = (_sharding_s(times, quantile, beside_s, slowdown) for quantile in (0.0, Z90))
    return Exchange(seconds=median_s, sigma_s=(late_s - median_s) / Z90)


def exchange_beside_gradients(trace: Trace, gpu: GpuSpec, layout: Layout) -> Exchange:
    """What ranks that each hold all of a model exchange beside gradients, such as weights or statistics.

    All of it is needed at once, so nothing hides. The trace is of one of any number of such ranks.
    """
    if layout.num_gpus == 1:
        return Exchange()
    beside = tuple(
        replace(c, world_size=layout.num_gpus) if c.world_size == trace.world_size else c
        for c in trace.collectives
        if c.kind != "all_reduce"
    )
    return exchange_of_shards(replace(trace, collectives=beside), 0.0, gpu, layout, slowdown=0.0)


def _sharding_s(
    times: list[tuple[Collective, CollectiveTime]], quantile: float, compute_s: float, slowdown: float
) -> float:
    lasts = [(c, time.seconds * exp(quantile * time.sigma)) for c, time in times]
    total_s = sum(c.count * last_s for c, last_s in lasts)
    # What comes first and what comes last has nothing to hide behind.
    ends_s = sum(max((s for c, s in lasts if c.kind == kind), default=0.0) for kind in SHARDING)
    hidden_s = min(max(total_s - ends_s, 0.0), compute_s)
    return total_s - hidden_s + slowdown * hidden_s


def _time_of(collective: Collective, trace: Trace, gpu: GpuSpec, layout: Layout) -> CollectiveTime:
    """Of one among the ranks of its group, which are neighbours; copies of a shard lie apart."""
    num_bytes, ranks = collective.num_bytes or 0, collective.world_size or layout.num_gpus
    group, apart = sharding_group(trace), 1
    if collective.kind == "all_reduce" and group is not None and ranks < layout.num_gpus:
        apart = min(group, layout.gpus_per_node)
    within = min(ranks, max(1, layout.gpus_per_node // apart))
    among = Layout(gpus_per_node=within, num_nodes=-(-ranks // within), fabric=layout.fabric)
    # Of ranks that lie so many GPUs apart, as many such groups share a node's network.
    crowd = apart if among.num_nodes > 1 else 1
    return collective_time(collective.kind, num_bytes * crowd, among, gpu)


# ZeRO-1 and 2 reduce gradients as data parallelism does, and gather the weights after each step. ZeRO-3
# gathers each block before it is used, forward and backward, and scatters its gradients (Rajbhandari et
# al., SC 2020).


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedModel:
    """What copies could share."""

    weights_bytes: float
    """Of all of it."""
    gradients_bytes: float
    """Of all of it."""
    blocks: int
    """Pieces in which it is gathered."""


def shared_model(trace: Trace, crowd: int = 1) -> SharedModel:
    """What copies of a script's model could share; of weights and gradients one counts where one is known.

    Its ranks each hold all of it. A crowd of groups of copies, each with a part of the model, share a node's
    network.
    """
    weights, gradients = trace.memory.parameter_bytes, trace.memory.gradient_bytes
    return SharedModel(
        weights_bytes=crowd * ((gradients if weights is None else weights) or 0),
        gradients_bytes=crowd * ((weights if gradients is None else gradients) or 0),
        blocks=blocks_of(trace).num,
    )


def shared_state_ranks(sharding: Sharding, layout: Layout) -> int:
    """Copies that keep one state among them."""
    if sharding is Sharding.NONE:
        return 1
    return layout.gpus_per_node if sharding is Sharding.HYBRID else layout.num_gpus


def exchange_of_zero(
    model: SharedModel,
    sharding: Sharding,
    trace: Trace,
    compute_s: float,
    reduced: Exchange,
    gpu: GpuSpec,
    layout: Layout,
    *,
    slowdown: float,
) -> Exchange:
    """What sharding makes of the exchange of an iteration.

    Args:
        model: what is shared.
        trace: of a script whose ranks each hold all of it.
        compute_s: seconds of forward and backward.
        gpu: of which kind all are.
        slowdown: of kernels while GPUs exchange, as a share of their time.
    """
    if sharding is Sharding.NONE or layout.num_gpus == 1:
        return reduced
    if sharding in (Sharding.ZERO_1, Sharding.ZERO_2):
        gather = collective_time("all_gather", model.weights_bytes, layout, gpu)
        sigma_s = reduced.sigma_s + gather.sigma * gather.seconds
        return Exchange(seconds=reduced.seconds + gather.seconds, sigma_s=sigma_s)
    gathering = _gathering(model, sharding, trace, layout)
    return exchange_of_shards(gathering, compute_s, gpu, layout, slowdown=slowdown)


def _gathering(model: SharedModel, sharding: Sharding, trace: Trace, layout: Layout) -> Trace:
    ranks, blocks, passes = shared_state_ranks(sharding, layout), model.blocks, trace.accumulation

    def each(kind: str, num_bytes: float, count: int, world_size: int = ranks) -> Collective:
        return Collective(kind=kind, num_bytes=round(num_bytes), world_size=world_size, count=count)

    collectives = [
        each("all_gather", model.weights_bytes / blocks, 2 * blocks * passes),
        each("reduce_scatter", model.gradients_bytes / blocks, blocks * passes),
    ]
    if ranks < layout.num_gpus:
        copied_bytes = model.gradients_bytes / ranks / blocks
        collectives.append(each("all_reduce", copied_bytes, blocks, layout.num_nodes))
    memory = replace(trace.memory, gradient_bytes=round(model.gradients_bytes / ranks))
    return replace(
        trace, memory=memory, world_size=layout.num_gpus, is_sharded=True, collectives=tuple(collectives)
    )
