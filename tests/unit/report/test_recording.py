"""Recordings and calibrations in each output format."""

from pathlib import Path

import pytest

from advisor.formats.recording_files import Recording, Skipped
from advisor.predict.calibrating import Calibration, FittedConstant
from advisor.report.catalog_tables import (
    by_family,
    calibration_document,
    reasons,
    recording_document,
    skipped_lines,
)
from advisor.report.printing import Format, text_of
from tests.findings import texts
from tests.recordings import make_header, make_measurement
from tests.unit.report.printed import json_of

RECORDING = Recording(
    header=make_header(),
    measurements=(
        make_measurement(time_s=2e-3),
        make_measurement("aten::bmm", time_s=1e-3),
        make_measurement("aten::_softmax", time_s=5e-6),
    ),
    skipped=(
        Skipped(case="a", reason="out of memory"),
        Skipped(case="b", reason="no such thing"),
        Skipped(case="c", reason="out of memory"),
    ),
    references_s=(1.0, 1.1),
)
CALIBRATION = Calibration(
    gpu="L4",
    source="2026-11-21, driver 580",
    constants=(
        FittedConstant(name="gemm_fraction.fp16", before=0.6, after=0.5123, num_kernels=3, spread=0.05),
    ),
    kernels={},
    warnings=texts("it was hot"),
)


def test_families_are_counted_largest_first():
    families = by_family(RECORDING)
    assert list(families) == ["gemm", "norm and softmax"]
    assert families["gemm"] == {
        "kernels": 2, "shortest_s": 1e-3, "longest_s": 2e-3, "median_spread": pytest.approx(0.01)
    }  # fmt: skip


def test_reasons_are_counted_most_frequent_first():
    assert reasons(RECORDING) == [("out of memory", 2), ("no such thing", 1)]
    assert skipped_lines(RECORDING) == ["2 left out: out of memory", "1 left out: no such thing"]


@pytest.mark.parametrize("output", [Format.TABLE, Format.CSV, Format.MARKDOWN])
def test_rows_of_a_recording_and_of_a_calibration(output):
    out = text_of(recording_document(RECORDING, Path("k.jsonl"), []), output)
    for text in ("Median spread", "gemm", "norm and softmax", "5.0 us", "1.0%"):
        assert text in out
    out = text_of(calibration_document(CALIBRATION, Path("L4.toml")), output)
    for text in ("Before", "gemm_fraction.fp16", "0.600", "0.512", "5.0%"):
        assert text in out
    assert ("L4: written to L4.toml" in out) == (output is Format.TABLE)


def test_a_recording_as_json():
    document = json_of(recording_document(RECORDING, Path("k.jsonl"), texts("hot")))
    assert {"schema_version", "families", "recording", "skipped", "warnings", "warning_findings"} == {
        *document
    }
    assert document["recording"]["path"] == "k.jsonl"
    assert document["recording"]["drift"] == pytest.approx(0.1)
    assert document["skipped"] == {"out of memory": 2, "no such thing": 1}
    assert document["warnings"] == ["hot"]
    assert [one["code"] for one in document["warning_findings"]] == ["text"]


def test_a_calibration_as_json():
    document = json_of(calibration_document(CALIBRATION, Path("L4.toml")))
    assert document["calibration"]["constants"][0]["after"] == 0.5123
    assert document["warnings"] == ["it was hot"]
    assert [one["facts"] for one in document["warning_findings"]] == [{"text": "it was hot"}]
    assert "warnings" not in document["calibration"]


def test_the_format_is_documented():
    page = (Path(__file__).parents[3] / "docs" / "methods" / "measuring.md").read_text()
    for field in make_header().__dataclass_fields__:
        assert f"`{field}`" in page, field
    for field in ("case", "op", "precision", "spread", "num_samples", "reason", "reference_s"):
        assert field in page
