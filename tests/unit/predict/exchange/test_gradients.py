"""Buckets of DDP: which tensors they hold, and when in the backward pass each is complete."""

from dataclasses import replace

import numpy as np
import pytest

from advisor.core.values import Collective, Op, Phase, TensorSpec, Trace
from advisor.predict.exchange.data_parallel import buckets_of
from tests.builders import make_op, make_trace

MIB = 2**20


def tensor(rows: int, columns: int) -> TensorSpec:
    return TensorSpec(shape=(rows, columns), dtype="float32")


def backward(*outputs: TensorSpec, name: str = "aten::mm", count: int = 1) -> Op:
    return replace(make_op(name, phase=Phase.BACKWARD, count=count), outputs=outputs)


def trace_of(ops: tuple[Op, ...], parameters: tuple[TensorSpec, ...], **changes: object) -> Trace:
    """Adam's call lists parameters, then as many gradients."""
    step = replace(make_op("aten::_fused_adam_", phase=Phase.OPTIMIZER), inputs=parameters * 2)
    num_bytes = sum(4 * p.shape[0] * p.shape[1] for p in parameters)
    trace = make_trace(ops=(*ops, step), **changes)
    return replace(trace, memory=replace(trace.memory, gradient_bytes=num_bytes))


EMBEDDING, FIRST, LAST = tensor(32 * MIB, 1), tensor(1024, 1024), tensor(2048, 1024)
PARAMETERS = (EMBEDDING, FIRST, LAST)
EMBED = backward(EMBEDDING, name="aten::embedding_dense_backward")


def takes(name: str, of: TensorSpec, count: int) -> Op:
    """An operator that gives a tensor of the shape that it takes."""
    return replace(backward(of, name=name, count=count), inputs=(of, of))


VECTOR, TURNED = (TensorSpec(shape=shape, dtype="float32") for shape in ((MIB, 1), (1, MIB)))


@pytest.mark.parametrize(
    ("ops", "parameters", "passes", "mib", "seconds", "ready"),
    [
        # An embedding travels alone when all is over. The first bucket is full with 1 MiB, so the last
        # layer's 8 MiB fill it; a bucket takes whole tensors.
        ((backward(LAST), backward(FIRST), EMBED), PARAMETERS, 1, (8, 132), [2, 1, 1, 9], [0.5, 1.0]),
        # Parameters of no shown gradient come with their neighbours; products may give one transposed.
        ((backward(LAST), backward(tensor(3, 3)), EMBED), PARAMETERS, 1, None, [2, 1, 1, 9],
         [0.5 * 8 / 12, 1.0]),
        ((backward(tensor(1024, 2048)), EMBED), (EMBEDDING, LAST), 1, None, [3, 1, 9], [0.75, 1.0]),
        # Tied weights are complete when both gradients are added: the last layer gives the first of them.
        ((backward(EMBEDDING), backward(FIRST), EMBED, backward(EMBEDDING, name="aten::add")),
         (EMBEDDING, FIRST), 1, (4, 128), [1] * 5, [0.5, 1.0]),
        # Two tensors of one shape are told apart by their number.
        ((backward(EMBEDDING), backward(FIRST), EMBED), (EMBEDDING, FIRST, EMBEDDING), 1, (128, 132), [1] * 4,
         [1 / 3, 1.0]),
        # Eight equal layers of two operators, of which one gives 4 MiB, take turns.
        ((backward(FIRST, count=8), backward(tensor(7, 7), count=8)), (FIRST,) * 8, 1, (4, 28), [1, 3, 9],
         [0.125, 1.0]),
        # Passes of accumulation are no layers, and layers that accumulate are ready one after the other.
        ((backward(LAST, count=2), backward(FIRST, count=2), replace(EMBED, count=2)), PARAMETERS, 2, None,
         [2, 1, 1, 9], [0.5, 1.0]),
        ((backward(FIRST, count=32), takes("aten::add_", FIRST, 24), takes("aten::mul", FIRST, 8)),
         (FIRST,) * 8, 4, (4, 28), [4, 0, 0, 9], [0.125, 1.0]),
        # A tensor that is used twice, in each pass.
        ((backward(EMBEDDING, count=2), backward(FIRST, count=2), replace(EMBED, count=2),
          takes("aten::add", EMBEDDING, 2), takes("aten::add_", FIRST, 1), takes("aten::add_", EMBEDDING, 1)),
         (EMBEDDING, FIRST), 2, None, [1, 1, 1, 1, 0, 0, 9], [0.5, 1.0]),
        # A vector may be given with a dimension of one.
        ((backward(TURNED, name="aten::sum"), EMBED), (EMBEDDING, VECTOR), 1, None, [3, 1, 9], [0.75, 1.0]),
    ],
)  # fmt: skip
def test_when_buckets_are_ready(ops, parameters, passes, mib, seconds, ready):
    buckets = buckets_of(trace_of(ops, parameters, accumulation=passes))
    assert mib is None or buckets.num_bytes == tuple(size * MIB for size in mib)
    assert buckets.ready(np.array(seconds, float)).tolist() == pytest.approx(ready)


