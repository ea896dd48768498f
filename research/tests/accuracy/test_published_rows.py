"""Three published rows, built, profiled and predicted anew, have the errors that are documented."""

import importlib.util
import json
from pathlib import Path

import pytest

from benchmarks.accuracy.models import trace_of
from research.tests.harness.test_command import printed
from tests.shared import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[3]
MEASUREMENTS = SHARED / "measurements"


def one_by_one(workloads, configs):
    """In forks of this process."""
    return ((workload, trace_of(workload, configs)) for workload in dict.fromkeys(workloads))


@pytest.fixture(scope="module")
def published(tmp_path_factory, warm_process):
    """Three published rows."""
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("needs transformers: pip install 'gpu-advisor[frameworks]'")
    folder = tmp_path_factory.mktemp("published")
    with (MEASUREMENTS / "end_to_end.csv").open(newline="") as file:
        lines = file.readlines()
    wanted = ("V100-PCIE-32GB,bert_large,train,512,2,", "V100-PCIE-32GB,gpt3_27,inf,2048,2,",
              "V100-PCIE-32GB,switchxl4,inf,512,1,")  # fmt: skip
    (folder / "rows.csv").write_text(lines[0] + "".join(line for line in lines if line.startswith(wanted)))
    options = ["--configs", MEASUREMENTS / "model_configs", "--json", folder / "out.json"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.accuracy.run.traces_of", one_by_one)
        out, _ = printed("--end-to-end", folder / "rows.csv", *options)
    return out, json.loads((folder / "out.json").read_text())


@needs_shared
@pytest.mark.torch
@pytest.mark.slow
def test_models_are_built_profiled_and_predicted(published):
    printed, document = published
    assert {row["model"] for row in document["rows"]} == {"bert_large", "gpt3_27", "switchxl4"}
    for row in document["rows"]:
        # Roofline constants alone; the models of a later step have to be better.
        assert row["predicted_ms"] == pytest.approx(float(row["measured_ms"]), rel=0.2)
        assert row["p10_ms"] < row["predicted_ms"] < row["p90_ms"]
        assert sum(row["by_method"].values()) * 1e3 == pytest.approx(row["predicted_ms"], rel=0.01)
    assert document["summary"]["all"]["advisor"]["rows"] == 3
    assert "| V100-PCIE-32GB | 3 |" in printed


@needs_shared
@pytest.mark.torch
@pytest.mark.slow
def test_the_documented_errors_are_todays(published):
    """Whoever changes predictions writes research/docs/accuracy anew: its report.md names the command."""
    keys = ("gpu", "model", "mode", "seq_len", "batch_size")
    rows = json.loads((ROOT / "research" / "docs" / "accuracy" / "results.json").read_text())["shipped_rows"]
    documented = {tuple(row[key] for key in keys): row["error"] for row in rows}
    for row in published[1]["rows"]:
        error = row["predicted_ms"] / float(row["measured_ms"]) - 1
        assert error == pytest.approx(documented[tuple(row[key] for key in keys)], abs=1e-3)
