"""The accuracy harness: errors of all predictors of a table, and models built on a GPU that is not there."""

import csv
import importlib.util
import json
import subprocess
import sys

import pytest

from benchmarks.accuracy.summary import coverage, errors, summarise, table
from tests.shared import SHARED, needs_shared

MEASUREMENTS = SHARED / "measurements"


def row(gpu="T4", mode="inf", measured=100.0, predicted=110.0, p10=90.0, p90=120.0, other="105"):
    return {"gpu": gpu, "mode": mode, "measured_ms": str(measured), "predicted_ms": predicted, "p10_ms": p10,
            "p90_ms": p90, "other_ms": other, "forward_ms": "1"}  # fmt: skip


def test_errors_are_absolute_and_ranked():
    rows = [row(predicted=100 + error) for error in (-30, 0, 10, 20)]
    found = errors(rows, "predicted_ms")
    assert found == {
        "rows": 4,
        "mean": pytest.approx(0.15),
        "median": pytest.approx(0.15),
        "p90": pytest.approx(0.3),
        "max": pytest.approx(0.3),
    }


def test_rows_that_others_did_not_predict_are_not_held_against_them():
    found = errors([row(other=""), row(other="150")], "other_ms")
    assert (found["rows"], found["mean"]) == (1, pytest.approx(0.5))
    assert errors([row(other="")], "other_ms")["mean"] is None


def test_coverage_counts_what_lies_within():
    assert coverage([row(), row(measured=89.9), row(measured=120.0), row(measured=121.0)]) == 0.5


def test_groups_are_gpus_modes_and_all():
    rows = [row(), row(gpu="V100", mode="train", other="")]
    summary = summarise(rows)
    assert set(summary) == {"T4", "V100", "all inf", "all train", "all"}
    assert list(summary["all"]) == ["advisor", "other"]
    text = table(summary)
    assert "| V100 | 1 | 10.0 / 10.0 | - | 100% |" in text
    assert "| all | 2 | 10.0 / 10.0 | 5.0 / 5.0 | 100% |" in text


@needs_shared
def test_published_predictors_have_their_published_errors():
    with (MEASUREMENTS / "end_to_end.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    # measurements/README.md: mean / median of 48 rows.
    expected = {
        "neusight": (9.3, 5.8),
        "habitat": (15.9, 9.8),
        "micro": (23.3, 21.0),
        "roofline": (26.7, 25.0),
    }
    for name, (mean, median) in expected.items():
        found = errors(rows, f"{name}_ms")
        assert (100 * found["mean"], 100 * found["median"]) == pytest.approx((mean, median), abs=0.05)


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """The harness on three rows, as a person calls it."""
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("needs transformers: pip install 'gpu-advisor[frameworks]'")
    folder = tmp_path_factory.mktemp("accuracy")
    with (MEASUREMENTS / "end_to_end.csv").open(newline="") as file:
        lines = file.readlines()
    wanted = ("V100-PCIE-32GB,bert_large,train,512,2,", "V100-PCIE-32GB,gpt3_27,inf,2048,2,",
              "V100-PCIE-32GB,switchxl4,inf,512,1,")  # fmt: skip
    (folder / "rows.csv").write_text(lines[0] + "".join(line for line in lines if line.startswith(wanted)))
    command = [sys.executable, "-m", "benchmarks.accuracy", "--end-to-end", folder / "rows.csv"]
    command += ["--configs", MEASUREMENTS / "model_configs", "--json", folder / "out.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((folder / "out.json").read_text())


@needs_shared
@pytest.mark.torch
@pytest.mark.slow
def test_models_are_built_profiled_and_predicted(answered):
    printed, document = answered
    assert {row["model"] for row in document["rows"]} == {"bert_large", "gpt3_27", "switchxl4"}
    for row in document["rows"]:
        # Roofline constants alone; the models of a later step have to be better.
        assert row["predicted_ms"] == pytest.approx(float(row["measured_ms"]), rel=0.2)
        assert row["p10_ms"] < row["predicted_ms"] < row["p90_ms"]
        assert sum(row["by_method"].values()) * 1e3 == pytest.approx(row["predicted_ms"], rel=0.01)
    assert document["summary"]["all"]["advisor"]["rows"] == 3
    assert "| V100-PCIE-32GB | 3 |" in printed
