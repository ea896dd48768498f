"""What copies of a model exchange where they are supposed to share its state (ZeRO, FSDP).

ZeRO-1 and 2 reduce gradients as data parallelism does, and gather the weights after each step. ZeRO-3 gathers
each block before it is used, forward and backward, and scatters its gradients (Rajbhandari et al., SC 2020).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.core.values import Collective, GpuSpec, Layout, Sharding, Trace
from advisor.predict.exchange.collective_time import collective_time
from advisor.predict.exchange.data_parallel import Exchange
from advisor.predict.exchange.sharded import exchange_of_shards
from advisor.predict.footprint.blocks import blocks_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedModel:
    """What copies could share.

    Attributes:
        weights_bytes: of all of it.
        gradients_bytes: of all of it.
        blocks: pieces in which it is gathered.
    """

    weights_bytes: float
    gradients_bytes: float
    blocks: int


def shared_model(trace: Trace, crowd: int = 1) -> SharedModel:
    """What copies of a script's model could share; of weights and gradients one counts where one is known.

    Args:
        trace: of a script whose ranks each hold all of it.
        crowd: groups of copies that share a node's network, each with a part of the model.
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
        sharding: how.
        trace: of a script whose ranks each hold all of it.
        compute_s: seconds of forward and backward.
        reduced: what data parallelism adds.
        gpu: of which kind all are.
        layout: of the copies.
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
    """The trace with the collectives of ZeRO-3: gathered blocks, and their gradients scattered."""
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
