"""``python -m benchmarks.accuracy`` as a person types it."""

import importlib.util
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from advisor.core.values import Phase
from benchmarks.accuracy.__main__ import main
from benchmarks.accuracy.models import Workload, trace_of
from research.tests.harness.builders import line, write_measurements, write_op_trace

ROOT = Path(__file__).resolve().parents[3]
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None,
    reason="needs transformers: pip install 'gpu-advisor[frameworks]'",
)


def harness(*arguments):
    command = [sys.executable, "-m", "benchmarks.accuracy", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def printed(*arguments):
    """Standard output and standard error of a run that succeeds."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        main([str(argument) for argument in arguments])
    return out.getvalue(), err.getvalue()


def refused(capsys, *arguments):
    """Exit code and message; nothing on standard output, no traceback."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert "Traceback" not in err
    return ended.value.code, err


def test_help_names_every_part():
    done = harness("--help")
    assert done.returncode == 0
    parts = "end-to-end kernels op-traces third-party leave-one-out knowledge json report"
    for part in parts.split():
        assert f"--{part}" in done.stdout


def test_faults_of_rows_are_told_before_any_work(tmp_path, capsys):
    path = write_measurements(tmp_path, line(gpu="B9000"), line(model="none"), line(measured_ms="soon"))
    code, message = refused(capsys, "--end-to-end", path)
    assert code == 2
    for words in ("line 2", "B9000", "line 3", "'none'", "line 4", "'soon'"):
        assert words in message


def test_folders_that_hold_nothing(tmp_path, capsys):
    path, empty = write_measurements(tmp_path, line()), tmp_path / "empty"
    empty.mkdir()
    for option, code, words in (
        ("--kernels", 2, "no measured kernels"),
        ("--op-traces", 2, "no operator traces"),
        ("--leave-one-out", 2, "no folder named by a GPU"),
        ("--third-party", 2, "no nvidia_dle_train_perf.csv"),
        ("--knowledge", 1, "fitted.toml"),
    ):
        refusal, message = refused(capsys, "--end-to-end", path, option, empty)
        assert (refusal, words in message) == (code, True), message
    assert refused(capsys, "--end-to-end", tmp_path / "none.csv")[0] == 2
    code, message = refused(capsys, "--end-to-end", path, "--json", tmp_path / "none" / "out.json")
    assert (code, "to write to" in message) == (2, True)


@pytest.mark.torch
@needs_transformers
@pytest.mark.usefixtures("warm_process")
@pytest.mark.parametrize(
    ("config", "code", "words"),
    [("not json", 2, "is no Hugging Face configuration"), ("[]", 2, "is no Hugging Face configuration"),
     ('{"n_layer": 2}', 2, "'model_type'"), ('{"model_type": "perceptron"}', 1, "cannot profile tiny inf")],
)  # fmt: skip
def test_a_broken_configuration(tmp_path, capsys, config, code, words):
    path = write_measurements(tmp_path, line())
    (tmp_path / "model_configs" / "tiny.json").write_text(config)
    with pytest.raises(SystemExit) as ended:
        main(["--end-to-end", str(path)])
    err = capsys.readouterr().err
    assert ended.value.code == code
    assert words in err
    assert "Traceback" not in err


@pytest.mark.torch
@needs_transformers
@pytest.mark.usefixtures("warm_process")
@pytest.mark.parametrize(
    "config",
    [{"model_type": "t5", "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1, "num_heads": 2},
     {"model_type": "distilbert", "dim": 32, "n_layers": 1, "n_heads": 2, "hidden_dim": 64},
     {"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
      "num_attention_heads": 2}],
    ids=lambda config: config["model_type"],
)  # fmt: skip
def test_models_that_nobody_measured_are_built(tmp_path, config):
    mode = "inf" if config["model_type"] == "llama" else "train"
    (tmp_path / "new.json").write_text(json.dumps(config | {"vocab_size": 100}))
    trace = trace_of(Workload(model="new", mode=mode, seq_len=16, batch_size=2), tmp_path)
    phases = {op.phase for op in trace.ops}
    assert phases == ({Phase.FORWARD, Phase.BACKWARD} if mode == "train" else {Phase.FORWARD})


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """A model and a GPU that nobody measured, two seeds, a GPU left out, operator traces: all at once."""
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("needs transformers: pip install 'gpu-advisor[frameworks]'")
    folder = tmp_path_factory.mktemp("accuracy")
    lines = [line(gpu=gpu, mode=mode) for gpu in ("T4", "H100-SXM-80GB") for mode in ("inf", "train")]
    path = write_measurements(folder, *lines)
    for name in ("op_traces", "seeds/s1", "seeds/s2", "without/T4"):
        (folder / name).mkdir(parents=True)
    write_op_trace(folder / "op_traces", "T4--tiny-inf-32-2")
    for name in ("seeds/s1", "seeds/s2", "without/T4"):
        (folder / name / "fitted.toml").write_text((ROOT / "catalogs" / "fitted.toml").read_text())
    options = [
        "--end-to-end", path, "--op-traces", folder / "op_traces", "--knowledge", folder / "seeds",
        "--leave-one-out", folder / "without", "--json", folder / "out.json", "--report", folder / "report",
    ]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        # Each that starts imports torch and transformers.
        patch.setattr("benchmarks.accuracy.models._PROCESSES", 1)
        said = printed(*options)
    return said, json.loads((folder / "out.json").read_text()), folder / "report"


@pytest.mark.torch
def test_rows_keep_their_columns_and_gain_predictions(answered):
    _, document, _ = answered
    assert len(document["rows"]) == 8
    for row in document["rows"]:
        assert set(line()) <= set(row)
        assert 0 < row["p10_ms"] < row["predicted_ms"] < row["p90_ms"]
        assert sum(row["by_method"].values()) * 1e3 == pytest.approx(row["predicted_ms"], rel=0.01)
    assert {row["knowledge"] for row in document["rows"]} == {"s1", "s2"}
    labels = {(row["gpu"], row["mode"]): row["label"] for row in document["rows"]}
    # The layer's 3 ms twice and 4 more are the 10 ms measured.
    assert labels.pop(("T4", "inf")) == "clean"
    assert set(labels.values()) == {"unknown"}


@pytest.mark.torch
def test_summaries_of_seeds_and_their_mean(answered):
    _, document, _ = answered
    assert set(document["by_knowledge"]) == {"s1", "s2"}
    # Both seeds are the same constants.
    assert document["summary"] == document["by_knowledge"]["s1"]
    assert document["summary"]["all"]["advisor"]["rows"] == 4
    assert document["summary"]["clean"]["advisor"]["rows"] == 1
    assert document["summary"]["all"]["other"]["mean"] == pytest.approx(0.2)
    assert document["left_out"]["T4"]["unseen"]["summary"]["all"]["advisor"]["rows"] == 2
    assert document["scaling"]["all"]["1"]["rows"] == 2
    assert set(document["knowledge"]) == {"s1", "s2", "without T4, T4"}


@pytest.mark.torch
def test_tables_are_printed_and_written(answered):
    (out, err), _, report = answered
    assert "profiled tiny train 32 x 2: " in err
    page = (report / "report.md").read_text()
    for title in (
        "Iterations",
        "Iterations by seed",
        "Rows",
        "A GPU left out of training",
        "Scaled from another",
    ):
        assert f"## {title}" in out
        assert f"## {title}" in page
    assert "| T4 | tiny | inf | 32 | 2 | clean | +0.0 |" in page
    assert "python -m benchmarks.accuracy --end-to-end" in page
    assert sorted(path.name for path in report.iterdir()) == [
        "coverage.svg", "error-by-gpu.svg", "model-card.md", "predicted-measured.svg", "report.md",
        "results.json",
    ]  # fmt: skip
