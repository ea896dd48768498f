"""What an iteration gets done: samples of all GPUs, and the FLOPs of the model on one.

Model FLOPs utilization (MFU) is what a GPU does of the model over what it could do in that time at its peak
(Chowdhery et al., "PaLM", arXiv 2204.02311, 2022, section 4.1). Of the model are the products of forward and
backward pass, each once: what is computed again to save memory does not count.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from advisor.core.values import GpuSpec, Layout, Op, Phase, Precision, StepWork, Trace
from advisor.operators.attention import ATTENTION
from advisor.operators.family import base_name
from advisor.operators.rates import data_sheet_flops_per_s
from advisor.operators.registry import family_of
from advisor.predict.distinct import Same, asked_rates
from advisor.predict.exchange.collectives import sharded_over, sharding_group
from advisor.predict.split.rank import Rank

# Of an attention's backward pass: one of its five products makes the scores again.
_SHARE_OF_BACKWARD_ATTENTION = 4 / 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Products:
    flops: float
    rate: str


def step_work(rank: Rank, gpu: GpuSpec, layout: Layout, share: float) -> StepWork:
    """What an iteration gets done.

    Args:
        rank: what each GPU runs.
        gpu: of which kind all are.
        layout: of all GPUs.
        share: what each copy of the model takes of the profiled batch.
    """
    trace, copies = rank.trace, max(layout.num_gpus // rank.split.gpus_per_copy, 1)
    products = _products(Same(trace.ops), trace.precision)
    batch_size = None if _share_samples(trace) else trace.batch_size
    return StepWork(
        num_samples=None if batch_size is None else batch_size * share * copies,
        model_flops=None if products is None else products.flops * share,
        peak_flops_per_s=None if products is None else data_sheet_flops_per_s(products.rate, gpu),
    )


def _share_samples(trace: Trace) -> bool:
    """Whether ranks may take the same samples, as those that divide layers do."""
    return sharded_over(trace) not in (None, 1) and sharding_group(trace) is None


@lru_cache(maxsize=8)
def _products(same: Same, precision: Precision) -> _Products | None:
    """FLOPs of the products of the model and the rate that most of them ask for; None where none is known."""
    forward = Counter[tuple[object, ...]]()
    for op in same.ops:
        if op.phase is Phase.FORWARD:
            forward[_call(op)] += op.count
    by_rate = Counter[str]()
    for op, (rate, family) in zip(same.ops, asked_rates(same.ops, precision), strict=True):
        if family.compute.tensor_cores and op.phase is not Phase.OPTIMIZER:
            by_rate[rate] += round(_model_flops(op, forward))
    if not by_rate.total():
        return None
    return _Products(flops=float(by_rate.total()), rate=by_rate.most_common(1)[0][0])


def _model_flops(op: Op, forward: Counter[tuple[object, ...]]) -> float:
    if op.phase is Phase.FORWARD:
        return float(op.flops * op.count)
    # A call that the forward pass made as well, strides included, computes the same again.
    again = min(op.count, forward[_call(op)]) if _has_strides(op) else 0
    forward[_call(op)] -= again
    each = op.flops * _SHARE_OF_BACKWARD_ATTENTION if _is_backward_attention(op) else op.flops
    return float(each * (op.count - again))


def _call(op: Op) -> tuple[object, ...]:
    return op.name, op.inputs


def _has_strides(op: Op) -> bool:
    return all(tensor.stride is not None for tensor in op.inputs)


def _is_backward_attention(op: Op) -> bool:
    return family_of(op).word == ATTENTION.word and base_name(op.name).endswith("_backward")
