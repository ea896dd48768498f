"""How much longer an iteration takes because its ranks share a model, as its recorded collectives tell.

Ranks that share parameters (FSDP, ZeRO-3) gather each unit before it is used and scatter its gradients
after: all but the first gather and the last scatter can hide behind the computation of other units, whose
kernels run slower meanwhile (Zhao et al., "PyTorch FSDP", PVLDB 16(12), 2023). Ranks that split layers
(tensor, sequence and pipeline parallelism) need what they exchange at once, so nothing of it hides.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp

from advisor.core.values import Collective, GpuSpec, Layout, Trace
from advisor.core.values.estimate import Z90
from advisor.predict.exchange.collective_time import CollectiveTime, collective_time
from advisor.predict.exchange.collectives import SHARDING, sharding_group
from advisor.predict.exchange.data_parallel import Exchange


def exchange_of_shards(
    trace: Trace, compute_s: float, gpu: GpuSpec, layout: Layout, *, slowdown: float
) -> Exchange:
    """What the recorded collectives add to an iteration.

    Args:
        trace: of one of as many ranks as the layout has GPUs.
        compute_s: seconds of forward and backward.
        gpu: of which kind all are.
        layout: how many they are, and over what they exchange.
        slowdown: of kernels while GPUs exchange, as a share of their time.
    """
    known = [c for c in trace.collectives if c.num_bytes is not None and c.world_size != 1]
    times = [(c, _time_of(c, trace, gpu, layout)) for c in known]
    beside_s = 0.0 if sharding_group(trace) is None else compute_s
    median_s, late_s = (_added_s(times, quantile, beside_s, slowdown) for quantile in (0.0, Z90))
    return Exchange(seconds=median_s, sigma_s=(late_s - median_s) / Z90)


def exchange_beside_gradients(trace: Trace, gpu: GpuSpec, layout: Layout) -> Exchange:
    """What ranks that each hold all of a model exchange beside gradients, such as weights or statistics.

    All of it is needed at once, so nothing hides.

    Args:
        trace: of one of any number of such ranks.
        gpu: of which kind all are.
        layout: how many they are, and over what they exchange.
    """
    if layout.num_gpus == 1:
        return Exchange()
    beside = tuple(
        replace(c, world_size=layout.num_gpus) if c.world_size == trace.world_size else c
        for c in trace.collectives
        if c.kind != "all_reduce"
    )
    return exchange_of_shards(replace(trace, collectives=beside), 0.0, gpu, layout, slowdown=0.0)


def _added_s(
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
    group = sharding_group(trace)
    if collective.kind == "all_reduce" and group is not None and ranks < layout.num_gpus:
        return _time_of_copies(num_bytes, ranks, min(group, layout.gpus_per_node), gpu, layout)
    within = min(ranks, layout.gpus_per_node)
    among = Layout(gpus_per_node=within, num_nodes=-(-ranks // within), fabric=layout.fabric)
    return collective_time(collective.kind, num_bytes, among, gpu)


def _time_of_copies(num_bytes: int, ranks: int, apart: int, gpu: GpuSpec, layout: Layout) -> CollectiveTime:
    """Of ranks that lie so many GPUs apart: as many such groups share a node's network."""
    within = min(ranks, max(1, layout.gpus_per_node // apart))
    among = Layout(gpus_per_node=within, num_nodes=-(-ranks // within), fabric=layout.fabric)
    return collective_time("all_reduce", num_bytes * (apart if among.num_nodes > 1 else 1), among, gpu)
