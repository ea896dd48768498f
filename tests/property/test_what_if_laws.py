"""Laws of what-ifs: they touch nothing, come only where a GPU gains, and do the same work."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core import values
from advisor.core.gpus import load_gpus
from advisor.predict.interval import widened
from advisor.predict.what_if.precision import allow_tf32, under_autocast
from advisor.predict.what_if.script_changes import CHANGES, ONE_LINE, TraceChange
from advisor.report.words import sentence
from recommender.outcome.reasons import capability
from recommender.ranking.what_ifs import LEAST_SAVING_SHARE, MOST_NEAREST, best_what_if
from tests.builders import make_gpu, make_job, make_op, make_plan, make_trace
from tests.recommending import estimates_for, recommend, with_changes

CATALOG = load_gpus()
GPUS = st.sampled_from(list(CATALOG.values()))
NAMES = [
    "aten::mm", "aten::bmm", "aten::convolution", "aten::convolution_backward", "aten::_cudnn_rnn",
    "aten::_scaled_dot_product_efficient_attention", "aten::native_layer_norm", "aten::cudnn_batch_norm",
    "aten::add.Tensor", "aten::gelu", "aten::gelu_backward", "aten::nll_loss_forward", "aten::embedding",
    "aten::_foreach_add_.List", "advisor::h2d_copy", "mylib::custom",
]  # fmt: skip
OPS = st.builds(
    make_op,
    st.sampled_from(NAMES),
    flops=st.integers(0, 10**13),
    num_bytes=st.integers(0, 10**10),
    count=st.integers(1, 100),
    dtype=st.sampled_from(["float32", "float16", "bfloat16", "float64", "int64"]),
    phase=st.sampled_from(values.Phase),
    measured_s=st.none() | st.floats(1e-6, 1),
)
PRECISIONS = st.builds(
    values.Precision,
    amp_dtype=st.none() | st.just("bfloat16"),
    tf32_matmul=st.booleans(),
    tf32_cudnn=st.booleans(),
)
TRACES = st.builds(
    lambda ops, precision: make_trace(ops=tuple(ops), precision=precision),
    st.lists(OPS, min_size=1, max_size=8),
    PRECISIONS,
)
DTYPES = st.sampled_from(["bfloat16", "float16"])


def suited_changes(gpu: values.GpuSpec) -> set[str]:
    made = (CHANGES[name](make_trace()) for name in ONE_LINE)
    return {one.name for one in made if isinstance(one, TraceChange) and one.why_not_on(gpu) is None}


def answer_for(trace: values.Trace, gpus: list[values.GpuSpec], **limits: Any) -> values.Recommendation:
    by_name = {gpu.name: gpu for gpu in gpus}
    plans = [make_plan(name, 1.0 + i) for i, name in enumerate(by_name)]
    estimates = estimates_for(trace, plans, by_name)
    rng = np.random.default_rng(0)
    return recommend(trace, estimates, by_name, plans, make_job(**limits), rng=rng)


def changed_answer(trace: values.Trace, gpus: list[values.GpuSpec], **limits: Any) -> values.Recommendation:
    by_name = {gpu.name: gpu for gpu in gpus}
    answer = answer_for(trace, gpus, **limits)
    return with_changes(answer, by_name, trace, ONE_LINE)


def total_flops(ops: tuple[values.Op, ...]) -> int:
    return sum(op.flops * op.count for op in ops)


@given(TRACES, DTYPES)
def test_a_changed_trace_does_the_same_work(trace, dtype):
    for changed in (under_autocast(trace, dtype), allow_tf32(trace)):
        if changed is not None:
            assert total_flops(changed.ops) == total_flops(trace.ops)
            assert changed.batch_size == trace.batch_size
            assert changed.collectives == trace.collectives


@given(TRACES, DTYPES)
def test_autocast_never_adds_bytes_but_those_of_casts(trace, dtype):
    changed = under_autocast(trace, dtype)
    if changed is None:
        return
    kept = changed.ops[: len(trace.ops)]
    assert [op.name for op in kept] == [op.name for op in trace.ops]
    for before, after in zip(trace.ops, kept, strict=True):
        assert math.floor(before.bytes / 2) <= after.bytes <= before.bytes
        assert after.measured_s == (before.measured_s if after == before else None)
    added = changed.ops[len(trace.ops) :]
    assert all(op.flops == 0 and op.bytes > 0 for op in added)


@given(TRACES, DTYPES)
def test_a_change_is_made_once(trace, dtype):
    once = under_autocast(trace, dtype)
    assert once is None or under_autocast(once, dtype) is None
    allowed = allow_tf32(trace)
    assert allowed is None or allow_tf32(allowed) is None


@settings(max_examples=25)
@given(TRACES, st.lists(GPUS, min_size=1, max_size=3), st.floats(0.01, 1e4))
def test_what_is_told_of_the_script_as_it_is_stays(trace, gpus, budget):
    answer = answer_for(trace, gpus, budget_usd=budget)
    changed = changed_answer(trace, gpus, budget_usd=budget)
    for name in ("job", "options", "frontier", "recommended", "rule", "warnings"):
        assert getattr(changed, name) == getattr(answer, name)


@settings(max_examples=25)
@given(TRACES, st.lists(GPUS, min_size=1, max_size=3))
def test_a_what_if_is_its_plan_changed_feasible_and_faster(trace, gpus):
    answer = changed_answer(trace, gpus)
    by_id = {option.plan.id: option for option in answer.options}
    ids = [option.plan.id for option in answer.what_ifs]
    assert len({*ids, *by_id}) == len(ids) + len(by_id)
    for option in answer.what_ifs:
        plan_id, _, name = option.plan.id.rpartition("+")
        assert option.what_if == name
        assert option.feasible
        assert option.time_s.p50 <= (1 - LEAST_SAVING_SHARE) * by_id[plan_id].time_s.p50
        assert set(option.script_changes) > set(by_id[plan_id].script_changes)


@pytest.mark.parametrize("gpu", CATALOG.values(), ids=lambda gpu: gpu.name)
def test_each_gpu_gets_what_its_tensor_cores_can_do(gpu):
    names = suited_changes(gpu)
    if not gpu.tensor_flops_per_s:
        assert not names
    if "tf32" in names:
        assert (capability(gpu) or (0, 0)) >= (8, 0)
    assert ("bf16" in names) == ("bf16" in gpu.tensor_flops_per_s)
    assert not {"bf16", "fp16"} <= names


@pytest.mark.parametrize(
    ("capability_", "tensor", "expected"),
    [
        ("6.1", {}, set()),
        ("7.0", {"fp16": 1e14}, {"fp16"}),
        ("7.5", {"tf32": 1e14, "fp16": 1e14}, {"fp16"}),
        ("8.0", {"tf32": 1e14, "fp16": 1e14, "bf16": 1e14}, {"tf32", "bf16"}),
        ("gfx942", {"tf32": 1e14, "bf16": 1e14}, {"bf16"}),
    ],
)
def test_suited_changes(capability_, tensor, expected):
    gpu = make_gpu(compute_capability=capability_, tensor_flops_per_s=tensor)
    assert suited_changes(gpu) == expected


@given(st.floats(1e-3, 1e3), st.floats(1, 3), st.floats(1, 3), st.floats(0, 1))
def test_widening_keeps_the_median_and_never_narrows(p50, low, high, sigma):
    interval = values.Interval(p10=p50 / low, p50=p50, p90=p50 * high)
    wide = widened(interval, sigma)
    assert wide.p50 == p50
    assert wide.p10 <= interval.p10 * (1 + 1e-9)
    assert wide.p90 >= interval.p90 * (1 - 1e-9)
    assert widened(interval, 0.0).p90 == pytest.approx(interval.p90)


def test_the_best_what_if_is_of_the_recommended_machine():
    answer = changed_answer(
        make_trace(), [CATALOG["A100-SXM-80GB"], CATALOG["T4"], CATALOG["P100-PCIE-16GB"]]
    )
    best = best_what_if(answer)
    assert best.same.plan.id == f"{answer.recommended}+{best.change}"
    assert not any(name.startswith("P100") for name in (option.plan.gpu for option in answer.what_ifs))


def test_there_is_no_best_without_what_ifs():
    assert best_what_if(answer_for(make_trace(), [CATALOG["T4"]])) is None


def test_a_change_can_meet_a_deadline_that_nothing_else_meets():
    trace, gpus = make_trace(), [CATALOG["A100-SXM-80GB"]]
    full_s = answer_for(trace, gpus).options[0].time_s
    answer = changed_answer(trace, gpus, deadline_s=0.6 * full_s.p50)
    assert answer.recommended is None
    best = best_what_if(answer)
    assert (best.change, best.same) == ("bf16", None)
    assert best.instead in answer.what_ifs


def test_its_estimate_is_wider_and_says_what_it_supposes():
    answer = changed_answer(make_trace(), [CATALOG["A100-SXM-80GB"]])
    assert {option.what_if for option in answer.what_ifs} == {"tf32", "bf16"}
    for option in answer.what_ifs:
        assert sentence(option.estimate.assumptions[0]).startswith("what if: ")
        interval = option.estimate.iteration_s
        assert interval.p90 / interval.p50 > math.exp(1.28 * 0.1)


def both_ways(answer: values.Recommendation, gpus: dict[str, values.GpuSpec]) -> list[values.Recommendation]:
    return [with_changes(answer, gpus, make_trace(), names) for names in (ONE_LINE, None)]


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(sorted(CATALOG)), min_size=1, max_size=6, unique=True),
    st.sampled_from([{}, {"budget_usd": 5.0}, {"pick": values.PickName.FASTEST}]),
)
def test_the_best_alone_is_the_best_of_all(names, limits):
    gpus = {name: CATALOG[name] for name in names}
    best = both_ways(answer_for(make_trace(), list(gpus.values()), **limits), gpus)
    assert best_what_if(best[0]) == best_what_if(best[1])
    assert all(option in best[0].what_ifs for option in best[1].what_ifs)


def test_so_it_is_among_more_than_are_looked_at():
    plans = [
        make_plan(
            name, (0.5 + 0.1 * i) * num_gpus, num_gpus=num_gpus, id=f"{name}-{i}-{num_gpus}", market=market
        )
        for i, (name, gpu) in enumerate(CATALOG.items())
        for num_gpus, market in ((1, values.Market.ON_DEMAND), (4, values.Market.SPOT))
        if gpu.vendor == "NVIDIA"
    ]
    assert len(plans) > 3 * MOST_NEAREST
    trace, rng = make_trace(), np.random.default_rng(0)
    answer = recommend(trace, estimates_for(trace, plans, CATALOG), CATALOG, plans, make_job(), rng=rng)
    best = both_ways(answer, CATALOG)
    assert best_what_if(best[0]) == best_what_if(best[1])
    assert len(best[1].what_ifs) <= 3 * MOST_NEAREST < len(best[0].what_ifs)
