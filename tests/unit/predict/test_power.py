"""What a limit of power costs, samples a second, and how much of the peak a model uses."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import PowerLimited
from advisor.core.gpus import resolve_gpu
from advisor.core.limits import MAX_W, MIN_W
from advisor.core.values import (
    WHOLE,
    Collective,
    Interval,
    IterationEstimate,
    Layout,
    Op,
    Phase,
    Split,
    TensorSpec,
    Trace,
)
from advisor.operators.family import data_sheet_flops_per_s
from advisor.predict.iteration import predict, predict_counts
from advisor.predict.knowledge import write_calibration
from advisor.predict.utilization import slowdown
from advisor.report.words import sentence
from tests.builders import make_estimate, make_gpu, make_op, make_trace
from tests.unit.predict.footprint.scripts import make_transformer

H100 = resolve_gpu("H100-SXM-80GB")
DENSE = make_op(flops=10**13, num_bytes=10**8)
STREAM = make_op("aten::add.Tensor", flops=10**8, num_bytes=10**10)


def of(*ops: Op, limit_w: float | None, **changes: object) -> IterationEstimate:
    trace: Trace = make_trace(ops=ops, **changes)
    return predict(trace, H100, Layout(gpus_per_node=1, power_limit_w=limit_w))


def width(interval: Interval) -> float:
    return interval.p90 / interval.p10


def test_what_cores_bind_takes_longer_and_is_less_sure():
    whole, limited = of(DENSE, limit_w=None), of(DENSE, limit_w=500)
    assert limited.iteration_s.p50 == pytest.approx(slowdown(H100, 500) * whole.iteration_s.p50)
    assert slowdown(H100, 500) == pytest.approx(1 + 0.49 * 0.4**1.75)
    assert width(limited.iteration_s) > width(whole.iteration_s)


def test_what_memory_binds_takes_as_long_and_is_as_sure():
    assert of(STREAM, limit_w=250).iteration_s == of(STREAM, limit_w=None).iteration_s


@pytest.mark.parametrize("limit_w", [700.0, 900.0])
def test_a_limit_of_the_data_sheet_or_above_changes_nothing(limit_w):
    limited = of(DENSE, STREAM, limit_w=limit_w)
    assert limited.layout.power_limit_w == limit_w
    assert replace(limited, layout=Layout(gpus_per_node=1)) == of(DENSE, STREAM, limit_w=None)


@given(less=st.floats(MIN_W, MAX_W), more=st.floats(MIN_W, MAX_W))
def test_more_power_is_never_slower(less, more):
    less, more = sorted((less, more))
    slow, fast = of(DENSE, STREAM, limit_w=less), of(DENSE, STREAM, limit_w=more)
    assert slow.iteration_s.p50 >= fast.iteration_s.p50
    assert slow.iteration_s.p90 >= fast.iteration_s.p90


def test_what_was_measured_on_the_board_was_measured_under_its_limit():
    measured = replace(DENSE, measured_s=0.1)
    changes = {"origin_gpu": "H100-SXM-80GB", "iteration_s": 0.1}
    assert (
        of(measured, limit_w=300, **changes).iteration_s == of(measured, limit_w=None, **changes).iteration_s
    )
    assert PowerLimited not in codes(of(measured, limit_w=300, **changes))


def test_what_another_board_measured_is_slower_here():
    measured = replace(DENSE, measured_s=0.1)
    there = {"origin_gpu": "A100-SXM-80GB", "iteration_s": 0.1}
    assert (
        of(measured, limit_w=300, **there).iteration_s.p50
        > of(measured, limit_w=None, **there).iteration_s.p50
    )


def test_kernels_of_this_board_told_under_its_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    before_s = of(DENSE, limit_w=300).iteration_s.p50
    write_calibration("H100-SXM-80GB", "today", {"gemm_fraction.fp32": 0.7})
    limited, whole = of(DENSE, limit_w=300), of(DENSE, limit_w=None)
    assert before_s > whole.iteration_s.p50
    assert limited.iteration_s == whole.iteration_s
    (note,) = (note for note in limited.assumptions if isinstance(note, PowerLimited))
    assert note.slowdown is None
    assert "this GPU was calibrated" in sentence(note)
    assert PowerLimited not in codes(whole)


def codes(estimate: IterationEstimate) -> set[type[Finding]]:
    return {type(note) for note in estimate.assumptions}


def test_it_is_told():
    (note,) = (note for note in of(DENSE, limit_w=500).assumptions if isinstance(note, PowerLimited))
    assert sentence(note) == (
        "each GPU may draw 500 of 700 W: what its cores bind takes 10% longer, by what other boards lose"
    )
    assert PowerLimited not in codes(of(DENSE, limit_w=None))


def test_limits_of_one_answer_do_not_mix():
    layouts = [
        Layout(gpus_per_node=count, power_limit_w=limit_w) for limit_w in (None, 400, 500) for count in (1, 8)
    ]
    together = predict_counts(make_trace(ops=(DENSE, STREAM)), H100, layouts)
    alone = [predict(make_trace(ops=(DENSE, STREAM)), H100, layout) for layout in layouts]
    assert list(together) == alone
    assert [estimate.layout for estimate in together] == layouts


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
    assert fast.mfu == pytest.approx(factor * slow.mfu)
    assert fast.samples_per_s == pytest.approx(factor * slow.samples_per_s)
