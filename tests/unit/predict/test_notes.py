"""What an estimate rests on: short, without figures of one GPU, and of what was used alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import Op, Phase
from advisor.operators.recurrent import STEPWISE, UNKNOWN_STEPS
from advisor.predict.iteration import predict
from advisor.predict.notes import LEARNED, UNSEEN
from tests.builders import make_op, make_trace
from tests.recordings import make_measurement
from tests.recurrent import make_layers

LEARNED_OP = make_measurement("aten::add").op


def assumptions(gpu: str, *ops: Op) -> tuple[str, ...]:
    return predict(make_trace(ops=ops), resolve_gpu(gpu)).assumptions


def constants(texts: tuple[str, ...]) -> list[str]:
    return [text.removeprefix("roofline constants, ") for text in texts if text.startswith("roofline")]


def test_constants_that_were_not_used_are_not_named() -> None:
    texts = assumptions("V100-PCIE-32GB", make_op("aten::mm", dtype="bfloat16", flops=10**13))
    assert constants(texts) == ["fitted to measurements on this GPU: gemm (fp32)"]
    texts = assumptions("V100-PCIE-32GB", make_op("aten::sum", num_bytes=10**9))
    assert constants(texts) == ["fitted to measurements on this GPU: streaming"]


@pytest.mark.parametrize(
    ("op", "note"),
    [
        (make_layers(dtype="float16"), STEPWISE),
        (make_op("aten::_cudnn_rnn", flops=10**13, dtype="float16"), UNKNOWN_STEPS),
    ],
)
def test_recurrent_layers_rest_on_the_rate_of_products(op: Op, note: str) -> None:
    texts = assumptions("T4", op)
    assert constants(texts) == ["assumed for any GPU: gemm (fp16)"]
    assert [text for text in texts if "recurrent layers" in text] == [note]
    assert "not measured" in note


def test_both_kinds_of_recurrent_layers_are_told_and_single_cells_are_element_wise() -> None:
    unknown = make_op("aten::_cudnn_rnn_backward", flops=10**13)
    texts = assumptions("T4", make_layers(), unknown, make_op("aten::_thnn_fused_lstm_cell"))
    assert {STEPWISE, UNKNOWN_STEPS} <= set(texts)
    assert not {STEPWISE, UNKNOWN_STEPS} & set(assumptions("T4", make_op("aten::_thnn_fused_lstm_cell")))


def test_recurrent_layers_that_were_measured_are_not_modelled() -> None:
    op = replace(make_layers(), measured_s=1e-3)
    trace = make_trace(ops=(op,), origin_gpu="T4", backend="cuda")
    assert STEPWISE not in predict(trace, resolve_gpu("T4")).assumptions
    assert STEPWISE in predict(trace, resolve_gpu("L4")).assumptions


def test_where_all_is_learned_the_roofline_is_not_named() -> None:
    texts = assumptions("T4", LEARNED_OP)
    assert LEARNED in texts
    assert not any("roofline" in text for text in texts)


def test_families_that_no_network_knows_are_named_and_mixed_ones_told_apart() -> None:
    reduction = make_op("aten::sum", num_bytes=10**9)
    optimizer = make_op("aten::_foreach_add_", num_bytes=10**8, phase=Phase.OPTIMIZER)
    texts = assumptions("T4", LEARNED_OP, reduction, optimizer)
    assert "by the roofline, not learned: some element-wise, optimizer" in texts


def test_gpus_that_were_not_measured_say_so() -> None:
    assert UNSEEN in assumptions("L4", LEARNED_OP)
    assert UNSEEN not in assumptions("T4", LEARNED_OP)


def test_all_gpus_of_the_catalog_share_most_of_it_and_keep_it_short() -> None:
    ops = (*make_trace().ops, LEARNED_OP, make_op("aten::sum", num_bytes=10**9))
    trace = make_trace(ops=ops)
    found = [predict(trace, spec).assumptions for spec in load_gpus().values()]
    distinct = {text for texts in found for text in texts}
    assert len(distinct) < 20 < len(found)
    assert max(map(len, distinct)) <= 110
