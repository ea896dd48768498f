"""The repeated part of a model, which checkpointing and FSDP work on."""

import pytest

from advisor.core.values import Phase, TensorSpec
from advisor.predict.distinct import blocks_of
from research.memory.points import recorded
from tests.builders import make_op, make_trace
from tests.unit.predict.footprint.scripts import BLOCKS, STREAM, WEIGHT, make_transformer, with_tensors

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
