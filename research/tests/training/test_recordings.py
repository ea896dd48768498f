"""Recordings of advisor measure as samples: what networks may learn from, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.core.errors import RecordingError
from advisor.formats.recording_files import Entry, Skipped
from research.training.recordings import read_calls
from tests.recordings import make_measurement, write_recording

PRODUCT = make_measurement("aten::mm", time_s=2e-3)
ADDITION = make_measurement("aten::add", time_s=1e-3)


def written(tmp_path: Path, *entries: Entry, **header: object) -> Path:
    return write_recording(tmp_path / "kernels.jsonl", entries, **header)


def test_a_recording_is_its_kernels(tmp_path: Path) -> None:
    calls = read_calls(written(tmp_path, PRODUCT, 1e-3, Skipped(case="x", reason="memory"), ADDITION))
    assert calls.ops == (PRODUCT.op, ADDITION.op)
    assert calls.time_s.tolist() == [2e-3, 1e-3]
    assert calls.gpus.tolist() == ["L4", "L4"]
    assert calls.kinds.tolist() == ["recorded mm", "recorded add"]
    assert calls.splits.tolist() == ["train", "train"]


@pytest.mark.parametrize(
    "left_out",
    [make_measurement("aten::mm", dtype="float64"), make_measurement("aten::mm", tf32=True)],
    ids=["fp64", "tf32"],
)
def test_products_at_rates_that_no_network_learns_are_left_out(tmp_path: Path, left_out: Entry) -> None:
    calls = read_calls(written(tmp_path, left_out, PRODUCT))
    assert calls.ops == (PRODUCT.op,)
    with pytest.raises(RecordingError, match="no kernel that a network learns from"):
        read_calls(written(tmp_path, left_out))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_products_are_kept_with_their_dtype(tmp_path: Path, dtype: str) -> None:
    calls = read_calls(written(tmp_path, make_measurement("aten::mm", dtype=dtype)))
    assert [op.inputs[0].dtype for op in calls.ops] == [dtype]


@pytest.mark.parametrize("dtype", ["float64", "int64", "float32"])
def test_element_wise_operators_are_kept_but_in_16_bits(tmp_path: Path, dtype: str) -> None:
    half = make_measurement("aten::add", dtype="bfloat16")
    calls = read_calls(written(tmp_path, make_measurement("aten::add", dtype=dtype), half))
    assert [op.inputs[0].dtype for op in calls.ops] == [dtype]


def test_each_file_is_samples_of_its_own(tmp_path: Path) -> None:
    first = written(tmp_path, PRODUCT)
    (tmp_path / "other").mkdir()
    second = written(tmp_path / "other", ADDITION, gpu="T4", device_name="Tesla T4")
    assert [read_calls(path).gpus.tolist() for path in (first, second)] == [["L4"], ["T4"]]


@pytest.mark.parametrize(
    "header", [{"backend": "cpu", "gpu": None}, {"gpu": None}, {"backend": "cpu"}], ids=str
)
def test_what_is_of_no_gpu_is_refused_with_its_path(tmp_path: Path, header: dict[str, object]) -> None:
    path = written(tmp_path, PRODUCT, **header)
    with pytest.raises(RecordingError, match="not of a GPU of the catalog") as caught:
        read_calls(path)
    assert repr(str(path)) in str(caught.value)


def test_an_empty_or_missing_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="no kernel that a network learns from"):
        read_calls(written(tmp_path))
    with pytest.raises(RecordingError, match="no recording at"):
        read_calls(tmp_path / "nowhere.jsonl")


def test_operators_that_no_network_knows_are_nothing_to_train_on(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="no kernel that a network learns from"):
        read_calls(written(tmp_path, make_measurement("aten::embedding")))
