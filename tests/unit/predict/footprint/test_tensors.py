"""What tensors and the repeated part of a model hold at the peak, by hand, and what sharding leaves."""

from dataclasses import replace

import pytest

from advisor.core.units import GB, GIB
from advisor.core.values import Layout, MemoryPart, Phase, Sharding, TensorSpec
from advisor.predict.distinct import Blocks, blocks_of
from advisor.predict.footprint import Footprint, footprint, sharded
from research.memory.points import recorded
from tests.builders import make_op, make_trace
from tests.unit.predict.footprint.scripts import (
    BLOCKS,
    MEMORY,
    STREAM,
    WEIGHT,
    make_transformer,
    with_tensors,
)

ONE = Layout(gpus_per_node=1)


def test_the_pass_is_the_peak_of_a_large_batch():
    tensors = footprint(make_transformer(), ONE)
    assert tensors.parts() == {
        MemoryPart.WEIGHTS: 2 * GIB,
        MemoryPart.GRADIENTS: 0,
        MemoryPart.OPTIMIZER: 4 * GIB,
        MemoryPart.ACTIVATIONS: 16 * GIB,
        MemoryPart.TEMPORARY: 0,
        MemoryPart.COMMUNICATION: 0,
    }


def test_what_no_part_explains_is_kept_at_any_batch():
    # An average of the weights: neither a parameter nor of the batch.
    average = 3 * GIB
    memory = replace(MEMORY, peak_bytes=MEMORY.peak_bytes + MEMORY.gradient_bytes + average)
    plain, tensors = (footprint(make_transformer(memory=one), ONE) for one in (MEMORY, memory))
    assert (plain.kept, tensors.kept) == (0, average)
    assert sum(tensors.parts().values()) == memory.peak_bytes
    assert tensors.parts()[MemoryPart.TEMPORARY] == average
    assert tensors.peak(0.0).total == plain.peak(0.0).total + average


def test_the_step_is_the_peak_of_a_small_one():
    tensors = footprint(make_transformer(), ONE)
    small = tensors.parts(1 / 64)
    assert (small[MemoryPart.GRADIENTS], small[MemoryPart.ACTIVATIONS]) == (2 * GIB, 0)
    assert sum(small.values()) == 8 * GIB


def test_what_the_step_makes_beside_the_state_is_no_activation():
    # The step's peak is that of the iteration: 3 GiB above weights, gradients and state.
    memory = replace(
        MEMORY,
        activation_bytes=3 * GIB,
        peak_bytes=11 * GIB,
        pass_activation_bytes=GIB,
        pass_peak_bytes=8 * GIB,
        most_activation_bytes=2 * GIB,
    )
    tensors = footprint(make_transformer(memory=memory), ONE)
    assert (tensors.activations, tensors.most_activations, tensors.step_temporary) == (GIB, 2 * GIB, 3 * GIB)
    assert tensors.gradients_at_peak == GIB
    assert [sum(tensors.parts(batch).values()) for batch in (0.0, 1.0, 4.0)] == [11 * GIB, 11 * GIB, 14 * GIB]


def test_lists_that_the_optimizer_makes_are_found_where_the_pass_is_the_peak():
    root = with_tensors(make_op("aten::_foreach_sqrt", phase=Phase.OPTIMIZER), (WEIGHT,), (WEIGHT, WEIGHT))
    tensors = footprint(make_transformer(ops=(*make_transformer().ops, root)), ONE)
    assert tensors.step_temporary == 2 * 2**20


def test_copies_of_weights_do_not_grow_with_the_batch():
    lower = TensorSpec(shape=WEIGHT.shape, dtype="bfloat16")
    cast = with_tensors(make_op("aten::_to_copy", count=8), (WEIGHT,), (lower,))
    tensors = footprint(make_transformer(ops=(*make_transformer().ops, cast)), ONE)
    copied = 8 * 512 * 512 * 2
    assert (tensors.copies, tensors.activations) == (copied, 16 * GIB - copied)
    twice = footprint(make_transformer(ops=(*make_transformer().ops, cast), accumulation=2), ONE)
    assert twice.copies == copied / 2


def test_data_parallelism_keeps_gradients_in_buckets():
    tensors = footprint(make_transformer(), Layout(gpus_per_node=8))
    assert tensors.buckets == 2 * GIB


def test_an_unknown_peak_stays_unknown():
    unknown = replace(MEMORY, activation_bytes=None, peak_bytes=None)
    assert footprint(make_transformer(memory=unknown), ONE) is None


