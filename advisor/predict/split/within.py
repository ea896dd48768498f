"""What the GPUs that hold one copy of a model exchange, none of which hides behind computation.

Ranks that divide layers all-reduce the stream after attention and after the inner product, forward and
backward; once more behind the words and in front of them (Shoeybi et al., arXiv 1909.08053). Stages hand on
the stream, and its gradient back: each rank a part, which the next stage's ranks gather (Narayanan et al.,
SC 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from advisor.core.values import GpuSpec, Layout
from advisor.core.values.estimate import Z90
from advisor.predict.exchange.collective_time import CollectiveTime, collective_time
from advisor.predict.exchange.data_parallel import Exchange, together
from advisor.predict.split.rank import Rank

_REDUCTIONS_OF_A_LAYER, _REDUCTIONS_OF_WORDS = 4, 2
_FREE = CollectiveTime(seconds=0.0, sigma=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Of one pass.

    Attributes:
        layers: what a stage exchanges for its layers, and with the next stage.
        words: what it exchanges besides.
    """

    layers: Exchange
    words: Exchange

    def of_passes(self, passes: int) -> Exchange:
        """Of so many passes."""
        of_one = together(self.layers, self.words)
        return Exchange(seconds=passes * of_one.seconds, sigma_s=passes * of_one.sigma_s)


def exchange_within(rank: Rank, batch: float, gpu: GpuSpec, layout: Layout) -> Within:
    """What one pass exchanges.

    Args:
        rank: how the model is divided.
        batch: of a pass, over the profiled one.
        gpu: of which kind all are.
        layout: of all GPUs.
    """
    split, num_bytes = rank.split, rank.stream_bytes * batch
    reduce, send, gather = _FREE, _FREE, _FREE
    group = Layout(gpus_per_node=split.tensor, fabric=layout.fabric)
    if split.tensor > 1:
        reduce = collective_time("all_reduce", num_bytes, group, gpu)
    if split.pipeline > 1:
        send = collective_time("send", num_bytes / split.tensor, _neighbours(layout), gpu)
        gather = collective_time("all_gather", num_bytes, group, gpu)
    return Within(
        layers=_sum((_REDUCTIONS_OF_A_LAYER * rank.num_layers, reduce), (2, send), (2, gather)),
        words=_sum((_REDUCTIONS_OF_WORDS, reduce)),
    )


def _neighbours(layout: Layout) -> Layout:
    """A stage sends to the next node where there are several, with all GPUs of its own at once."""
    num_nodes = min(layout.num_nodes, 2)
    per_node = layout.gpus_per_node if num_nodes > 1 else 2
    return Layout(gpus_per_node=per_node, num_nodes=num_nodes, fabric=layout.fabric)


def _sum(*parts: tuple[int, CollectiveTime]) -> Exchange:
    """Slow machines are slow in all of it."""
    seconds = sum(count * time.seconds for count, time in parts)
    late_s = sum(count * time.seconds * exp(Z90 * time.sigma) for count, time in parts)
    return Exchange(seconds=seconds, sigma_s=(late_s - seconds) / Z90)
