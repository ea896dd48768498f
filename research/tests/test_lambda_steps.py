"""Lambda Labs' steps: what the traces do, by FLOPs and by bytes of weights, and how rows are judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Interval, Phase
from research.lambda_steps import Judged, Row, Work, judge, page, read_rows, relative_errors, trace_of
from research.training.board_steps import is_fitted, lambda_steps

HEADER = (
    "system,gpu,num_gpus,model,precision,batch_per_gpu,memory_format,amp_level,note,software,"
    "throughput,throughput_p10,throughput_p90"
)
TABLE = f"""{HEADER}
a,A100-SXM-40GB,1,resnet50,fp16,512,nchw,,data synthetic,NGC 22.10,1000,,
b,A100-SXM-40GB,1,resnet50,fp16,512,nchw,,data synthetic,NGC 22.10,2000,,
c,A100-SXM-40GB,1,resnet50,fp16,512,nchw,,data synthetic,NGC 22.10,1600,,
a,A100-SXM-40GB,1,resnet50,fp16,768,nchw,,data pytorch,NGC 22.10,900,,
e,A100-SXM-40GB,1,resnet50,fp16,512,nchw,,data dali,NGC 22.10,500,400,600
a,A100-SXM-40GB,2,resnet50,fp16,512,nchw,,data synthetic,NGC 22.10,2500,,
a,A100-SXM-40GB,1,SSD,fp16,,,O2,,NGC 22.10,400,,
a,RTX-2070-MaxQ,1,resnet50,fp16,64,,O2,data dali,NGC 22.10,300,,
a,A40,1,gnmt,fp32 (TF32 where the GPU has it),512,,,,NGC 22.10,50000,,
a,A40,1,resnet50,fp16,64,,O2,data dali,NGC 22.10,800,,
"""
RESNET, BERT = Work("resnet50", "fp16"), Work("bert_large_squad", "o2")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "lambda_steps.csv"
    path.write_text(TABLE)
    return path


def test_rows_are_medians_of_one_board_without_loaders(table: Path) -> None:
    rows = {(row.work, row.gpu.name): row for row in read_rows(table)}
    assert set(rows) == {
        (RESNET, "A100-SXM-40GB"), (Work("gnmt", "tf32"), "A40"), (Work("resnet50", "o2"), "A40")
    }  # fmt: skip
    assert rows[RESNET, "A100-SXM-40GB"].step_s == pytest.approx(512 / 1600)
    assert rows[Work("gnmt", "tf32"), "A40"].step_s == pytest.approx(512 * 56 * 0.78 / 50000)


# Multiply-adds of a sample's forward pass: ResNet-50's 4.09e9 (He et al.); of BERT the weights of 24 or 12
# layers by 384 tokens, and its scores.
@pytest.mark.parametrize(
    ("work", "batch", "macs", "parameters"),
    [
        (RESNET, 512, 4.09e9, 25.6e6),
        (BERT, 64, 384 * (302e6 + 24 * 2 * 384 * 1024), 334e6),
        (Work("bert_base_squad", "tf32"), 64, 384 * (85e6 + 12 * 2 * 384 * 768), 109e6),
    ],
)
def test_steps_do_what_the_networks_are_known_to(
    work: Work, batch: int, macs: float, parameters: float
) -> None:
    trace = trace_of(work, batch)
    forward = sum(
        op.flops * op.count
        for op in trace.ops
        if op.phase is Phase.FORWARD and op.name.endswith(("::convolution", "mm"))
    )
    assert forward == pytest.approx(2 * batch * macs, rel=0.05)
    weight_bytes = 2 + 4 if work.precision == "o2" else 4  # masters count
    assert trace.memory.parameter_bytes == pytest.approx(weight_bytes * parameters, rel=0.05)
    # Of what the optimizer steps: of masters, where there are any.
    assert trace.memory.gradient_bytes == pytest.approx(4 * parameters, rel=0.05)


def test_half_models_keep_masters_of_full_precision() -> None:
    dtypes = {op.inputs[0].dtype for op in trace_of(BERT, 64).ops if "adam" in op.name}
    assert dtypes == {"float32"}


def test_a_batch_lies_on_the_line_through_the_nearest_two() -> None:
    gpu = resolve_gpu("A100-SXM-40GB")
    rows = [Row(work=BERT, gpu=gpu, batch=batch, step_s=1.0, software="") for batch in (8, 36, 64)]
    low, middle, high = (one.predicted for one in judge(rows))
    assert middle.p50 == pytest.approx((low.p50 + high.p50) / 2)
    assert middle.p10 < middle.p50 < middle.p90


def _judged(name: str, predicted_s: float, work: Work = RESNET) -> Judged:
    row = Row(work=work, gpu=resolve_gpu(name), batch=512, step_s=1.0, software="")
    return Judged(row=row, predicted=Interval(p10=0.4, p50=predicted_s, p90=1.5))


def test_what_boards_have_in_common_is_no_error_of_their_ratio() -> None:
    both = [_judged("A100-SXM-40GB", 0.8), _judged("A40", 0.8), _judged("A40", 1.1, BERT)]
    assert relative_errors(both) == pytest.approx([0.0])
    assert relative_errors([*both, _judged("RTX-3090", 1.2)]) == pytest.approx([0.0, 0.5])


def test_the_page_names_the_worst() -> None:
    text = page([_judged("A100-SXM-40GB", 0.5), _judged("A40", 1.0)])
    assert "| all | 2 | 25.0 | 25.0 | 50.0 | -25.0 | 100% |" in text
    assert text.index("batch 512, A100-SXM-40GB: -50%") < text.index("batch 512, A40: +0%")


def test_a_board_that_is_left_out_trains_nothing(table: Path) -> None:
    steps = lambda_steps(table)
    assert [(step.gpu.name, step.time_s) for step in steps] == [
        ("A100-SXM-40GB", pytest.approx(0.32)), ("A40", pytest.approx(0.08))
    ]  # fmt: skip
    assert [step.gpu.name for step in lambda_steps(table, ["A100-SXM-40GB"])] == ["A40"]
    assert (is_fitted("vgg16"), is_fitted("resnet50"), is_fitted("bert_large_384")) == (True, False, False)
