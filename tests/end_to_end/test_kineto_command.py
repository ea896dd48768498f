"""A profile recorded on a V100, from the file to the ranked answer."""

from functools import cache
from pathlib import Path

import pytest

from advisor.kineto.events import read_recording
from tests.end_to_end.cli import assert_plain_error
from tests.shared import SHARED, needs_shared

pytestmark = [pytest.mark.shared, needs_shared]

V100 = str(SHARED / "kineto" / "resnet50_v100_2021-06.pt.trace.json.gz")
UNNAMED = str(SHARED / "kineto" / "resnet50_2021-01.pt.trace.json.gz")
JOB = ("--iterations", "100000", "--budget", "200")
# Each kernel is predicted for each GPU: one is enough where the others do not count.
ONE = ("--gpu", "A100")


@pytest.fixture(scope="module", autouse=True)
def read_once():
    """Each of the two profiles has tens of thousands of events; what is made of them is made anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("advisor.kineto.export.kineto_events.read_recording", cache(read_recording))
        yield


def test_the_table(shell):
    answer = shell.run("recommend", V100, *JOB, *ONE)
    assert answer.code == 0, answer
    assert "recommended" in answer.out
    assert "the median of 6 recorded steps" in answer.err


def test_json_and_the_origin(shell):
    document = shell.run("recommend", V100, *JOB, "--local-gpu", "Tesla V100-DGXS-32GB", "--json").document
    assert document["job"]["origin_gpu"] == "V100-DGXS-32GB"
    local = next(o for o in document["options"] if o["id"] == "local/1xV100-DGXS-32GB")
    # 100.3 ms of kernels on the GPU itself, to the measurement's own noise.
    assert local["iteration_s"]["p50"] == pytest.approx(0.1003, rel=0.01)
    assert local["train_s"]["p50"] == pytest.approx(100_000 * 0.1003, rel=0.01)
    assert all(option["fits_memory"] is None for option in document["options"])


def test_breakdown_by_operator_and_method(shell):
    answer = shell.run("predict", V100, "--gpu", "A100-SXM-40GB", "--gpu", "V100-DGXS-32GB", "--json")
    by_gpu = {estimate["gpu"]: estimate for estimate in answer.document["estimates"]}
    here, there = by_gpu["V100-DGXS-32GB"], by_gpu["A100-SXM-40GB"]
    assert set(here["by_method"]) == {"measured"}
    assert there["by_method"]["wave"] > 0.8 * sum(there["by_method"].values())
    assert "cudnn_convolution (wave)" in there["by_operator"]
    assert there["iteration_s"]["p50"] < here["iteration_s"]["p50"]
    assert there["iteration_s"]["p90"] / there["iteration_s"]["p50"] > 1.2


def test_explain_names_operators_and_methods(shell):
    text = shell.run("recommend", V100, *JOB, "--gpu", "A100", "--explain", "1").out
    assert "cudnn_convolution_backward_weight (wave)" in text
    assert "wave 8" in text


def test_an_unnamed_gpu_has_to_be_named(shell):
    assert_plain_error(shell.run("recommend", UNNAMED, *JOB), 2, "--origin-gpu")
    answer = shell.run("recommend", UNNAMED, *JOB, *ONE, "--origin-gpu", "V100-SXM2-32GB")
    assert answer.code == 0
    assert "8.9% of the kernels" in answer.err
    assert_plain_error(shell.run("recommend", UNNAMED, *JOB, "--origin-gpu", "V100"), 2, "V100-SXM-32GB")


def test_import_once_then_use_the_trace(shell):
    answer = shell.run("profile", "--from-kineto", V100, "--out", "v100.trace.json.gz")
    assert answer.code == 0, answer
    saved = shell.run("recommend", "v100.trace.json.gz", *JOB, *ONE, "--json").document
    direct = shell.run("recommend", V100, *JOB, *ONE, "--json").document
    assert saved["options"] == direct["options"]


def test_epochs_need_their_length(shell):
    assert_plain_error(shell.run("recommend", V100, "--epochs", "90"), 2, "--iterations-per-epoch")
    known = shell.run("recommend", V100, "--epochs", "90", "--iterations-per-epoch", "40037", *ONE, "--json")
    one = next(option for option in known.document["options"] if option["num_gpus"] == 1)
    assert one["iterations"] == 90 * 40037


def test_a_truncated_profile(shell):
    raw = Path(V100).read_bytes()
    (shell.folder / "cut.pt.trace.json.gz").write_bytes(raw[: len(raw) // 2])
    assert_plain_error(shell.run("recommend", "cut.pt.trace.json.gz", *JOB), 2, "truncated")
