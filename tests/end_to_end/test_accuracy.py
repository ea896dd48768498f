"""Accuracy against published measurements, with stated tolerances."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shared import SHARED, needs_shared

pytestmark = [pytest.mark.shared, needs_shared]

ROOT = Path(__file__).resolve().parents[2]
THIRD_PARTY = SHARED / "measurements" / "third_party"
KERNELS = SHARED / "measurements" / "kernels"


METHODS = ROOT / "docs" / "methods"


@pytest.mark.torch
def test_published_training_throughput() -> None:
    """Rows that fitted no constant: within 25 % each, 12 % on average, inside p10 .. p90; as documented."""
    from benchmarks.published import mean_error, scores, table

    found = list(scores(THIRD_PARTY))
    scored = [score for score in found if not score.case.fitted]
    assert len(scored) == 6
    for score in scored:
        assert abs(score.error) < 0.25, score
        assert score.covered, score
    assert mean_error(found) < 0.12
    assert table(found) in (METHODS / "roofline.md").read_text()
    assert f"{mean_error(found) * 100:.1f} %" in (ROOT / "README.md").read_text().replace("\n  ", " ")


@pytest.mark.torch
@pytest.mark.slow
def test_the_report_on_measured_iterations(tmp_path: Path) -> None:
    """All 50 rows: as documented, no worse than stated, and beside the published predictors."""
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("needs transformers: pip install 'gpu-advisor[frameworks]'")
    from benchmarks.accuracy.summary import table

    out, measurements = tmp_path / "out.json", SHARED / "measurements"
    command = [sys.executable, "-m", "benchmarks.accuracy", "--end-to-end", measurements / "end_to_end.csv"]
    command += ["--op-traces", measurements / "op_traces", "--json", out]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    summary = json.loads(out.read_text())["summary"]
    assert summary["all"]["advisor"]["rows"] == 50
    assert summary["clean"]["advisor"]["rows"] == 24
    assert summary["all"]["advisor"]["mean"] < 0.12
    assert summary["clean"]["advisor"]["mean"] < 0.09
    assert summary["all"]["advisor"]["coverage"] > 0.8
    assert table(summary) in (ROOT / "docs" / "accuracy" / "README.md").read_text()


@pytest.mark.parametrize("operators", [["softmax"], ["ln"]])
def test_the_documented_tables_of_wave_scaling(operators: list[str]) -> None:
    from benchmarks.wave_accuracy import table

    assert table(KERNELS, operators) in (METHODS / "wave-scaling.md").read_text()


def test_the_fitted_constants_are_those_of_the_measurements(tmp_path: Path) -> None:
    """The shipped file is what the command writes, to the byte."""
    out = tmp_path / "fitted.toml"
    command = [sys.executable, "tools/fit_constants.py", "--kernels", str(KERNELS), "--out", str(out)]
    subprocess.run(command, check=True, cwd=ROOT)
    assert out.read_text() == (ROOT / "catalogs" / "fitted.toml").read_text()


@pytest.mark.parametrize("operator", ["add", "relu", "gelu"])
def test_large_element_wise_kernels_on_measured_gpus(operator: str) -> None:
    """Median error of the roofline on calls of 64 MB or more: at most 15 % on every GPU."""
    from advisor.gpus import resolve_gpu
    from advisor.predict.constants import constants_for
    from benchmarks.wave_accuracy import OPERATORS, read_operator

    frame = read_operator(KERNELS, operator)
    frame["num_bytes"] = frame.B * frame.H * 4 * OPERATORS[operator][0]
    for gpu, rows in frame[frame.num_bytes >= 64e6].groupby("gpu"):
        spec = resolve_gpu(str(gpu))
        rate = constants_for(spec).streaming_fraction * spec.memory_bytes_per_s
        errors = (rows.num_bytes / rate / rows.time_s - 1).abs()
        assert errors.median() < 0.15, (gpu, errors.median())
