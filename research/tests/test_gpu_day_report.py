"""A made-up day, read and judged."""

import json

import pytest

from advisor.core.errors import ProfileError
from advisor.core.gpus import load_gpus
from advisor.formats.recording_files import read_recording
from advisor.predict.iteration import predict
from research.gpu_day.condensed import condense
from research.gpu_day.lines import KERNELS, read_lines
from research.gpu_day.report import judge, page
from research.gpu_day.results import read_day
from research.gpu_day.steps import Step
from research.gpu_day.watching import parsed
from tests.builders import make_trace
from tests.recordings import make_measurement, write_recording

NAME = "resnet50/fp16/contiguous/b256/benchmark"
STEP = {"network": "resnet50", "precision": "fp16", "batch": 256, "layout": "contiguous",
        "benchmark": True, "tiny": False}  # fmt: skip
H100 = load_gpus()["H100-SXM-80GB"]


def made_up(folder, wall_s=0.1):
    """A day of two steps, of which one failed, with the board watched at 700 W."""
    lines = [
        {"part": "environment", "case": "device", "name": "NVIDIA H100 80GB HBM3"},
        {"part": "watch", "at_s": 99.0, "sm_mhz": 345, "instant_w": 90.0, "reasons": 0},
        {"part": "watch", "at_s": 100.5, "sm_mhz": 1755, "instant_w": 700.0, "reasons": 4},
        {"part": "watch", "at_s": 100.6, "sm_mhz": 1745, "instant_w": 690.0, "reasons": 4},
        {"part": "steps", "begin": NAME},
        {"part": "steps", "case": NAME, "step": STEP, "wall_s": wall_s, "launched_s": 0.02,
         "phases_s": {"forward": 0.03, "backward": 0.06, "optimizer": 0.01},
         "begun_s": 100.0, "ended_s": 101.0,
         "memory": {"peak_bytes": 25_000_000_000, "reserved_bytes": 26_000_000_000}},
        {"part": "steps", "case": "vgg16", "reason": "OutOfMemoryError: no room"},
        {"part": "profiles", "case": NAME, "kernels_s": 0.09},
        {"part": "host", "case": "forward/add", "call_s": 5e-6, "launched_s": 4e-6},
        {"part": "sustained", "case": "product_bf16", "ended_s": 130.0,
         "chunks": [[100.0, 2e-3, 1], [100.1, 1e-3, 500], [110.0, 1.1e-3, 500], [125.0, 1.2e-3, 500]]},
    ]  # fmt: skip
    text = "".join(json.dumps({"at_s": 0.0, **line}) + "\n" for line in lines)
    (folder / "gpu_day.jsonl").write_text(text)
    return read_day(folder)


def test_a_day_is_read_with_what_the_board_said_meanwhile(tmp_path):
    day = made_up(tmp_path)
    (step,) = day.steps
    assert step.step == Step(**STEP)
    assert step.watched.sm_hz == pytest.approx(1750e6)
    assert step.watched.power_w == pytest.approx(695.0)
    assert step.watched.reasons == 4
    assert step.kernels_s == 0.09
    assert day.skipped == {"steps: vgg16": "OutOfMemoryError: no room"}


def test_sustained_work_is_its_beginning_and_its_last_third(tmp_path):
    (run,) = made_up(tmp_path).sustained
    assert run.lasted_s == 30.0
    assert run.last_s == 1.2e-3
    assert run.first_s == 1.1e-3


def test_a_folder_without_a_day_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="name the folder"):
        read_day(tmp_path)


def test_predictions_stand_beside_what_was_measured(tmp_path):
    trace = make_trace()
    predicted_s = predict(trace, H100).iteration_s.p50
    day = made_up(tmp_path, wall_s=2 * predicted_s)
    judged, failed = judge(day.steps, H100, lambda _: trace)
    assert failed == {}
    assert judged[0].error == pytest.approx(-0.5)
    assert judged[0].peak_bytes == trace.memory.peak_bytes
    path = write_recording(tmp_path / KERNELS, [make_measurement(dtype="float16")], gpu=H100.name)
    text = page(day, H100, judged, [read_recording(path)], failed)
    assert f"| {NAME} |" in text
    assert "| -50% out |" in text
    assert "| all | 50.0% | 50.0% | 50% | -50.0% | 0 of 1 |" in text
    assert "| gemm float16 | 1 |" in text
    assert "1750 MHz, 695 W, reasons 0x4" in text
    assert "- steps: vgg16: OutOfMemoryError: no room" in text
    assert "- forward: add 5.0" in text


def test_a_step_that_cannot_be_profiled_is_named(tmp_path):
    def refuse(step):
        raise ProfileError("no torchvision here")

    judged, failed = judge(made_up(tmp_path).steps, H100, refuse)
    assert judged == []
    assert failed == {NAME: "no torchvision here"}


def test_what_nvidia_smi_does_not_know_is_left_out():
    said = parsed("1980, 2619, [N/A], 45, 0x0000000000000004, 99")
    assert said == {"sm_mhz": 1980.0, "memory_mhz": 2619.0, "temperature_c": 45.0, "reasons": 4, "busy": 99.0}


def test_a_condensed_day_says_the_same_without_its_samples(tmp_path):
    day = made_up(tmp_path)
    condense([tmp_path], tmp_path / "small")
    small = read_day(tmp_path / "small")
    assert (small.steps, small.chains, small.skipped) == (day.steps, day.chains, day.skipped)
    watching = [line for line in read_lines(tmp_path / "small") if line["part"] == "watch"]
    assert [(line["at_s"], line["sm_mhz"], line["reasons"]) for line in watching[:1]] == [(100.5, 1750, 4)]
