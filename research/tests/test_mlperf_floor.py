"""MLPerf's best submissions: which rows count, and whether predictions stay below them."""

import csv
import gzip
import io
from functools import cache
from pathlib import Path

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Trace
from advisor.predict.iteration import predict
from research.mlperf_floor import BATCH_SIZE, FILE, TOLERANCE, best_submissions, floors, page
from tests.published import recorded_cases
from tests.shared import SHARED, needs_shared

PAGE = Path(__file__).parents[2] / "research" / "docs" / "accuracy" / "mlperf.md"
ROW = {
    "benchmark": "resnet", "gpu": "NVIDIA A100-SXM4-80GB (400W)", "num_nodes": "1", "num_gpus": "8",
    "samples_per_s": "24000", "check_flag": "", "submitter": "A", "round": "v1.0",
    "framework": "NGC MXNet 21.05 , more",
}  # fmt: skip


@cache
def recorded() -> Trace:
    return next(case for case in recorded_cases() if case.name == "ResNet-50 AMP-FP16").build()


def folder_of(tmp_path: Path, *rows: dict[str, str]) -> Path:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(ROW))
    writer.writeheader()
    writer.writerows(ROW | row for row in rows)
    (tmp_path / FILE).write_bytes(gzip.compress(text.getvalue().encode()))
    return tmp_path


def test_the_best_of_a_gpu_by_its_rate_per_gpu(tmp_path):
    rows = [{}, {"num_gpus": "4", "samples_per_s": "13000", "submitter": "B"}, {"samples_per_s": "9000"}]
    (best,) = best_submissions(folder_of(tmp_path, *rows)).values()
    assert (best.submitter, best.num_gpus, best.images_per_s) == ("B", 4, 3250.0)


@pytest.mark.parametrize(
    "doubtful",
    [
        {"benchmark": "bert"},
        {"num_nodes": "2"},
        {"num_nodes": ""},
        {"num_gpus": ""},
        {"samples_per_s": ""},
        {"check_flag": "implausible"},
        {"gpu": "NVIDIA A100"},
        {"gpu": "TPU"},
    ],
)
def test_what_is_left_out(tmp_path, doubtful):
    assert best_submissions(folder_of(tmp_path, doubtful)) == {}


def test_the_prediction_is_of_one_gpu(tmp_path):
    (row,) = floors(folder_of(tmp_path, {}), recorded)
    step_s = predict(recorded(), resolve_gpu("A100-SXM-80GB")).iteration_s
    assert row.predicted == pytest.approx(BATCH_SIZE / step_s.p50)
    assert row.predicted_p10 < row.predicted
    assert row.ratio == pytest.approx(row.predicted / 3000)


def test_a_broken_floor_is_counted_and_comes_first(tmp_path):
    rows = [{}, {"gpu": "NVIDIA L4", "samples_per_s": "80"}]
    text = page(list(floors(folder_of(tmp_path, *rows), recorded)))
    assert "1 of 2 GPUs keep the floor" in text
    assert text.index("| L4 |") < text.index("| A100-SXM-80GB |")
    assert "verified by MLCommons Association" in text


def test_a_missing_table(tmp_path):
    with pytest.raises(FileNotFoundError, match="mlperf"):
        best_submissions(tmp_path)


@pytest.mark.shared
@needs_shared
def test_no_gpu_is_predicted_faster_than_the_best_submission_by_more_than_the_tolerance():
    rows = list(floors(SHARED / "measurements" / "published", recorded))
    assert len(rows) > 12
    faster = [row for row in rows if row.ratio > TOLERANCE]
    # A framework that no vendor tuned is no floor; it is on the page all the same.
    assert all(row.best.framework.startswith("tinygrad") for row in faster)
    assert page(rows) == PAGE.read_text()
