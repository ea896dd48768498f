"""Ranks that each update an equal part of the weights and gather all, in figures worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.units import MIB
from advisor.core.values import Collective, Layout, MemoryUse, Phase, TensorSpec, Trace
from advisor.predict.exchange.collective_time import collective_time
from advisor.predict.exchange.collectives import (
    exchanging_passes,
    gathered_bytes,
    resharded,
    shard_growth,
    sharded_over,
    sharding_group,
    state_group,
    undivided,
)
from advisor.predict.exchange.data_parallel import buckets_of, exchange_beside_gradients
from advisor.predict.iteration import predict_counts
from tests.builders import make_gpu, make_op, make_trace

GPU = make_gpu(nvlink_bytes_per_s=300e9)
EIGHT = Layout(gpus_per_node=8)
# 100 Mi weights in 16 bits, 600 MiB of activations, and a buffer that gradients are reduced in.
COUNT = 100 * MIB
WEIGHTS, HELD, KEPT = 2 * COUNT, 600 * MIB, 50 * MIB
WORLDS = st.sampled_from([2, 4, 8, 16, 64])


def collective(kind: str, num_bytes: int, world_size: int, count: int = 1) -> Collective:
    return Collective(kind=kind, num_bytes=num_bytes, world_size=world_size, count=count)


def memory_of(ranks: int, made: int = 0) -> MemoryUse:
    """A part in FP32, twice that for Adam, and gradients in FP32 when it steps."""
    part = 4 * COUNT // ranks
    pass_peak = WEIGHTS + 3 * part + HELD + KEPT
    step_peak = WEIGHTS + (4 + made) * part + KEPT
    return MemoryUse(
        parameter_bytes=WEIGHTS + part, gradient_bytes=part, optimizer_bytes=2 * part, activation_bytes=HELD,
        pass_activation_bytes=HELD, most_activation_bytes=HELD, pass_peak_bytes=pass_peak,
        peak_bytes=max(pass_peak, step_peak) if made else pass_peak,
    )  # fmt: skip


def recorded_among(ranks: int, *, made: int = 0, accumulation: int = 1, reductions: int = 1) -> Trace:
    """As DeepSpeed's ZeRO-1 does it; a norm and a flag are reduced besides."""
    collectives = (
        collective("all_gather", WEIGHTS, ranks),
        collective("all_reduce", WEIGHTS, ranks, reductions),
        collective("all_reduce", 1, ranks),
        collective("all_reduce", 4, ranks),
    )
    return make_trace(
        collectives=collectives, world_size=ranks, memory=memory_of(ranks, made), accumulation=accumulation
    )


@pytest.mark.parametrize("recorded", [2, 4, 8])
@pytest.mark.parametrize("ranks", [1, 2, 8, 16])
def test_a_rank_elsewhere_holds_what_a_profile_there_would_show(recorded, ranks):
    trace = recorded_among(recorded)
    assert (state_group(trace), gathered_bytes(trace)) == (recorded, WEIGHTS)
    assert (sharded_over(trace), sharding_group(trace)) == (None, None)
    assert resharded(trace, ranks) == recorded_among(ranks)
    assert shard_growth(trace, ranks) == recorded / ranks


@given(
    recorded=WORLDS, made=st.sampled_from([0, 8]), ranks=st.lists(WORLDS, min_size=2, max_size=2, unique=True)
)
def test_more_ranks_never_need_more_each(recorded, made, ranks):
    fewer, more = (
        predict_counts(recorded_among(recorded, made=made), GPU, [count])[0] for count in sorted(ranks)
    )
    assert more.memory_bytes < fewer.memory_bytes


def test_a_step_that_exceeds_the_passes_shrinks_with_its_part():
    # 400 MiB of FP32 weights, as much of gradients, twice that of state, and eight times that made beside it.
    trace = recorded_among(2, made=8)
    assert trace.memory.peak_bytes == WEIGHTS + 12 * 2 * COUNT + KEPT
    there = resharded(trace, 4).memory
    # What a step makes beside its state cannot be told from the buffer that is there at any time.
    assert there.peak_bytes == pytest.approx(WEIGHTS + 12 * COUNT + KEPT, abs=KEPT)


@pytest.mark.parametrize(("accumulation", "reductions"), [(1, 1), (4, 1), (4, 4)])
def test_gradients_are_reduced_once_or_in_each_pass(accumulation, reductions):
    trace = recorded_among(8, accumulation=accumulation, reductions=reductions)
    assert exchanging_passes(trace) == reductions
    assert state_group(trace) == 8


@given(recorded=WORLDS, ranks=WORLDS)
def test_what_each_reducing_pass_leaves_is_of_a_rank_s_part(recorded, ranks):
    # 16-bit gradients between passes, which count as activations.
    once, each = (recorded_among(recorded, accumulation=4, reductions=count) for count in (1, 4))
    more = WEIGHTS // ranks - WEIGHTS // recorded
    for name in ("pass_activation_bytes", "most_activation_bytes", "pass_peak_bytes", "peak_bytes"):
        left, without = (getattr(resharded(trace, ranks).memory, name) for trace in (each, once))
        assert left - without == more


def test_weights_are_gathered_in_the_open_on_any_number_of_gpus():
    gather_s = collective_time("all_gather", WEIGHTS, EIGHT, GPU).seconds
    for recorded in (2, 8):
        trace = recorded_among(recorded)
        assert exchange_beside_gradients(trace, GPU, EIGHT).seconds == pytest.approx(gather_s)
        assert exchange_beside_gradients(trace, GPU, Layout(gpus_per_node=1)).seconds == 0


def test_a_flat_part_of_the_weights_does_not_tell_when_gradients_are_complete():
    # Among two the part in FP32 has as many bytes as all gradients in 16 bits.
    flat = TensorSpec(shape=(COUNT // 2,), dtype="float32", stride=(1,))
    step = replace(make_op("aten::_fused_adamw_", phase=Phase.OPTIMIZER), inputs=4 * (flat,))
    ops = (*(make_op(f"aten::{name}", phase=Phase.BACKWARD) for name in ("mm", "bmm", "addmm")), step)
    buckets = buckets_of(replace(recorded_among(2), ops=ops))
    assert sum(buckets.num_bytes) == WEIGHTS + 5
    # All of it is one bucket, which is complete when the pass is over.
    assert buckets.ready(np.ones(len(ops)))[0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "gathers",
    [
        (),
        # Embeddings of a contrastive loss, the weights twice, halves of the world.
        (collective("all_gather", MIB, 8),),
        (collective("all_gather", WEIGHTS, 8, 2),),
        (collective("all_gather", WEIGHTS, 4),),
    ],
)
def test_other_gathers_share_no_state(gathers):
    trace = recorded_among(8)
    trace = replace(trace, collectives=(*gathers, *trace.collectives[1:]))
    assert (state_group(trace), gathered_bytes(trace)) == (None, None)
    assert undivided(trace) is trace


def test_supposed_otherwise_nothing_is_gathered_and_all_is_kept():
    whole = undivided(recorded_among(8))
    assert {c.kind for c in whole.collectives} == {"all_reduce"}
    assert whole.memory == memory_of(1)


@pytest.mark.parametrize("kind", ["send", "recv"])
def test_a_stage_of_a_pipeline_is_a_part_though_it_reduces_all_its_gradients(kind):
    trace = recorded_among(8)
    assert sharded_over(replace(trace, collectives=(*trace.collectives, collective(kind, MIB, 8)))) == 8
