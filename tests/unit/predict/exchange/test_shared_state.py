"""Ranks that share an optimizer's state themselves (ZeRO-1), in figures worked out by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.units import MIB
from advisor.core.values import Collective, Layout, MemoryUse, Phase, Sharding, Split, TensorSpec, Trace
from advisor.operators.work import tensor_bytes
from advisor.predict.exchange import collectives
from advisor.predict.exchange.collective_time import collective_time
from advisor.predict.exchange.data_parallel import exchange_beside_gradients
from advisor.predict.iteration import predict_counts
from tests.builders import make_gpu, make_op, make_trace

GPU = make_gpu(nvlink_bytes_per_s=300e9)
EIGHT = Layout(gpus_per_node=8)
# 100 MiB of weights in FP32, of which one tensor has 40, and 600 MiB of activations.
TENSORS = {40 * MIB: 1, 10 * MIB: 6}
WEIGHTS, HELD = 100 * MIB, 600 * MIB
# The first rank has the large tensor; of two ranks it has one of the small ones besides.
PARTS = {1: 1.0, 2: 0.5, 4: 0.4, 8: 0.4}


def collective(kind: str, num_bytes: int, world_size: int, count: int = 1) -> Collective:
    return Collective(kind=kind, num_bytes=num_bytes, world_size=world_size, count=count)


def memory_of(part: float, made: int = 0) -> MemoryUse:
    """Adam keeps twice what a rank updates, and makes so many times that beside it."""
    state = round(2 * part * WEIGHTS)
    pass_peak = 2 * WEIGHTS + state + HELD
    return MemoryUse(
        parameter_bytes=WEIGHTS, gradient_bytes=WEIGHTS, optimizer_bytes=state, activation_bytes=HELD,
        pass_activation_bytes=HELD, most_activation_bytes=HELD, pass_peak_bytes=pass_peak,
        peak_bytes=max(pass_peak, 2 * WEIGHTS + (1 + made) * state),
    )  # fmt: skip


def trace_of(ranks: int, sent: dict[int, int], memory: MemoryUse) -> Trace:
    reduced = collective("all_reduce", WEIGHTS, ranks)
    weights = (collective("broadcast", size, ranks, count) for size, count in sent.items())
    return make_trace(collectives=(reduced, *weights), world_size=ranks, memory=memory)


def recorded_among(ranks: int, made: int = 0) -> Trace:
    return trace_of(ranks, TENSORS, memory_of(PARTS[ranks], made))


# A step that makes nothing, and one that exceeds the passes on any number of ranks.
@pytest.mark.parametrize("made", [0, 20])
@pytest.mark.parametrize("recorded", PARTS)
@pytest.mark.parametrize("ranks", PARTS)
def test_a_rank_elsewhere_holds_what_a_profile_there_would_show(recorded, ranks, made):
    trace = recorded_among(recorded, made)
    assert collectives.state_group(trace) == recorded
    assert collectives.resharded(trace, ranks) == recorded_among(ranks, made)
    assert collectives.shard_growth(trace, ranks) == pytest.approx(PARTS[ranks] / PARTS[recorded])
    assert collectives.is_known_at(trace, ranks)


def test_pieces_of_ranks_are_shared_by_fewer_as_they_are_and_by_more_evenly():
    trace = trace_of(4, {40 * MIB: 1, 20 * MIB: 3}, memory_of(PARTS[4]))
    growth = {ranks: collectives.shard_growth(trace, ranks) for ranks in (1, 2, 4, 8)}
    assert growth == pytest.approx({1: 1 / 0.4, 2: 0.6 / 0.4, 4: 1, 8: 0.5})


def test_one_piece_of_a_single_rank_is_as_many_tensors_as_it_updates():
    trace = trace_of(1, {WEIGHTS: 1}, memory_of(1.0))
    assert collectives.shard_growth(trace, 8) == pytest.approx(1 / 8)
    tensors = (
        TensorSpec(shape=(size // 4,), dtype="float32", stride=(1,))
        for size, count in TENSORS.items()
        for _ in range(count)
    )
    step = replace(make_op("aten::_foreach_add_", phase=Phase.OPTIMIZER), inputs=tuple(tensors))
    assert sum(map(tensor_bytes, step.inputs)) == WEIGHTS
    assert collectives.shard_growth(replace(trace, ops=(*trace.ops, step)), 8) == pytest.approx(0.4)


@pytest.mark.parametrize(
    "sent",
    [
        {},
        # Buffers of layers, the weights twice, and no bytes at all.
        {MIB: 4},
        {WEIGHTS: 2},
        {0: 8},
    ],
)
def test_other_broadcasts_share_no_state(sent):
    trace = trace_of(8, sent, memory_of(1.0))
    assert (collectives.state_group(trace), collectives.shares_state(trace)) == (None, False)
    assert collectives.resharded(trace, 2) is trace
    assert collectives.undivided(trace) is trace


def test_a_part_of_the_world_and_unknown_gradients_tell_of_no_shared_state():
    trace = recorded_among(8)
    halves = tuple(replace(c, world_size=4) if c.kind == "broadcast" else c for c in trace.collectives)
    assert collectives.state_group(replace(trace, collectives=halves)) is None
    assert collectives.state_group(replace(trace, memory=replace(trace.memory, gradient_bytes=None))) is None


def test_what_is_not_known_of_the_state_is_not_known_elsewhere():
    trace = recorded_among(8)
    unknown = replace(trace, memory=replace(trace.memory, optimizer_bytes=None))
    assert collectives.resharded(unknown, 2).memory.peak_bytes is None


def test_updated_weights_are_exchanged_in_the_open_on_any_number_of_gpus():
    expected_s = sum(
        count * collective_time("broadcast", size, EIGHT, GPU).seconds for size, count in TENSORS.items()
    )
    for recorded in (1, 2, 8):
        trace = recorded_among(recorded)
        exchange = exchange_beside_gradients(trace, GPU, EIGHT)
        assert exchange.seconds == pytest.approx(expected_s)
        assert exchange_beside_gradients(trace, GPU, Layout(gpus_per_node=1)).seconds == 0
        estimate = predict_counts(trace, GPU, [8])[0]
        reduced = predict_counts(replace(trace, collectives=trace.collectives[:1]), GPU, [8])[0]
        assert estimate.communication_s - reduced.communication_s == pytest.approx(expected_s)


def test_what_is_supposed_of_a_script_that_shares_its_state_takes_the_place_of_that():
    split = Split(sharding=Sharding.ZERO_3)
    whole = make_trace(
        collectives=(collective("all_reduce", WEIGHTS, 1),), memory=memory_of(1.0), world_size=1
    )
    expected, *others = (
        predict_counts(trace, GPU, [8], split=split)[0]
        for trace in (whole, recorded_among(1), recorded_among(8))
    )
    for other in others:
        assert other.memory == expected.memory
        assert other.iteration_s == expected.iteration_s


SIZES = st.lists(st.integers(1, 10**6), min_size=1, max_size=40)


@given(sizes=SIZES, ranks=st.integers(1, 64))
def test_the_first_rank_has_the_largest_tensor_and_hardly_more_than_its_share(sizes, ranks):
    part, total = collectives.first_part(tuple(sizes), ranks), sum(sizes)
    assert part >= max(sizes) / total
    assert part <= 1 / ranks + max(sizes) / total + 1e-9
    assert collectives.first_part(tuple(sizes), 1) == 1
    assert part == collectives.first_part(tuple(reversed(sizes)), ranks)
    if ranks >= len(sizes):
        assert part == collectives.first_part(
            tuple(sizes), 10**18
        )  # which would fill our memory if each had a place