@pytest.mark.parametrize(
    ("num_gpus", "zero_1", "zero_2", "zero_3"),
    [(4, 52.5, 41.3, 30.0), (16, 35.6, 21.6, 7.5), (64, 31.4, 16.6, 1.88), (256, 30.4, 15.4, 0.47)],
)
def test_states_of_seven_and_a_half_billion_parameters_as_the_zero_paper_has_them(
    num_gpus, zero_1, zero_2, zero_3
):
    # Rajbhandari et al., "ZeRO", 2020, table 1: 2 bytes of weights, 2 of gradients and 12 of the optimizer.
    layout = Layout(gpus_per_node=num_gpus)
    sizes = [
        states_gb(sharded(PAPER, sharding, layout))
        for sharding in (Sharding.NONE, Sharding.ZERO_1, Sharding.ZERO_2, Sharding.ZERO_3)
    ]
    assert sizes == pytest.approx([120, zero_1, zero_2, zero_3], rel=0.02)


def test_a_hybrid_shards_within_a_node_alone():
    nodes = Layout(gpus_per_node=8, num_nodes=4)
    node = sharded(PAPER, Sharding.ZERO_3, Layout(gpus_per_node=8))
    assert sharded(PAPER, Sharding.HYBRID, nodes) == node
    assert states_gb(sharded(PAPER, Sharding.ZERO_3, nodes)) == pytest.approx(states_gb(node) / 4)


def test_alone_nothing_is_shared():
    assert sharded(PAPER, Sharding.ZERO_3, ONE) is PAPER


def test_a_sharded_model_gathers_a_few_blocks():
    part = sharded(PAPER, Sharding.ZERO_3, Layout(gpus_per_node=8))
    assert part.buckets == 3 / 30 * PAPER.weights
    chain = replace(PAPER, blocks=replace(PAPER.blocks, num=1))
    assert sharded(chain, Sharding.ZERO_3, Layout(gpus_per_node=8)).buckets == PAPER.weights


PAPER = Footprint(
    weights=15 * GB,
    gradients=15 * GB,
    optimizer=90 * GB,
    gradients_at_peak=0,
    activations=10 * GB,
    most_activations=10 * GB,
    copies=0,
    step_temporary=0,
    kept=0,
    buckets=15 * GB,
    blocks=Blocks(num=30, boundary_bytes=GB, outside_share=0.0),
)


def states_gb(tensors: Footprint) -> float:
    return (tensors.weights + tensors.gradients + tensors.optimizer) / GB


STREAM_BYTES = 64 * 512 * 512 * 4


def test_blocks_are_what_repeats_and_their_stream_is_what_they_add_to():
    blocks = blocks_of(make_transformer())
    assert (blocks.num, blocks.boundary_bytes, blocks.outside_share) == (BLOCKS, STREAM_BYTES, 0.0)


def test_passes_repeat_blocks():
    assert blocks_of(make_transformer(accumulation=2)).num == BLOCKS // 2


def test_a_head_is_outside():
    logits = TensorSpec(shape=(64, 512, 4 * 512), dtype="float32")
    head = with_tensors(make_op("aten::mm", flops=10**12), (STREAM, WEIGHT), (logits,))
    blocks = blocks_of(make_transformer(ops=(*make_transformer().ops, head)))
    # It makes four streams, each block two.
    assert blocks.num == BLOCKS
    assert blocks.outside_share == pytest.approx(4 / (2 * BLOCKS + 4))


def test_without_a_pattern_a_model_is_a_chain():
    sizes = range(1, 26)
    ops = [
        with_tensors(
            make_op("aten::convolution", flops=10**9),
            (TensorSpec(shape=(8, size, 4), dtype="float32"),),
            (TensorSpec(shape=(8, size, 4), dtype="float32"),),
        )
        for size in sizes
    ]
    blocks = blocks_of(make_trace(ops=(*ops, make_op(phase=Phase.BACKWARD))))
    assert (blocks.num, blocks.boundary_bytes) == (5, 8 * 4 * 4 * sum(sizes) / len(sizes))


def test_a_model_without_products_is_one_block():
    blocks = blocks_of(make_trace(ops=(make_op("aten::relu"),)))
    assert (blocks.num, blocks.boundary_bytes) == (1, 0.0)


@pytest.mark.parametrize(
    ("name", "num"), [("llama3-8b-bf16-2048", 32), ("bert-large-fp32-512", 24), ("mpt-7b", 32)]
)
def test_layers_of_published_models(name, num):
    assert blocks_of(recorded(name)).num == num
