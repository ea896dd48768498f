"""Several passes for one step of the optimizer."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import MemoryUse, Op, Phase, TensorSpec
from advisor.predict.what_if.batch import accumulated
from tests.builders import make_op, make_trace

WEIGHT, BIAS = (TensorSpec(shape=shape, dtype="float32") for shape in ((64, 64), (64,)))
NUM_BYTES = 4 * (64 * 64 + 64)
FORWARD, BACKWARD = make_op("aten::relu"), make_op("aten::relu_backward", phase=Phase.BACKWARD)
CLIP = make_op("aten::linalg_vector_norm")


def step(name: str = "aten::_foreach_add_", lists: int = 2) -> Op:
    tensors = (WEIGHT, BIAS) * lists
    made = make_op(name, phase=Phase.OPTIMIZER)
    return replace(made, inputs=tensors, outputs=tensors, attributes={"num_tensors": 2})


MEMORY = MemoryUse(
    parameter_bytes=NUM_BYTES,
    gradient_bytes=NUM_BYTES,
    optimizer_bytes=0,
    activation_bytes=1000,
    peak_bytes=NUM_BYTES + 1000,
    pass_activation_bytes=1000,
    pass_peak_bytes=NUM_BYTES + 1000,
    most_activation_bytes=1000,
)


@given(st.integers(2, 16))
def test_passes_repeat_and_the_step_and_its_clipping_do_not(passes):
    trace = accumulated(make_trace(ops=(FORWARD, BACKWARD, CLIP, step()), memory=MEMORY), passes)
    assert [op.count for op in trace.ops[:4]] == [passes, passes, 1, 1]
    assert (trace.accumulation, trace.batch_size) == (passes, 64 * passes)


def test_each_pass_but_the_first_adds_to_every_gradient():
    trace = accumulated(make_trace(ops=(FORWARD, BACKWARD, step(lists=4)), memory=MEMORY), 4)
    assert trace is not None
    added = [op for op in trace.ops if op.name == "aten::add_"]
    assert [(op.inputs, op.count, op.phase) for op in added] == [
        ((WEIGHT, WEIGHT), 3, Phase.BACKWARD),
        ((BIAS, BIAS), 3, Phase.BACKWARD),
    ]
    assert sum(op.bytes for op in added) == 3 * NUM_BYTES


def test_of_several_lists_the_one_as_large_as_the_gradients_counts():
    twice = replace(step(), count=2)
    trace = accumulated(make_trace(ops=(FORWARD, twice, step("aten::_foreach_mul_")), memory=MEMORY), 2)
    assert trace is not None
    assert sum(op.count for op in trace.ops if op.name == "aten::add_") == 2


def test_gradients_of_the_passes_before_are_there_at_the_peak():
    trace = accumulated(make_trace(ops=(FORWARD, BACKWARD, step()), memory=MEMORY), 2)
    assert trace.memory.peak_bytes == 2 * NUM_BYTES + 1000


def test_without_an_optimizer_nothing_is_known():
    assert accumulated(make_trace(ops=(FORWARD, BACKWARD)), 2) is None
