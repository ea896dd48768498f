"""What recorded collectives mean for a prediction, in figures worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.core.values import Collective, IterationEstimate, MemoryPart, Phase, Trace
from advisor.predict.exchange.collectives import collectives_s, reduced_bytes, sharded_over
from advisor.predict.iteration import predict_counts
from tests.builders import make_gpu, make_op, make_trace
from tests.findings import said

LATENCY_S = 30e-6
# 16 GB/s of PCIe, of which 55 % arrive.
PCIE_BYTES_PER_S = 8.8e9
GRADIENT_BYTES = 10**8


def collective(kind: str, num_bytes: int | None, world_size: int | None = 8, count: int = 1) -> Collective:
    return Collective(kind=kind, num_bytes=num_bytes, world_size=world_size, count=count)


def trace_of(*collectives: Collective) -> Trace:
    trace = make_trace()
    assert trace.memory.gradient_bytes == GRADIENT_BYTES
    return replace(trace, collectives=collectives, world_size=8 if collectives else None)


BUCKETS = (collective("all_reduce", 6 * 10**7), collective("all_reduce", 2 * 10**7, count=2))
LAYERS = (collective("all_gather", 10**8, count=4), collective("reduce_scatter", 10**8, count=2))


def test_reduced_bytes_are_those_of_all_buckets() -> None:
    assert reduced_bytes(trace_of(*BUCKETS, collective("broadcast", 5))) == GRADIENT_BYTES


@pytest.mark.parametrize("collectives", [(), (collective("nccl", None, None),), LAYERS])
def test_without_a_reduction_of_known_size_nothing_is_recorded(collectives: tuple[Collective, ...]) -> None:
    assert reduced_bytes(trace_of(*collectives)) is None


@pytest.mark.parametrize(
    ("collectives", "world"),
    [
        ((), None),
        (BUCKETS, None),
        # Half precision by a hook; metrics gathered beside the gradients.
        ((collective("all_reduce", GRADIENT_BYTES // 2),), None),
        ((*BUCKETS, collective("all_gather", 10**6)), None),
        (LAYERS, 8),
        # Hybrid sharding: 4 ranks shard, 2 groups of them reduce.
        ((collective("reduce_scatter", 10**8, 4), collective("all_reduce", 10**8, 2)), 8),
        # Two ranks shard; one alone has nobody to shard with.
        ((*BUCKETS, collective("reduce_scatter", 10**8, 2)), 8),
        ((*BUCKETS, collective("reduce_scatter", 10**8, 1)), None),
        # Tensor parallelism reduces activations.
        ((collective("all_reduce", 10**6, count=2),), 8),
    ],
)
def test_ranks_share_a_model_that_scatter_or_reduce_less_than_all_gradients(
    collectives: tuple[Collective, ...], world: int | None
) -> None:
    assert sharded_over(trace_of(*collectives)) == world


def test_where_no_gradients_are_known_none_are_missing() -> None:
    trace = trace_of(collective("broadcast", 10**6))
    unknown = replace(trace, memory=replace(trace.memory, gradient_bytes=None))
    assert sharded_over(unknown) is None
    assert sharded_over(trace) == 8


def test_activations_of_tensor_parallel_ranks_are_no_gradients() -> None:
    # They all-reduce more bytes than all gradients have, and each holds a part of the model all the same.
    trace = trace_of(collective("all_reduce", 10**12))
    assert sharded_over(trace) is None
    assert sharded_over(replace(trace, is_sharded=True)) == 8


@pytest.mark.parametrize("world_size", [None, 1])
def test_one_process_shares_with_nobody(world_size: int | None) -> None:
    alone = (collective("reduce_scatter", 10**8, 1), collective("all_reduce", 4, 1))
    assert sharded_over(replace(trace_of(*alone), world_size=world_size)) is None
    profiled = replace(trace_of(collective("nccl", None, None)), world_size=None)
    assert sharded_over(profiled) is None


def test_a_group_that_exchanges_nothing_shares_nothing() -> None:
    assert sharded_over(make_trace(world_size=8)) is None


@pytest.mark.parametrize(
    ("kind", "crossings"),
    [
        ("all_reduce", 1.75),
        ("all_gather", 0.875),
        ("reduce_scatter", 0.875),
        ("broadcast", 1.0),
        ("send", 1.0),
    ],
)
def test_a_ring_of_eight(kind: str, crossings: float) -> None:
    trace = trace_of(collective(kind, 10**9, count=3))
    expected_s = 3 * (LATENCY_S + crossings * 10**9 / PCIE_BYTES_PER_S)
    assert collectives_s(trace, make_gpu()) == pytest.approx(expected_s)


def test_a_group_of_one_and_what_has_no_size_take_no_time() -> None:
    trace = trace_of(collective("all_gather", 10**9, 1), collective("nccl", None, None))
    assert collectives_s(trace, make_gpu()) == 0


def test_data_parallel_exchanges_what_was_recorded_at_any_count() -> None:
    # Small computation, so that nothing hides: 40 times the gradients, whatever they are.
    ops = (make_op(flops=10**6), make_op(flops=10**6, phase=Phase.BACKWARD))
    trace = replace(trace_of(collective("all_reduce", 4 * 10**9, world_size=1)), ops=ops)
    one, two, four = predict_counts(trace, make_gpu(), [1, 2, 4])
    assert one.communication_s == 0
    assert two.communication_s == pytest.approx(4 * 10**9 / PCIE_BYTES_PER_S, rel=1e-3)
    assert four.communication_s == pytest.approx(1.5 * two.communication_s, rel=1e-3)


def held(estimate: IterationEstimate) -> dict[MemoryPart, int]:
    """What does not depend on the number of GPUs."""
    assert estimate.memory is not None
    varies = (MemoryPart.COMMUNICATION, MemoryPart.FRAGMENTATION)
    return {part: size for part, size in estimate.memory.parts.items() if part not in varies}


def channels(estimate: IterationEstimate) -> int:
    assert estimate.memory is not None
    return estimate.memory.parts[MemoryPart.COMMUNICATION]


def test_buckets_that_the_peak_holds_are_not_added_again() -> None:
    one, two = predict_counts(trace_of(*BUCKETS), make_gpu(), [1, 2])
    assert held(two) == held(one)
    plain_one, plain_two = predict_counts(make_trace(), make_gpu(), [1, 2])
    gradient_bytes = make_trace().memory.gradient_bytes or 0
    assert held(plain_two) == held(plain_one)
    assert channels(plain_two) == channels(two) + gradient_bytes


def test_a_sharded_model_is_known_at_its_own_world_alone() -> None:
    one, eight = predict_counts(trace_of(*LAYERS), make_gpu(), [1, 8])
    plain = predict_counts(make_trace(), make_gpu(), [1])[0]
    assert one.memory_bytes is None
    assert one.fits_memory is None
    assert held(eight) == held(plain)
    expected_s = 6 * (LATENCY_S + 0.875 * 10**8 / PCIE_BYTES_PER_S)
    assert eight.communication_s == pytest.approx(expected_s)
    assert "--world 1" in said(one.assumptions)
    assert "--world" not in said(eight.assumptions)
    assert "sharded over 8" in said(eight.assumptions)
    assert "data parallel" not in said((*one.assumptions, *eight.assumptions))
