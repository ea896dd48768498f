"""A transformer of round numbers: 10 GiB of state, a block's every activation written down."""

from dataclasses import replace
from typing import Any

from advisor.core.units import GIB
from advisor.core.values import MemoryUse, Op, Phase, TensorSpec, Trace
from tests.builders import make_op, make_trace

BLOCKS = 8
# A GiB of activations for each sample: 64 samples, of which blocks make nearly all.
STREAM = TensorSpec(shape=(64, 512, 512), dtype="float32")
WEIGHT = TensorSpec(shape=(512, 512), dtype="float32")
MEMORY = MemoryUse(
    parameter_bytes=2 * GIB,
    gradient_bytes=2 * GIB,
    optimizer_bytes=4 * GIB,
    activation_bytes=16 * GIB,
    peak_bytes=22 * GIB,
)


def make_transformer(**changes: Any) -> Trace:
    """Eight blocks of a product and a sum, and a head; forward, backward and a step of Adam."""
    product = with_tensors(make_op("aten::mm", flops=10**12, count=BLOCKS), (STREAM, WEIGHT), (STREAM,))
    added = with_tensors(make_op("aten::add", flops=10**6, count=BLOCKS), (STREAM, STREAM), (STREAM,))
    backward = with_tensors(
        make_op("aten::mm", flops=2 * 10**12, count=BLOCKS, phase=Phase.BACKWARD), (STREAM, WEIGHT), (STREAM,)
    )
    step = with_tensors(make_op("aten::_foreach_add_", phase=Phase.OPTIMIZER), (WEIGHT,) * BLOCKS, (WEIGHT,))
    facts = {"ops": (product, added, backward, step), "memory": MEMORY, "batch_size": 64}
    return make_trace(**(facts | changes))


def with_tensors(op: Op, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> Op:
    return replace(op, inputs=inputs, outputs=outputs)
