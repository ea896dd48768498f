"""The page of the measured day says what the command would write today."""

from pathlib import Path

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.formats.recording_files import read_recording
from research.gpu_day import report
from research.gpu_day.lines import recording_of
from research.gpu_day.operators import read_operators
from research.gpu_day.results import read_day

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "research" / "measured" / "h100_sxm_2026-11"
PAGE = (ROOT / "research" / "docs" / "accuracy" / "gpu-day.md").read_text()
DAY = read_day(FOLDER)
GPU = resolve_gpu(DAY.device)


# A build of torch without CUDA says so where an LSTM is made.
@pytest.mark.filterwarnings("ignore:PyTorch was compiled without cuDNN")
@pytest.mark.parametrize("network", ["dcgan", "lstm_words", "vgg16"])
def test_steps_are_predicted_as_the_page_says(network):
    steps = [timed for timed in DAY.steps if timed.step.network == network]
    judged, failed = report.judge(steps, GPU, lambda step: report.profiled(step, GPU, FOLDER / "traces"))
    assert not failed
    rows = [line for line in report._steps(judged) if line.startswith(f"| {network}/")]
    assert len(rows) == len(steps) > 0
    assert all(row in PAGE for row in rows)


def test_kernels_are_predicted_as_the_page_says():
    recording = read_recording(recording_of(FOLDER))
    lines = list(report._kernels([recording], GPU))
    assert len(lines) > 30
    assert [line for line in lines if line not in PAGE] == []


def test_profiles_are_sums_of_the_same_kernels():
    by_step: dict[str, float] = {}
    for row in read_operators(FOLDER):
        by_step[row["step"]] = by_step.get(row["step"], 0.0) + 1e-6 * float(row["kernels_us"])
    measured = {timed.step.name: timed.kernels_s for timed in DAY.steps if timed.kernels_s is not None}
    # One step was profiled and not timed.
    assert len(measured) == len(by_step) - 1 == 13
    for name, kernels_s in measured.items():
        assert by_step[name] == pytest.approx(kernels_s, rel=0.01)


def test_nothing_names_the_machine():
    lines = (FOLDER / "README.md").read_text() + str([DAY.host, DAY.skipped])
    assert "Linux-" not in lines
    assert "system" not in DAY.host
