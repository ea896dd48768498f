"""What recorded collectives mean for a prediction, in figures worked out by hand."""

from dataclasses import replace

import pytest

from advisor.core.values import Collective, IterationEstimate, MemoryPart, MemoryUse, Phase, Trace
from advisor.predict.exchange.collective_time import collective_time
from advisor.predict.exchange.collectives import (
    buckets_of_pass,
    exchanging_passes,
    is_known_at,
    reduced_bytes,
    resharded,
    sharded_over,
    sharding_group,
)
from advisor.predict.iteration import predict_counts
from tests.builders import make_gpu, make_op, make_trace
from tests.findings import said

GRADIENT_BYTES = 10**8


def collective(kind: str, num_bytes: int | None, world_size: int | None = 8, count: int = 1) -> Collective:
    return Collective(kind=kind, num_bytes=num_bytes, world_size=world_size, count=count)


def trace_of(*collectives: Collective) -> Trace:
    trace = make_trace()
    assert trace.memory.gradient_bytes == GRADIENT_BYTES
    return replace(trace, collectives=collectives, world_size=8 if collectives else None)


BUCKETS = (collective("all_reduce", 6 * 10**7), collective("all_reduce", 2 * 10**7, count=2))
LAYERS = (collective("all_gather", 10**8, count=4), collective("reduce_scatter", 10**8, count=2))


@pytest.mark.parametrize(
    ("collectives", "num_bytes"),
    [
        ((*BUCKETS, collective("broadcast", 5)), GRADIENT_BYTES),
        ((), None),
        ((collective("nccl", None, None),), None),
        (LAYERS, None),
    ],
)
def test_reduced_bytes_are_those_of_all_buckets_if_any(collectives, num_bytes):
    assert reduced_bytes(trace_of(*collectives)) == num_bytes


ALONE = trace_of(collective("reduce_scatter", 10**8, 1), collective("all_reduce", 4, 1))
ODD = trace_of(collective("broadcast", 10**6))
ACTIVATIONS = trace_of(collective("all_reduce", 10**12))


@pytest.mark.parametrize(
    ("trace", "world"),
    [
        # Where no gradients are known none are missing.
        (ODD, 8),
        (replace(ODD, memory=replace(ODD.memory, gradient_bytes=None)), None),
        # Ranks of tensor parallelism all-reduce more bytes than all gradients have: no gradients.
        (ACTIVATIONS, None),
        (replace(ACTIVATIONS, is_sharded=True), 8),
        # One process shares with nobody, nor does a group that exchanges nothing.
        (replace(ALONE, world_size=None), None),
        (replace(ALONE, world_size=1), None),
        (replace(trace_of(collective("nccl", None, None)), world_size=None), None),
        (make_trace(world_size=8), None),
    ],
)
def test_who_shares_a_model_by_what_else_is_known(trace, world):
    assert sharded_over(trace) == world


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
        # A contrastive loss gathers the features of all ranks, and scatters their gradients.
        ((*BUCKETS, collective("all_gather", 6 * 10**6), collective("reduce_scatter", 6 * 10**6)), None),
        # Half of the ranks reduce gradients, so others hold another part of the model.
        ((replace(BUCKETS[0], world_size=4), *BUCKETS[1:], collective("reduce_scatter", 10**6)), 8),
        ((*BUCKETS, collective("reduce_scatter", None)), 8),
        # Tensor parallelism reduces activations.
        ((collective("all_reduce", 10**6, count=2),), 8),
    ],
)
def test_ranks_share_a_model_that_scatter_or_reduce_less_than_all_gradients(collectives, world):
    assert sharded_over(trace_of(*collectives)) == world


