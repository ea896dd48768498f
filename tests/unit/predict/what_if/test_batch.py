"""Which dimension of a tensor is the batch, and what a larger one costs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import MemoryUse, Op, Phase, Role, TensorSpec
from advisor.predict.what_if.batch import made_op, with_batch
from tests.builders import make_trace
from tests.unit.predict.what_if.following import flow, followed

BATCH, LENGTH, WIDTH = 8, 512, 768
Shape = tuple[int, ...]


def tensor(*shape: int, stride: Shape | None = None) -> TensorSpec:
    steps = [1]
    for size in reversed(shape[1:]):
        steps.insert(0, steps[0] * size)
    return TensorSpec(shape=shape, dtype="float32", stride=stride or tuple(steps[: len(shape)]))


def op(name: str, inputs: list[TensorSpec], outputs: list[TensorSpec], phase: Phase = Phase.FORWARD) -> Op:
    return made_op(f"aten::{name}", phase, tuple(inputs), tuple(outputs), {}, 1)


WEIGHT = tensor(WIDTH, WIDTH)
STEP = op("add_", [WEIGHT], [WEIGHT], Phase.OPTIMIZER)
# What tells that 512 is the length of a sequence.
ACTIVATIONS = op("gelu", [tensor(BATCH, LENGTH, WIDTH)], [tensor(BATCH, LENGTH, WIDTH)])


def grown(one: Op, factor: int = 2, **changes: object) -> Op:
    trace = with_batch(make_trace(ops=(one, ACTIVATIONS, STEP), batch_size=BATCH, **changes), factor)
    return trace.ops[0]


@pytest.mark.parametrize(
    ("shape", "stride", "expected"),
    [
        ((BATCH, 3, 224, 224), None, (2 * BATCH, 3, 224, 224)),
        ((BATCH * LENGTH, WIDTH), None, (2 * BATCH * LENGTH, WIDTH)),
        ((LENGTH, BATCH, WIDTH), None, (LENGTH, 2 * BATCH, WIDTH)),
        ((WIDTH, BATCH * LENGTH), (1, WIDTH), (WIDTH, 2 * BATCH * LENGTH)),
        ((BATCH, 12, LENGTH, 64), (LENGTH * WIDTH, 64, WIDTH, 1), (2 * BATCH, 12, LENGTH, 64)),
        ((BATCH,), None, (2 * BATCH,)),
        ((), None, ()),
        ((1, WIDTH), None, (1, WIDTH)),
        ((WIDTH, WIDTH), None, (WIDTH, WIDTH)),
        ((1, WIDTH, WIDTH), None, (1, WIDTH, WIDTH)),
        ((7, 5), None, (7, 5)),
    ],
)
def test_the_batch_is_the_outermost_dimension_that_it_divides(shape, stride, expected):
    one = tensor(*shape, stride=stride)
    after = grown(op("relu", [one], [one]))
    assert [t.shape for t in (*after.inputs, *after.outputs)] == [expected] * 2


def test_strides_stay_those_of_the_layout():
    images = tensor(BATCH, 3, 4, 4, stride=(48, 1, 12, 3))
    assert grown(op("relu", [images], [images])).inputs[0].stride == (48, 1, 12, 3)
    turned = tensor(WIDTH, BATCH * LENGTH)
    assert grown(op("relu", [turned], [turned])).inputs[0] == tensor(WIDTH, 2 * BATCH * LENGTH)


def test_of_a_product_rows_grow_and_for_a_weights_gradient_what_is_summed():
    rows = BATCH * LENGTH
    forward = grown(op("mm", [tensor(rows, WIDTH), WEIGHT], [tensor(rows, WIDTH)]))
    assert [t.shape for t in forward.inputs] == [(2 * rows, WIDTH), (WIDTH, WIDTH)]
    gradient = tensor(WIDTH, rows, stride=(1, WIDTH))
    backward = grown(op("mm", [gradient, tensor(rows, WIDTH)], [WEIGHT], Phase.BACKWARD))
    assert [t.shape for t in backward.inputs] == [(WIDTH, 2 * rows), (2 * rows, WIDTH)]
    assert backward.outputs == (WEIGHT,)


def test_a_width_as_large_as_the_rows_is_no_batch_of_a_product():
    square = tensor(BATCH * LENGTH, BATCH * LENGTH)
    after = grown(op("mm", [square, square], [square]))
    assert [t.shape for t in after.inputs] == [(2 * BATCH * LENGTH, BATCH * LENGTH), square.shape]


def test_a_bias_gradient_is_summed_over_the_batch_even_where_it_looks_like_a_weight():
    rows = tensor(WIDTH, WIDTH)  # eight samples of 96
    one = op("sum", [rows], [tensor(1, WIDTH)], Phase.BACKWARD)
    inner = op("gelu", [tensor(BATCH, 96, WIDTH)], [tensor(BATCH, 96, WIDTH)])
    step = op("_foreach_add_", [WEIGHT, tensor(WIDTH)], [WEIGHT, tensor(WIDTH)], Phase.OPTIMIZER)
    trace = with_batch(make_trace(ops=(one, inner, step), batch_size=BATCH), 2)
    assert (trace.ops[0].inputs, trace.ops[0].outputs) == ((tensor(2 * WIDTH, WIDTH),), one.outputs)


@given(st.integers(2, 5), st.integers(1, 64), st.integers(1, 64))
def test_work_grows_with_the_batch_and_the_step_stays(factor, channels, side):
    images = tensor(BATCH, channels, side, side)
    before = op("relu", [images], [images])
    trace = with_batch(make_trace(ops=(before, STEP), batch_size=BATCH, iteration_s=1.0), factor)
    assert trace.ops[0].flops == factor * before.flops
    assert trace.ops[0].bytes == factor * before.bytes
    assert trace.ops[1] is STEP
    assert (trace.batch_size, trace.iteration_s) == (factor * BATCH, None)


def test_as_many_samples_are_fewer_steps():
    sizes = {"batch_size": BATCH, "iterations_per_epoch": 101, "data_loading_s": 0.5}
    trace = with_batch(make_trace(ops=(ACTIVATIONS, STEP), **sizes), 2)
    assert (trace.iterations_per_epoch, trace.data_loading_s) == (51, 1.0)


def memory(**changes: int | None) -> MemoryUse:
    facts: dict[str, int | None] = {
        "parameter_bytes": 10, "gradient_bytes": 10, "optimizer_bytes": 20, "activation_bytes": 30,
        "peak_bytes": 70,
    }  # fmt: skip
    return MemoryUse(**(facts | changes))


def peak(use: MemoryUse, factor: int = 2) -> int | None:
    trace = with_batch(make_trace(ops=(ACTIVATIONS, STEP), batch_size=BATCH, memory=use), factor)
    return trace.memory.peak_bytes


def test_memory_grows_by_the_activations():
    assert peak(memory()) == 100
    assert peak(memory(peak_bytes=None)) is None


def test_a_peak_in_the_optimizers_step_stays_until_the_passes_exceed_it():
    use = memory(pass_peak_bytes=45, pass_activation_bytes=5, most_activation_bytes=12)
    assert peak(use) == 70
    assert peak(use, 4) == 30 + 4 * 12
    assert peak(use, 20) == 30 + 20 * 12


def test_where_work_does_not_grow_shapes_were_read_wrongly():
    assert with_batch(make_trace(), 2) is None
    shapeless = replace(ACTIVATIONS, inputs=(), outputs=())
    assert with_batch(make_trace(ops=(shapeless, STEP), batch_size=BATCH), 2) is None


def test_without_a_batch_nothing_is_known():
    assert with_batch(make_trace(batch_size=None), 2) is None
    assert with_batch(make_trace(batch_size=9, accumulation=2), 2) is None


SQUARE = tensor(WIDTH, WIDTH)


@pytest.mark.parametrize(
    ("sources", "expected"), [((3, 3), (2 * WIDTH, 2 * WIDTH)), ((3, Role.PARAMETER), (2 * WIDTH, WIDTH))]
)
def test_an_activation_of_a_weights_shape_grows_where_it_is_followed(sources, expected):
    """As many rows in a pass as columns: a batch of 8 sequences of 96 tokens, of width 768."""
    assert WIDTH == BATCH * 96
    rows = followed("gelu", [tensor(BATCH, 96, WIDTH)], [tensor(BATCH, 96, WIDTH)], flow(3, Role.OUTSIDE))
    scaled = followed("mul", [SQUARE, SQUARE], [SQUARE], flow(4, *sources))
    trace = with_batch(make_trace(ops=(rows, scaled, ACTIVATIONS, STEP), batch_size=BATCH), 2)
    assert tuple(given.shape[0] for given in trace.ops[1].inputs) == expected
    assert trace.ops[1].outputs[0].shape == (2 * WIDTH, WIDTH)