@pytest.mark.parametrize("accumulation", [2, 4])
def test_adding_to_gradients_of_earlier_passes_completes_none(accumulation):
    """Before: all gradients of a script that accumulates were complete at the very end, and hid nowhere."""
    made = tuple(replace(op, count=accumulation) for op in (backward(LAST), backward(FIRST), EMBED))
    # The first pass adds nothing, and the last alone scales: so they stand behind all others.
    added = tuple(takes("aten::add_", one, accumulation - 1) for one in (LAST, FIRST, EMBEDDING))
    scaled = tuple(takes("aten::mul", one, 1) for one in (LAST, FIRST, EMBEDDING))
    trace = trace_of((*made, *added, *scaled), PARAMETERS, accumulation=accumulation)
    plain = trace_of(made, PARAMETERS, accumulation=accumulation)
    seconds = np.array([2.0, 1.0, 1.0, *[0.0] * 6, 9.0])
    assert buckets_of(trace).num_bytes == buckets_of(plain).num_bytes == (8 * MIB, 132 * MIB)
    assert buckets_of(trace).ready(seconds).tolist() == [0.5, 1.0]


def test_of_a_sum_alone_buckets_are_full_and_evenly_ready():
    trace = make_trace()
    trace = replace(trace, memory=replace(trace.memory, gradient_bytes=51 * MIB))
    buckets = buckets_of(trace)
    assert buckets.num_bytes == (MIB, 25 * MIB, 25 * MIB)
    assert buckets.ready(np.ones(3)).tolist() == [pytest.approx(1 / 51), pytest.approx(26 / 51), 1.0]


@pytest.mark.parametrize("num_bytes", [2**53, 2**63 - 1])
def test_no_number_of_bytes_fills_our_memory_with_buckets(num_bytes):
    """Before: 2^53 bytes of gradients took 22 GB."""
    trace = make_trace()
    buckets = buckets_of(replace(trace, memory=replace(trace.memory, gradient_bytes=num_bytes)))
    assert len(buckets.num_bytes) < 10**5
    assert sum(buckets.num_bytes) == pytest.approx(num_bytes)


def test_recorded_buckets_are_those_that_are_exchanged():
    recorded = tuple(
        Collective(kind="all_reduce", num_bytes=size * MIB, world_size=8, count=count)
        for size, count in ((1, 1), (25, 5), (14, 1))
    )
    ops = (backward(LAST), backward(FIRST), EMBED)
    buckets = buckets_of(trace_of(ops, PARAMETERS, collectives=recorded, world_size=8))
    assert buckets.num_bytes == (MIB, *(25 * MIB,) * 5, 14 * MIB)
    # What ends within a tensor waits for the whole of it.
    assert buckets.ready(np.ones(4)).tolist() == [pytest.approx(1 / 3), *[1.0] * 6]


@pytest.mark.parametrize("num_bytes", [0, None])
def test_no_gradients_are_one_empty_bucket(num_bytes):
    trace = make_trace()
    buckets = buckets_of(replace(trace, memory=replace(trace.memory, gradient_bytes=num_bytes)))
    assert buckets.num_bytes == (0,)
    assert buckets.ready(np.ones(3)).tolist() == [1.0]


def test_a_trace_without_a_backward_pass_is_ready_at_once():
    trace = make_trace(ops=(make_op(),))
    assert buckets_of(trace).ready(np.ones(1)).tolist()[0] == 0
