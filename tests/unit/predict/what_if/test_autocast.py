"""What autocast makes of a trace, operator by operator."""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest

from advisor.core.values import Kernel, MemoryUse, Op, Phase, Precision, TensorSpec, Trace
from advisor.predict.what_if.precision import under_autocast
from tests.builders import make_trace

ROWS, WIDTH = 512, 768


def tensor(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(shape=shape, dtype=dtype)


def op(
    name: str,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    phase: Phase = Phase.FORWARD,
    **changes: Any,
) -> Op:
    """An operator that reads and writes everything once."""
    tensors = [*inputs, *outputs]
    sizes = {"float32": 4, "int64": 8, "bool": 1, "uint8": 1}
    num_bytes = sum(math.prod(t.shape) * sizes[t.dtype] for t in tensors)
    facts: dict[str, Any] = {"attributes": {}, "flops": 1000, "bytes": num_bytes, "count": 1}
    return Op(
        name=f"aten::{name}", phase=phase, inputs=tuple(inputs), outputs=tuple(outputs), **(facts | changes)
    )


X, WEIGHT, BIAS = tensor(ROWS, WIDTH), tensor(WIDTH, WIDTH), tensor(WIDTH)
LINEAR = op("addmm", [BIAS, X, WEIGHT], [X])
STEP = op("_foreach_add_", [WEIGHT, BIAS], [WEIGHT, BIAS], Phase.OPTIMIZER)


def cast(*ops: Op, dtype: str = "bfloat16", **changes: Any) -> Trace:
    changed = under_autocast(make_trace(ops=ops, **changes), dtype)
    assert changed is not None
    return changed


def dtypes(trace: Trace, name: str) -> tuple[list[str], list[str]]:
    """Of inputs and outputs of the first operator of this name."""
    ops = next(o for o in trace.ops if o.name == f"aten::{name}")
    return [t.dtype for t in ops.inputs], [t.dtype for t in ops.outputs]


def casts(trace: Trace) -> list[tuple[Phase, tuple[int, ...], str, str, int]]:
    return [
        (o.phase, o.inputs[0].shape, o.inputs[0].dtype, o.outputs[0].dtype, o.count)
        for o in trace.ops
        if o.name == "aten::_to_copy"
    ]


LOW, FULL = "bfloat16", "float32"


def test_a_product_runs_low_with_half_the_bytes_and_the_same_flops():
    changed = cast(LINEAR, STEP)
    assert dtypes(changed, "addmm") == ([LOW] * 3, [LOW])
    assert changed.ops[0].bytes == LINEAR.bytes // 2
    assert changed.ops[0].flops == LINEAR.flops


def test_weights_are_cast_there_and_their_gradients_back():
    changed = cast(replace(LINEAR, count=12), STEP)
    assert (Phase.FORWARD, (WIDTH, WIDTH), FULL, LOW, 12) in casts(changed)
    assert (Phase.BACKWARD, (WIDTH, WIDTH), LOW, FULL, 12) in casts(changed)
    of_weight = next(
        o for o in changed.ops if o.name == "aten::_to_copy" and o.inputs[0].shape == WEIGHT.shape
    )
    assert of_weight.bytes == 6 * WIDTH * WIDTH
    assert of_weight.flops == 0


def test_the_optimizer_is_left_alone():
    assert STEP in cast(LINEAR, STEP).ops


@pytest.mark.parametrize("name", ["gelu", "_scaled_dot_product_efficient_attention"])
def test_what_follows_a_product_takes_its_dtype_without_a_cast(name):
    inputs = [X] if name == "gelu" else [X, X, X]
    changed = cast(LINEAR, op(name, inputs, [X]), STEP)
    assert dtypes(changed, name) == ([LOW] * len(inputs), [LOW])
    assert casts(changed) == casts(cast(LINEAR, STEP))


NORM = op("native_layer_norm", [X, BIAS, BIAS], [X])
NORM_BACK = op("native_layer_norm_backward", [X, X, BIAS], [X], Phase.BACKWARD)
WORDS = op("embedding", [tensor(1000, WIDTH), tensor(ROWS, dtype="int64")], [X])
SCALAR, SQUARE = tensor(), op("addmm", [BIAS, WEIGHT, WEIGHT], [WEIGHT])
LOSS = op("nll_loss_forward", [X, tensor(ROWS, dtype="int64")], [SCALAR])
TO_WEIGHT = op("mm", [tensor(WIDTH, ROWS), X], [WEIGHT], Phase.BACKWARD)
DROPOUT = op("native_dropout", [X], [X, tensor(ROWS, WIDTH, dtype="bool")])


@pytest.mark.parametrize(
    ("before", "own", "inputs", "outputs"),
    [
        # A batch norm keeps the dtype of its input.
        ([LINEAR], op("cudnn_batch_norm", [X, BIAS, BIAS], [X]), [LOW, FULL, FULL], [LOW]),
        # A residual of full precision promotes the sum, one of products alone stays low.
        ([WORDS, NORM, LINEAR], op("add", [X, X], [X]), [LOW, FULL], [FULL]),
        ([LINEAR, LINEAR], op("add_", [X, X], [X]), [LOW, LOW], [LOW]),
        # An added vector is a bias, and a factor promotes.
        ([LINEAR], op("add", [X, BIAS], [X]), None, [LOW]),
        ([LINEAR], op("mul", [X, BIAS], [X]), None, [FULL]),
        # A backward operator runs as its forward did.
        ([NORM, LINEAR], NORM_BACK, None, [FULL]),
        ([LINEAR, op("relu_", [X], [X])], op("threshold_backward", [X, X], [X], Phase.BACKWARD),
         [LOW, LOW], [LOW]),
        # A loss reads the cast that its forward pass kept.
        ([LINEAR, LOSS], op("nll_loss_backward", [SCALAR, X], [X], Phase.BACKWARD), [FULL, FULL], [FULL]),
        # Masks and indices keep theirs; what the host sends is as the host has it.
        ([LINEAR], DROPOUT, None, [LOW, "bool"]),
        ([LINEAR], op("h2d_copy", [X], [X]), [FULL], [FULL]),
        # A result may have a parameter's shape; gradients of parameters are full when they are summed.
        ([SQUARE], op("relu", [WEIGHT], [WEIGHT]), [LOW], [LOW]),
        ([LINEAR, TO_WEIGHT, TO_WEIGHT], op("add", [WEIGHT, WEIGHT], [WEIGHT], Phase.BACKWARD),
         [FULL, FULL], [FULL]),
        # Without inputs it is left alone.
        ([LINEAR], op("native_batch_norm", [], []), [], []),
    ],
    ids=lambda value: value.name if isinstance(value, Op) else "",
)  # fmt: skip
def test_dtypes_of_inputs_and_outputs(before, own, inputs, outputs):
    found = dtypes(cast(*before, own, STEP), own.name.removeprefix("aten::"))
    assert inputs in (None, sorted(found[0]), found[0])
    assert found[1] == outputs


def test_layer_norm_and_the_loss_stay_full_with_casts_both_ways():
    changed = cast(LINEAR, NORM, LINEAR, STEP)
    assert dtypes(changed, "native_layer_norm") == ([FULL] * 3, [FULL])
    assert (Phase.FORWARD, (ROWS, WIDTH), LOW, FULL, 1) in casts(changed)
    assert (Phase.BACKWARD, (ROWS, WIDTH), FULL, LOW, 1) in casts(changed)
    # And down again for the product behind it.
    assert (Phase.FORWARD, (ROWS, WIDTH), FULL, LOW, 1) in casts(changed)[1:]


def test_float16_adds_the_scalers_pass_over_the_gradients():
    (unscale,) = (o for o in cast(LINEAR, STEP, dtype="float16").ops if "_amp_" in o.name)
    assert unscale.phase is Phase.OPTIMIZER
    assert unscale.bytes == 2 * 10**8  # reads and writes make_trace's gradients
    assert not any("_amp_" in o.name for o in cast(LINEAR, STEP).ops)


def test_precision_tells_the_dtype_and_keeps_the_flags():
    precision = Precision(amp_dtype=None, tf32_matmul=True, tf32_cudnn=False)
    changed = cast(LINEAR, STEP, precision=precision)
    assert changed.precision == replace(precision, amp_dtype=LOW)


def test_activations_shrink_as_results_do_and_copies_are_kept_beside_them():
    memory = make_trace().memory
    to_operand = op("mm", [X, WEIGHT], [X], Phase.BACKWARD)
    to_weight = op("mm", [tensor(WIDTH, ROWS), X], [WEIGHT], Phase.BACKWARD)
    of_layer = memory.activation_bytes - 3 * 4 * ROWS * WIDTH  # its operand, and a gradient there and back
    changed = cast(LINEAR, to_operand, to_weight, STEP).memory
    copied = 2 * WIDTH * WIDTH
    assert changed.activation_bytes == of_layer // 2 + 3 * 2 * ROWS * WIDTH + copied


def test_a_factors_gradient_reads_what_the_forward_pass_was_given():
    scale = op("mul", [X, tensor(1, WIDTH)], [X])
    scale_back = op("mul", [X, X], [X], Phase.BACKWARD)
    changed = cast(
        LINEAR, scale, scale_back, op("_foreach_add_", [WEIGHT, BIAS, tensor(1, WIDTH)], [], Phase.OPTIMIZER)
    )
    backward = next(o for o in changed.ops if o.name == "aten::mul" and o.phase is Phase.BACKWARD)
    assert [t.dtype for t in (*backward.inputs, *backward.outputs)] == [FULL, LOW, FULL]


def test_a_recurrent_layers_reserve_halves_with_its_activations():
    reserve = tensor(4096, dtype="uint8")
    layer = op("_cudnn_rnn", [X, WEIGHT], [X, reserve])
    (found,) = (o for o in cast(layer, STEP).ops if o.name == "aten::_cudnn_rnn")
    assert found.outputs[1] == tensor(2048, dtype="uint8")


def test_what_a_profiler_left_out_stays_unknown():
    unknown = MemoryUse(**dict.fromkeys(asdict(make_trace().memory)))
    assert cast(LINEAR, STEP, memory=unknown, dtype="float16").memory == unknown


def test_what_was_measured_in_full_precision_is_dropped():
    sizes = dict.fromkeys(("grid", "block"), (1, 1, 1))
    kernel = Kernel(name="gemm", registers_per_thread=None, shared_bytes=None, duration_s=1.0, **sizes)
    measured = replace(LINEAR, measured_s=1.0, kernels=(kernel,))
    stepped = replace(STEP, measured_s=2.0)
    changed = cast(measured, stepped, iteration_s=3.0)
    assert changed.iteration_s is None
    assert (changed.ops[0].measured_s, changed.ops[0].kernels) == (None, ())
    assert changed.ops[1].measured_s == 2.0


@pytest.mark.parametrize(
    "trace",
    [
        make_trace(precision=Precision(amp_dtype="float16", tf32_matmul=False, tf32_cudnn=True)),
        make_trace(ops=(op("gelu", [X], [X]), STEP)),
        make_trace(ops=(op("mm", [X, WEIGHT], [X], Phase.OPTIMIZER),)),
        make_trace(ops=(op("mm", [], []),)),
    ],
    ids=["autocast already", "no product", "a product of the optimizer", "shapes unknown"],
)
def test_nothing_to_change(trace):
    assert under_autocast(trace, LOW) is None


def test_what_the_script_itself_converts_stays_so():
    half = tensor(ROWS, WIDTH, dtype="float16")
    widening = replace(op("_to_copy", [X], [X]), inputs=(half,))
    narrowing = replace(op("_to_copy", [X], [X]), outputs=(half,))
    for own in (widening, narrowing):
        assert [t.dtype for t in cast(own, LINEAR, STEP).ops[0].outputs] == [own.outputs[0].dtype]
    assert dtypes(cast(LINEAR, narrowing, STEP), "_to_copy") == ([LOW], ["float16"])
