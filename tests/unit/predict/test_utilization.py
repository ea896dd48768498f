"""Samples a second and model FLOPs utilization, in figures worked out by hand."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import WHOLE, Collective, Op, Phase, Split, TensorSpec, Trace
from advisor.operators.family import data_sheet_flops_per_s
from advisor.predict.iteration import predict_counts
from tests.builders import make_estimate, make_gpu, make_op, make_trace
from tests.unit.predict.footprint.scripts import make_transformer

TERA = 10**12
GPU = make_gpu(
    vector_flops_per_s={"fp32": 10.0 * TERA, "fp16": 20.0 * TERA, "fp64": 5.0 * TERA},
    tensor_flops_per_s={"tf32": 50.0 * TERA, "bf16": 100.0 * TERA},
)


def product(
    phase: Phase, name: str = "aten::mm", *, rows: int = 8, dtype: str = "bfloat16", **facts: Any
) -> Op:
    left = TensorSpec(shape=(rows, 16), dtype=dtype, stride=(16, 1))
    right = TensorSpec(shape=(16, 16), dtype=dtype, stride=(1, 16))
    return replace(make_op(name, flops=TERA, phase=phase, **facts), inputs=(left, right))


FORWARD, BACKWARD = product(Phase.FORWARD), product(Phase.BACKWARD, rows=4, count=2)


def model_flops(*ops: Op) -> float | None:
    (estimate,) = predict_counts(make_trace(ops=ops), GPU, [1])
    return estimate.work.model_flops


def test_products_of_both_passes_count_and_nothing_else():
    beside = [make_op("aten::gelu", flops=TERA), product(Phase.OPTIMIZER)]
    assert model_flops(FORWARD, BACKWARD, *beside) == 3 * TERA
    assert model_flops(make_op("aten::gelu", flops=TERA)) is None


def test_what_the_backward_pass_computes_again_does_not_count():
    again = product(Phase.BACKWARD)
    assert model_flops(FORWARD, BACKWARD, again) == 3 * TERA
    assert model_flops(FORWARD, BACKWARD, replace(again, count=3)) == 5 * TERA, "twice more than forward"
    transposed = tuple(replace(tensor, stride=(16, 1)) for tensor in again.inputs)
    assert model_flops(FORWARD, BACKWARD, replace(again, inputs=transposed)) == 4 * TERA, "another product"
    unknown = tuple(replace(tensor, stride=None) for tensor in again.inputs)
    alike = [replace(one, inputs=unknown) for one in (FORWARD, again)]
    assert model_flops(*alike) == 2 * TERA, "of unknown strides nothing is known to be the same"


def test_attention_that_makes_its_scores_again_counts_four_of_five_products():
    qkv = (TensorSpec(shape=(1, 4, 64, 32), dtype="bfloat16", stride=(8192, 2048, 32, 1)),) * 4
    name = "aten::_scaled_dot_product_flash_attention_backward"
    attention = replace(make_op(name, flops=5 * TERA, phase=Phase.BACKWARD), inputs=qkv)
    assert model_flops(attention) == 4 * TERA


def test_utilization_is_of_the_peak_of_what_most_products_ask_for():
    ops = (FORWARD, BACKWARD, product(Phase.FORWARD, dtype="float32"))
    (estimate,) = predict_counts(make_trace(ops=ops), GPU, [1])
    assert estimate.work.peak_flops_per_s == 100 * TERA
    assert estimate.mfu == pytest.approx(4 / 100 / estimate.iteration_s.p50)


@pytest.mark.parametrize(
    ("wanted", "peak"), [("bf16", 100), ("tf32", 50), ("fp32", 10), ("fp16", 20), ("fp8", 10), ("fp64", 5)]
)
def test_where_a_gpu_lacks_a_precision_its_fp32_counts(wanted, peak):
    assert data_sheet_flops_per_s(wanted, GPU) == peak * TERA


def samples(trace: Trace, num_gpus: int, share: float = 1.0, split: Split = WHOLE) -> float | None:
    (estimate,) = predict_counts(trace, GPU, [num_gpus], share_of=lambda _: share, split=split)
    rate = estimate.samples_per_s
    return None if rate is None else rate * estimate.iteration_s.p50


def test_samples_are_those_of_all_copies():
    trace = make_trace(ops=(FORWARD, BACKWARD))
    assert samples(trace, 1) == pytest.approx(64)
    assert samples(trace, 8) == pytest.approx(512)
    assert samples(trace, 8, share=1 / 8) == pytest.approx(64), "the global batch is held"
    assert samples(replace(trace, batch_size=None), 8) is None
    divided = make_transformer()
    assert divided.batch_size is not None
    of_four_copies = samples(divided, 8, split=Split(pipeline=2))
    assert of_four_copies == pytest.approx(4 * divided.batch_size)


def test_ranks_that_may_share_their_samples_say_nothing():
    streams = (Collective(kind="all_reduce", num_bytes=1000, world_size=8, count=4),)
    trace = make_trace(ops=(FORWARD, BACKWARD), world_size=8, is_sharded=True, collectives=streams)
    assert samples(trace, 8) is None


@given(st.floats(0.01, 10.0), st.floats(1.01, 10.0))
def test_who_takes_longer_does_less_a_second(iteration_s, factor):
    (work,) = [one.work for one in predict_counts(make_trace(ops=(FORWARD, BACKWARD)), GPU, [1])]
    fast, slow = (make_estimate(iteration=s, work=work) for s in (iteration_s, iteration_s * factor))
    assert slow.mfu is not None
    assert slow.samples_per_s is not None
    assert fast.mfu == pytest.approx(factor * slow.mfu)
    assert fast.samples_per_s == pytest.approx(factor * slow.samples_per_s)
