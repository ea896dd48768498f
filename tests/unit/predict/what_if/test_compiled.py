"""What a compiled step launches, and what it moves through memory."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings.about_estimates import StepCompiled
from advisor.core.findings.about_traces import CompileSeen
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Z90, Launch, Op, Phase, TensorSpec
from advisor.formats.trace_files import read_trace
from advisor.predict.interval import SIGMA_COMPILED
from advisor.predict.iteration import predict
from advisor.predict.what_if.compiled import FUSED, LEFT_SHARE, as_run, compiled, fused
from advisor.predict.what_if.precision import under_autocast
from tests.builders import make_op, make_trace

PRODUCT = make_op(flops=10**12)
GELU = make_op("aten::gelu", flops=10**6, num_bytes=10**9)
NORM_BACKWARD = make_op("aten::native_layer_norm_backward", num_bytes=10**9, phase=Phase.BACKWARD)
STEP = make_op("aten::_foreach_add_", num_bytes=10**9, phase=Phase.OPTIMIZER)
GPU = resolve_gpu("A100-SXM-80GB")
NVIDIA = GPU.vendor
WEIGHT = TensorSpec(shape=(64, 32), dtype="float32")


def _moved_bytes(ops: tuple[Op, ...]) -> int:
    return sum(op.bytes * op.count for op in ops)


def test_streams_of_the_passes_are_joined_and_nothing_else():
    ops = fused((PRODUCT, GELU, NORM_BACKWARD, STEP))
    assert (ops[0], ops[3]) == (PRODUCT, STEP)
    assert [op.bytes for op in ops[1:3]] == [int(LEFT_SHARE * 10**9)] * 2
    assert [op.name for op in ops[1:3]] == [FUSED] * 2


def test_between_products_and_norms_there_is_one_chain_at_most():
    norm = replace(NORM_BACKWARD, phase=Phase.FORWARD, count=5)
    ops = fused((replace(PRODUCT, count=10), replace(GELU, count=60), norm))
    assert [op.count for op in ops] == [10, 15, 5]
    assert ops[1].bytes * 15 == pytest.approx(LEFT_SHARE * 60 * 10**9)
    few = fused((replace(PRODUCT, count=10), replace(GELU, count=3)))
    assert [op.count for op in few] == [10, 3]


def test_a_batch_norm_takes_two_kernels_and_moves_no_more():
    batch_norm = replace(make_op("aten::cudnn_batch_norm", num_bytes=10**9), count=3)
    (made,) = fused((batch_norm,))
    assert made.count == 6
    assert made.bytes * 6 == pytest.approx(LEFT_SHARE * 3 * 10**9)


def test_casts_of_weights_stay_since_products_read_them():
    cast = replace(make_op("aten::_to_copy", num_bytes=10**6), inputs=(WEIGHT,), outputs=(WEIGHT,))
    other = replace(cast, inputs=(replace(WEIGHT, shape=(64, 33)),))
    step = replace(STEP, inputs=(WEIGHT,))
    ops = fused((PRODUCT, cast, other, step))
    assert ops[1] == cast
    assert ops[2].name == FUSED


def test_the_change_is_a_fact_that_the_prediction_acts_on():
    trace = make_trace(ops=(PRODUCT, GELU), iteration_s=1.0)
    changed = compiled(trace)
    assert (changed.ops, changed.compile_mode, changed.iteration_s) == (trace.ops, "default", None)
    assert predict(changed, GPU).device_s.p50 < predict(trace, GPU).device_s.p50
    assert StepCompiled(mode="default") in predict(changed, GPU).assumptions
    assert all(not isinstance(note, StepCompiled) for note in predict(trace, GPU).assumptions)


def test_what_compiles_already_or_has_nothing_to_fuse_gains_nothing():
    assert compiled(make_trace(ops=(PRODUCT, STEP))) is None
    assert compiled(make_trace(ops=(PRODUCT, GELU), compile_mode="max-autotune")) is None
    warned = make_trace(ops=(PRODUCT, GELU), warnings=(CompileSeen(how="ignored"),))
    assert compiled(warned) is None
    assert as_run(warned, NVIDIA) is warned
    assert compiled(replace(warned, warnings=())) is not None


@pytest.mark.parametrize(
    ("mode", "launch"),
    [
        ("default", Launch.COMPILED),
        ("max-autotune-no-cudagraphs", Launch.COMPILED),
        ("reduce-overhead", Launch.GRAPH),
        ("max-autotune", Launch.GRAPH),
        ("of a later torch", Launch.COMPILED),
    ],
)
def test_modes_with_graphs_launch_graphs(mode, launch):
    made = as_run(make_trace(ops=(PRODUCT, GELU), compile_mode=mode), NVIDIA)
    assert made.launch is launch
    assert as_run(made, NVIDIA) is made


def test_equal_operators_are_fused_once_for_all_gpus():
    trace = make_trace(ops=(PRODUCT, GELU), compile_mode="default")
    assert as_run(trace, NVIDIA).ops is as_run(replace(trace, batch_size=7), NVIDIA).ops


def test_what_no_profile_shows_is_as_wide_as_published_steps_make_it():
    trace = make_trace(ops=(replace(PRODUCT, measured_s=0.1),), origin_gpu=GPU.name)
    eager, made = (predict(each, GPU).device_s for each in (trace, replace(trace, compile_mode="default")))
    assert made.p90 / made.p50 > eager.p90 / eager.p50
    assert made.p90 / made.p50 > 1 + Z90 * SIGMA_COMPILED * 0.9


_POOL = [
    PRODUCT,
    GELU,
    NORM_BACKWARD,
    STEP,
    replace(GELU, phase=Phase.BACKWARD, count=40),
    replace(GELU, count=7),
]


@given(st.lists(st.sampled_from(_POOL), min_size=1, max_size=8))
def test_compiling_never_moves_more_nor_launches_more_nor_takes_longer(ops):
    trace = make_trace(ops=tuple(ops))
    made = as_run(replace(trace, compile_mode="reduce-overhead"), NVIDIA)
    assert _moved_bytes(made.ops) <= _moved_bytes(trace.ops)
    assert sum(op.count for op in made.ops) <= sum(op.count for op in trace.ops)
    assert 0.999 * trace.flops <= made.flops <= trace.flops
    assert predict(made, GPU).device_s.p50 <= predict(trace, GPU).device_s.p50 * (1 + 1e-9)


@given(st.sampled_from(_POOL), st.sampled_from([PRODUCT, STEP]))
def test_a_step_of_one_operator_that_is_no_stream_gains_nothing(op, alone):
    assert fused((alone,)) == (alone,)
    assert fused((alone, op))[0] == alone


@given(st.lists(st.sampled_from(_POOL), min_size=1, max_size=6))
def test_less_left_is_never_slower(ops):
    trace, times = make_trace(ops=(GELU, *ops)), []
    for share in (0.2, 0.6, 1.0):
        made = fused(trace.ops, left_share=share)
        times.append(predict(replace(trace, ops=made, launch=Launch.COMPILED), GPU).device_s.p50)
    assert times == sorted(times)


@pytest.mark.parametrize(
    "script",
    ["detector", "llama", "mnist", "train_bert", "train_gpt", "train_lstm", "train_resnet50", "unet"],
)
def test_autocast_that_is_supposed_compiles_as_autocast_that_was_recorded(script):
    """Casts that the change adds tell nothing of their operands; recorded ones are joined."""
    folder = Path(__file__).parents[3] / "what_if_traces"
    base, recorded = (read_trace(folder / f"{script}-{kind}.json.gz") for kind in ("base", "bf16"))
    supposed = compiled(under_autocast(base, "bfloat16"))
    known = compiled(recorded)
    assert supposed is not None
    assert known is not None
    assert predict(supposed, GPU).device_s.p50 == pytest.approx(predict(known, GPU).device_s.p50, rel=0.08)
