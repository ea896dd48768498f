"""Published throughput: which rows are meant, and what is predicted of them."""

import csv
from dataclasses import replace

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.predict.iteration import predict
from research import published
from research.published import CASES, Case, as_in_containers, mean_error, scores, table
from tests.builders import make_trace
from tests.published import recorded_trace, same_work
from tests.shared import SHARED, needs_shared

TRACE = make_trace()
CASE = Case(
    name="Tiny",
    gpu="V100-SXM-16GB",
    build=lambda: TRACE,
    units=8,
    file="table.csv",
    where=(("model", "Tiny"), ("n_gpus", "1")),
    column="throughput",
    fitted=False,
)


@pytest.fixture
def folder(tmp_path):
    rows = [("model", "n_gpus", "throughput"), ("Tiny", "1", "10"), ("Tiny", "1", "30"), ("Tiny", "8", "99")]
    with (tmp_path / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return tmp_path


def test_a_row_is_found_by_its_columns_and_several_are_averaged(folder):
    assert published.published(CASE, folder) == 20
    assert published.published(replace(CASE, where=(("n_gpus", "8"),)), folder) == 99


def test_no_such_row(folder):
    with pytest.raises(LookupError, match="Huge"):
        published.published(replace(CASE, where=(("model", "Huge"),)), folder)


def test_the_prediction_is_units_over_seconds_and_errors_are_signed(folder, monkeypatch):
    fitted = replace(CASE, name="Fitted", fitted=True)
    monkeypatch.setattr(published, "CASES", (CASE, fitted))
    rows = list(scores(folder))
    interval = predict(TRACE, resolve_gpu(CASE.gpu)).iteration_s
    assert rows[0].predicted == pytest.approx(8 / interval.p50)
    assert (rows[0].low, rows[0].high) == pytest.approx((8 / interval.p90, 8 / interval.p10))
    assert rows[0].error == pytest.approx(8 / interval.p50 / 20 - 1)
    # Only what fitted nothing is scored.
    wrong = replace(rows[1], predicted=1e9)
    assert mean_error([rows[0], wrong]) == pytest.approx(abs(rows[0].error))
    assert table(rows).splitlines()[-1].endswith("| fitted |")


def test_containers_let_tf32_replace_fp32_everywhere():
    precision = as_in_containers(TRACE).precision
    assert (precision.tf32_matmul, precision.tf32_cudnn, precision.amp_dtype) == (True, True, None)


@pytest.mark.shared
@needs_shared
def test_every_case_names_rows_of_the_published_tables():
    folder = SHARED / "measurements" / "third_party"
    figures = {(case.name, case.gpu): published.published(case, folder) for case in CASES}
    assert len(figures) == len(CASES)
    assert figures["BERT-large 128 tokens TF32", "A100-SXM-80GB"] == 317
    assert figures["BERT-large fine-tuning AMP-FP16", "V100-SXM-32GB"] == 52
    assert figures["ResNet-50 FP32", "V100-SXM-16GB"] == 367


@pytest.mark.torch
def test_the_units_of_networks_are_those_of_their_modules():
    pytest.importorskip("torch")
    from research import gnmt, networks, transformer_xl

    assert published._XL_LENGTH == transformer_xl.LENGTH
    assert networks.GNMT_LENGTH == gnmt.LENGTH


@pytest.mark.torch
@pytest.mark.usefixtures("warm_children")
@needs_shared
def test_a_recorded_gpt_is_what_profiling_gives():
    """Another is profiled in tests/end_to_end/test_accuracy.py."""
    case = next(case for case in CASES if case.name == "GPT 350m bf16")
    assert same_work(case.build()) == recorded_trace(case)