def test_features_of_all_ranks_cost_their_way_at_any_count():
    features = (collective("all_gather", 10**9), collective("reduce_scatter", 10**9 // 25))
    plain, with_features = trace_of(*BUCKETS), trace_of(*BUCKETS, *features)
    for count in (2, 8, 16):
        (less,), (more,) = (predict_counts(one, make_gpu(), [count]) for one in (plain, with_features))
        assert more.memory_bytes == less.memory_bytes is not None
        assert more.communication_s > less.communication_s


def test_who_divides_its_model_alone_is_known_alone():
    trace = make_trace(world_size=1, is_sharded=True)
    assert sharded_over(trace) == 1
    assert (is_known_at(trace, 1), is_known_at(trace, 8)) == (True, False)
    one, eight = predict_counts(trace, make_gpu(), [1, 8])
    plain = predict_counts(make_trace(), make_gpu(), [1])[0]
    assert (one.memory_bytes, one.iteration_s) == (plain.memory_bytes, plain.iteration_s)
    assert eight.memory_bytes is None
    assert "sharded over" not in said((*one.assumptions, *eight.assumptions))
    assert "--world 8" in said(eight.assumptions)


def test_data_parallel_exchanges_what_was_recorded_at_any_count():
    # Small computation, so that nothing hides: 40 times the gradients, whatever they are.
    ops = (make_op(flops=10**6), make_op(flops=10**6, phase=Phase.BACKWARD))
    trace = replace(trace_of(collective("all_reduce", 4 * 10**9, world_size=1)), ops=ops)
    one, two, four = predict_counts(trace, make_gpu(), [1, 2, 4])
    assert one.communication_s == 0
    for estimate in (two, four):
        exchanged = collective_time("all_reduce", 4 * 10**9, estimate.layout, make_gpu())
        # Copies into buckets and back are among the recorded operators.
        assert estimate.communication_s == pytest.approx(exchanged.seconds, rel=1e-3)


def test_reductions_after_each_pass_and_after_the_last():
    buckets = (collective("all_reduce", 6 * 10**7, count=4), collective("all_reduce", 4 * 10**7, count=4))
    each = replace(trace_of(*buckets), accumulation=4)
    once = replace(trace_of(*(replace(bucket, count=1) for bucket in buckets)), accumulation=4)
    assert (exchanging_passes(each), exchanging_passes(once)) == (4, 1)
    assert buckets_of_pass(each) == buckets_of_pass(once) == (6 * 10**7, 4 * 10**7)
    assert (exchanging_passes(make_trace()), buckets_of_pass(make_trace())) == (1, ())


def held(estimate: IterationEstimate) -> dict[MemoryPart, int]:
    """What does not depend on the number of GPUs."""
    assert estimate.memory is not None
    varies = (MemoryPart.COMMUNICATION, MemoryPart.FRAGMENTATION)
    return {part: size for part, size in estimate.memory.parts.items() if part not in varies}


def channels(estimate: IterationEstimate) -> int:
    return estimate.memory.parts[MemoryPart.COMMUNICATION]


def test_buckets_that_the_peak_holds_are_not_added_again():
    one, two = predict_counts(trace_of(*BUCKETS), make_gpu(), [1, 2])
    assert held(two) == held(one)
    plain_one, plain_two = predict_counts(make_trace(), make_gpu(), [1, 2])
    gradient_bytes = make_trace().memory.gradient_bytes or 0
    assert held(plain_two) == held(plain_one)
    assert channels(plain_two) == channels(two) + gradient_bytes


def test_a_model_whose_activations_are_exchanged_is_known_at_its_own_world_alone():
    one, eight = predict_counts(trace_of(*LAYERS), make_gpu(), [1, 8])
    plain = predict_counts(make_trace(), make_gpu(), [1])[0]
    assert one.memory_bytes is None
    assert one.fits_memory is None
    assert held(eight) == held(plain)
    gather, scatter = (
        collective_time(kind, 10**8, eight.layout, make_gpu()) for kind in ("all_gather", "reduce_scatter")
    )
    assert eight.communication_s == pytest.approx(4 * gather.seconds + 2 * scatter.seconds)
    assert "--world 1" in said(one.assumptions)
    assert "--world" not in said(eight.assumptions)
    assert "sharded over 8" in said(eight.assumptions)
    assert "none hidden" in said(eight.assumptions)
    assert "data parallel" not in said((*one.assumptions, *eight.assumptions))


# FSDP on 8 ranks: each holds 100 MB of 800 MB, gathers them twice and scatters their gradients once.
WHOLE = 8 * GRADIENT_BYTES
SHARDS = (collective("all_gather", WHOLE // 4, count=8), collective("reduce_scatter", WHOLE // 4, count=4))


def test_whoever_gathers_parameters_is_known_at_other_worlds():
    trace = replace(trace_of(*SHARDS), is_sharded=True)
    assert sharding_group(trace) == 8
    assert all(is_known_at(trace, ranks) for ranks in (1, 2, 8, 32))
    sixteen = resharded(trace, 16)
    assert sharded_over(sixteen) == 16
    assert {(c.num_bytes, c.world_size) for c in sixteen.collectives} == {(WHOLE // 4, 16)}
    # Parameters, gradients and optimizer state, 100 MB each, halve.
    assert sixteen.memory.parameter_bytes == GRADIENT_BYTES // 2
    assert sixteen.memory.peak_bytes == trace.memory.peak_bytes - 3 * GRADIENT_BYTES // 2
    assert resharded(sixteen, 8) == trace
    assert resharded(trace, 8) is trace


STATE, HELD = 8 * 10**8, 10**9


def memory_among(ranks: int, num_steps: int = 0) -> MemoryUse:
    """800 MB each of weights, gradients and two moments, and 1 GB of activations; half the gradients peak."""
    part = STATE // ranks
    pass_peak = 3 * part + part // 2 + HELD
    return MemoryUse(
        parameter_bytes=part, gradient_bytes=part, optimizer_bytes=2 * part,
        activation_bytes=HELD, pass_activation_bytes=HELD, most_activation_bytes=HELD,
        pass_peak_bytes=pass_peak, peak_bytes=max(pass_peak, num_steps * part),
    )  # fmt: skip


# A step that makes nothing, and one whose state and copies exceed the passes.
@pytest.mark.parametrize("num_steps", [0, 60])
@pytest.mark.parametrize("recorded", [2, 8, 32])
@pytest.mark.parametrize("ranks", [2, 4, 16])
def test_memory_among_other_ranks_is_as_if_recorded_there(recorded, ranks, num_steps):
    shards = [replace(one, world_size=recorded) for one in SHARDS]
    trace = replace(
        make_trace(memory=memory_among(recorded, num_steps), world_size=recorded, is_sharded=True),
        collectives=tuple(shards),
    )
    there = resharded(trace, ranks).memory
    assert there == memory_among(ranks, num_steps)


def test_half_precision_gradients_and_a_scatter_after_each_pass_are_whole_gradients():
    half = replace(SHARDS[1], num_bytes=WHOLE // 8)
    assert sharding_group(trace_of(SHARDS[0], half)) == 8
    each = trace_of(SHARDS[0], replace(SHARDS[1], count=8))
    assert sharding_group(each) is None
    assert sharding_group(replace(each, accumulation=2)) == 8


def test_hybrid_sharding_adds_groups_of_the_same_size():
    # Four of eight ranks shard, two such groups reduce.
    whole = 4 * GRADIENT_BYTES
    trace = trace_of(
        collective("all_gather", whole, 4), collective("reduce_scatter", whole, 4),
        collective("all_reduce", GRADIENT_BYTES, 2),
    )  # fmt: skip
    assert (is_known_at(trace, 16), is_known_at(trace, 6)) == (True, False)
    more = resharded(trace, 16)
    assert [c.world_size for c in more.collectives] == [4, 4, 4]
    assert more.memory == trace.memory
    assert resharded(trace, 6) is trace


def test_on_one_gpu_it_is_an_ordinary_model():
    one, eight = predict_counts(replace(trace_of(*SHARDS), is_sharded=True), make_gpu(), [1, 8])
    assert one.communication_s == 0
    assert held(one)[MemoryPart.WEIGHTS] == 8 * held(eight)[MemoryPart.WEIGHTS]
    # A rank of eight updates an eighth of the parameters.
    updates = [estimate.by_family["optimizer"] for estimate in (one, eight)]
    assert updates[0] == pytest.approx(8 * updates[1])
    assert "sharded" not in said(one.assumptions)
    assert "hide behind computation" in said(eight.assumptions)
