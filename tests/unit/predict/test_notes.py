"""What an estimate rests on: short, without figures of one GPU, and of what was used alone."""

from dataclasses import replace

import pytest

from advisor.core.findings import Finding, about_estimates
from advisor.core.findings.about_options import RemovedByAttention, Unknown
from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import Op, Phase
from advisor.predict.iteration import predict
from advisor.report.words import sentences
from tests.attention import make_attention
from tests.builders import make_op, make_trace
from tests.findings import among, said
from tests.recordings import make_measurement
from tests.recurrent import make_layers

LEARNED_OP = make_measurement("aten::add").op


def assumptions(gpu: str, *ops: Op) -> tuple[Finding, ...]:
    return predict(make_trace(ops=ops), resolve_gpu(gpu)).assumptions


def codes(findings: tuple[Finding, ...]) -> set[object]:
    return among(findings)


def constants(findings: tuple[Finding, ...]) -> list[str]:
    named = sentences(one for one in findings if isinstance(one, about_estimates.RooflineConstants))
    return [text.removeprefix("roofline constants, ") for text in named]


@pytest.mark.parametrize(("gpu", "is_refused"), [("T4", True), ("A100-SXM-80GB", False), ("MI300X", False)])
def test_attention_that_no_allowed_kernel_can_run_is_told(gpu, is_refused):
    ops = (make_attention(dtype="float16"), make_attention(dtype="float16", size=128, allowed=("flash",)))
    told = [one for one in assumptions(gpu, *ops, *ops) if isinstance(one, RemovedByAttention)]
    assert len(told) == is_refused
    if told:
        assert "flash alone" in said(told)
        assert "T4 (float16, heads of 128)" in said(told)


def test_words_of_a_foreign_trace_are_no_backends():
    notes = assumptions("T4", make_attention(dtype="float16", allowed=("flash", "\x1b[31m" * 1000)))
    assert [one.facts["backends"] for one in notes if isinstance(one, RemovedByAttention)] == [["flash"]]


@pytest.mark.parametrize(
    ("gpu", "op", "is_unfused"),
    [
        ("T4", make_attention(dtype="bfloat16"), True),
        ("A100-SXM-80GB", make_attention(dtype="bfloat16"), False),
        ("T4", make_attention(dtype="float16"), False),
        ("T4", make_attention(dtype="float16", allowed=("flash", "math")), True),
        ("T4", make_attention(dtype="bfloat16", allowed=("flash",)), False),  # it is refused
        ("MI300X", make_attention(dtype="bfloat16"), False),
    ],
)
def test_attention_that_no_fused_kernel_runs_is_told(gpu, op, is_unfused):
    assert (about_estimates.AttentionUnfused in codes(assumptions(gpu, op))) is is_unfused


STEPWISE = about_estimates.RatesFrom(of="step-by-step")
RECURRENT = {STEPWISE, about_estimates.RecurrentOfUnknownSize}


def test_constants_that_were_not_used_are_not_named():
    notes = assumptions("V100-PCIE-32GB", make_op("aten::mm", dtype="bfloat16", flops=10**13))
    assert constants(notes) == ["fitted to measurements on this GPU: gemm (fp32)"]
    notes = assumptions("V100-PCIE-32GB", make_op("aten::sum", num_bytes=10**9))
    assert constants(notes) == ["fitted to measurements on this GPU: streaming"]


@pytest.mark.parametrize(
    ("op", "note"),
    [
        (make_layers(dtype="float16"), STEPWISE),
        (make_op("aten::_cudnn_rnn", flops=10**13, dtype="float16"), about_estimates.RecurrentOfUnknownSize),
    ],
)
def test_recurrent_layers_rest_on_the_rate_of_products(op, note):
    notes = assumptions("T4", op)
    assert constants(notes) == ["fitted to measurements on this GPU: gemm (fp16)"]
    assert codes(notes) & RECURRENT == {note}
    assert "recurrent layers" in said(notes)


def test_both_kinds_of_recurrent_layers_are_told_and_single_cells_are_element_wise():
    unknown = make_op("aten::_cudnn_rnn_backward", flops=10**13)
    notes = assumptions("T4", make_layers(), unknown, make_op("aten::_thnn_fused_lstm_cell"))
    assert codes(notes) >= RECURRENT
    assert not codes(assumptions("T4", make_op("aten::_thnn_fused_lstm_cell"))) & RECURRENT


def test_recurrent_layers_that_were_measured_are_not_modelled():
    op = replace(make_layers(), measured_s=1e-3)
    trace = make_trace(ops=(op,), origin_gpu="T4", backend="cuda")
    assert not codes(predict(trace, resolve_gpu("T4")).assumptions) & RECURRENT
    assert STEPWISE in codes(predict(trace, resolve_gpu("L4")).assumptions)


def test_where_all_is_learned_the_roofline_is_not_named():
    notes = assumptions("T4", LEARNED_OP)
    assert about_estimates.RatesFrom(of="learned") in codes(notes)
    assert "roofline" not in said(notes)


def test_families_that_no_network_knows_are_named_and_mixed_ones_told_apart():
    reduction = make_op("aten::sum", num_bytes=10**9)
    optimizer = make_op("aten::_foreach_add_", num_bytes=10**8, phase=Phase.OPTIMIZER)
    notes = assumptions("T4", LEARNED_OP, reduction, optimizer)
    assert "by the roofline, not learned: some element-wise, optimizer" in sentences(notes)


def test_gpus_that_were_not_measured_say_so():
    assert Unknown(what="board") in codes(assumptions("L4", LEARNED_OP))
    assert Unknown(what="board") not in codes(assumptions("T4", LEARNED_OP))


def test_all_gpus_of_the_catalog_share_most_of_it_and_keep_it_short():
    ops = (*make_trace().ops, LEARNED_OP, make_op("aten::sum", num_bytes=10**9))
    trace = make_trace(ops=ops)
    notes = [predict(trace, spec).assumptions for spec in load_gpus().values()]
    distinct = {text for assumptions in notes for text in sentences(assumptions)}
    assert len(distinct) < 20 < len(notes)
    assert max(map(len, distinct)) <= 110
