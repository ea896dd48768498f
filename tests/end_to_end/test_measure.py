"""advisor measure and advisor calibrate as a person types them, without a GPU."""

import contextlib
import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.formats.recording_files import Measurement, read_recording
from advisor.predict.constants import constants_for
from advisor.predict.roofline import KERNEL_FLOOR_S, op_time
from tests.builders import make_trace
from tests.end_to_end.cli import Shell, assert_plain_error
from tests.programs import write_program
from tests.recordings import make_measurement, write_recording

pytestmark = pytest.mark.usefixtures("warm_children")

CPU = ("measure", "--quick", "--backend", "cpu")
FEW = (*CPU, "--only", "bmm,softmax")


def with_nvidia_smi(shell: Shell, answer: str) -> str:
    """A PATH whose nvidia-smi answers this."""
    write_program(shell.folder / "bin/nvidia-smi", f"echo '{answer}'")
    return f"{shell.folder}/bin:/usr/bin:/bin"


# --- measure -----------------------------------------------------------------------------------------


@pytest.mark.torch
def test_the_whole_quick_grid_on_the_cpu(shell):
    answer = shell.run(*CPU, "--json")
    assert answer.code == 0, answer.err
    document = answer.document
    assert document["recording"]["backend"] == "cpu"
    assert document["recording"]["versions"]["torch"]
    families = document["families"]
    assert {"gemm", "convolution", "norm and softmax", "element-wise", "embedding"} <= set(families)
    assert all(0 < facts["shortest_s"] <= facts["longest_s"] for facts in families.values())
    recording = read_recording(shell.folder / "kernels.jsonl")
    assert sum(facts["kernels"] for facts in families.values()) == len(recording.measurements) >= 120
    # A CPU has none of CUDA's own kernels.
    reasons = {entry.reason for entry in recording.skipped}
    assert all("does not run on cpu" in reason or "a CPU has no" in reason for reason in reasons), reasons
    assert "note: 10 left out: a CPU has no TF32" in answer.err
    names = {kernel.op.name for kernel in recording.measurements}
    assert {"aten::addmm", "aten::convolution_backward", "aten::_fused_adamw_"} <= names
    assert all(kernel.op.bytes > 0 for kernel in recording.measurements)


@pytest.mark.torch
def test_it_goes_on_where_it_stopped_and_says_when_it_is_done(shell):
    assert shell.run(*CPU, "--only", "softmax").code == 0
    path = shell.folder / "kernels.jsonl"
    first = path.read_bytes()
    # As a process leaves it that is killed while it writes.
    path.write_bytes(first[:-40])
    answer = shell.run(*FEW)
    assert answer.code == 0, answer.err
    assert path.read_bytes().startswith(first[: first[:-40].rfind(b"\n") + 1])
    cases = [entry.case for entry in read_recording(path).measurements]
    assert len(cases) == len(set(cases))
    again = shell.run(*FEW)
    assert "note: kernels.jsonl was complete already." in again.err
    assert again.out == answer.out


@pytest.mark.torch
def test_an_interrupt_keeps_what_was_measured(shell):
    home = {"HOME": str(shell.folder), "XDG_CONFIG_HOME": str(shell.folder)}
    process = subprocess.Popen(
        [sys.executable, "-m", "advisor", "measure", "--full", "--backend", "cpu", "--out", "k.jsonl"],
        cwd=shell.folder, env=os.environ | home, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    path = shell.folder / "k.jsonl"
    while process.poll() is None and not (path.exists() and path.read_bytes().count(b"\n") > 5):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.05)
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "are kept in k.jsonl; the same command goes on there." in err
    assert err.rstrip().endswith("interrupted")
    assert "Traceback" not in err
    assert len(read_recording(path).cases) >= 4


@pytest.mark.torch
def test_families_markdown_and_another_file(shell):
    answer = shell.run(*CPU, "--only", " gemm , bmm", "--out", "some.jsonl", "--format", "markdown")
    assert answer.out.startswith("| Family | Kernels |")
    assert (shell.folder / "some.jsonl").exists()


@pytest.mark.torch
def test_no_gpu_is_an_error_that_says_what_to_do(shell):
    answer = shell.run("measure", "--quick", CUDA_VISIBLE_DEVICES="")
    assert_plain_error(answer, 1, "CUDA", "--backend cpu")
    assert not (shell.folder / "kernels.jsonl").exists()
    assert_plain_error(shell.run("calibrate", CUDA_VISIBLE_DEVICES=""), 1, "nothing to measure")


def test_a_python_without_torch(shell):
    """Was: ./python became a bare name, and another that PATH has was taken."""
    (shell.folder / "site").mkdir()
    write_program(shell.folder / "python", f'exec {vars(sys)["_base_executable"]} -S "$@"')
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    assert_plain_error(shell.run(*FEW, "--python", "./python", PATH=path), 2, "has no torch", "--python")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--quick", "--full"), "either --quick or --full"),
        (("--only", "gems"), "no family 'gems'"),
        (("--only", "gems"), "Did you mean 'gemm'"),
        (("--only", ""), "the word after '--only' is empty"),
        (("--only", "gemm,"), "--only takes no family ''"),
        (("--backend", "fake"), "'cuda', 'cpu'"),
        (("--backend", "cpu", "--out", "no/k.jsonl"), "there is no folder 'no'"),
        (("--backend", "cpu", "--out", "k.gz"), "run gzip afterwards"),
        (("--python", "nothing"), "not an interpreter"),
    ],
)
def test_wrong_in_the_usual_ways(shell, arguments, words):
    answer = shell.run("measure", *arguments)
    assert answer.code == 2
    assert words in " ".join(answer.err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("/dev/full", "'/dev/full' is no file that can be kept: choose another with --out"),
        ("empty.jsonl", "'empty.jsonl' is not a recording of advisor measure but empty: delete it"),
        ("folder", "'folder' is a folder: name a file in it with --out, such as 'folder/kernels.jsonl'"),
        ("pipe", "'pipe' is no file that can be kept"),
    ],
)
def test_what_is_there_already_is_told_in_a_line(shell, out, words):
    shell.write("empty.jsonl", "")
    (shell.folder / "folder").mkdir()
    os.mkfifo(shell.folder / "pipe")
    answer = shell.run(*FEW, "--out", out)
    assert_plain_error(answer, 2, f"error: {words}")
    assert answer.err.count("\n") == 1
    assert answer.out == ""
    assert (shell.folder / "empty.jsonl").read_bytes() == b""


def test_calibrating_from_no_recording(shell):
    shell.write("empty.jsonl", "")
    assert_plain_error(shell.run("calibrate", "--from", "empty.jsonl"), 2, "but empty: delete it")
    assert_plain_error(shell.run("calibrate", "--from", "/dev/zero"), 2, "it is a pipe or a device")
    assert_plain_error(shell.run("calibrate", "--from", "."), 2, "Is a directory")


def test_a_busy_gpu_is_left_alone(shell):
    path = with_nvidia_smi(shell, "NVIDIA L4, 23034, 18000, 97, 72.00")
    assert_plain_error(shell.run("measure", PATH=path), 1, "busy (97% utilized)", "CUDA_VISIBLE_DEVICES")
    assert_plain_error(shell.run("calibrate", PATH=path), 1, "busy (97% utilized)")


def test_a_recording_from_the_future(shell):
    path = write_recording(shell.folder / "kernels.jsonl", [])
    path.write_text(path.read_text().replace('"schema_version":1', '"schema_version":7'))
    assert_plain_error(shell.run(*FEW), 2, "schema version 7", "upgrade gpu-advisor")
    assert_plain_error(shell.run("calibrate", "--from", "kernels.jsonl"), 2, "schema version 7")


def test_a_recording_of_another_backend(shell):
    write_recording(shell.folder / "kernels.jsonl", [])
    assert_plain_error(shell.run(*FEW), 2, "of the backend cuda, not cpu", "--out")


# --- calibrate ---------------------------------------------------------------------------------------

L4 = resolve_gpu("L4")


def slower(factor: float, **facts: object) -> Measurement:
    kernel = make_measurement(**facts)
    found_s = op_time(kernel.op, L4, constants_for(L4), kernel.precision).time_s
    return make_measurement(time_s=KERNEL_FLOOR_S + factor * (found_s - KERNEL_FLOOR_S), **facts)


@pytest.fixture
def recording(shell):
    kernels = [slower(2.0, dtype="float16"), slower(1.25, name="aten::add", shape=(8192, 8192))]
    return write_recording(shell.folder / "l4.jsonl", kernels)


def l4_ms(shell: Shell) -> float:
    answer = shell.run("predict", "trace.json", "--gpu", "L4", "--json")
    (estimate,) = answer.document["estimates"]
    return estimate["iteration_s"]["p50"] * 1e3


def test_constants_of_a_recording_change_the_predictions(shell, recording):
    from advisor.formats.trace_files import write_trace

    write_trace(make_trace(ops=(make_measurement(dtype="float16").op,)), shell.folder / "trace.json")
    before_ms = l4_ms(shell)
    answer = shell.run("calibrate", "--from", "l4.jsonl", "--json")
    assert answer.code == 0, answer.err
    calibration = answer.document["calibration"]
    assert calibration["gpu"] == "L4"
    assert [(fit["name"], fit["num_kernels"]) for fit in calibration["constants"]] == [
        ("gemm_fraction.fp16", 1),
        ("streaming_fraction", 1),
        ("learned.pointwise", 1),
        ("learned.tensor_gemm", 1),
    ]
    for fit, factor in zip(calibration["constants"], (2.0, 1.25), strict=False):
        assert fit["after"] == pytest.approx(fit["before"] / factor)
    assert Path(calibration["path"]).is_file()
    assert l4_ms(shell) > 1.5 * before_ms
    explained = shell.run("predict", "trace.json", "--gpu", "L4", "--json").out
    reached = next(fit["after"] for fit in calibration["constants"] if fit["name"] == "learned.tensor_gemm")
    line = next(line for line in explained.splitlines() if "of the learned rate this GPU reaches" in line)
    assert f"tensor_gemm {reached:.2f}" in line


def test_corrections_of_networks_end_with_them(shell, recording):
    from advisor.formats.trace_files import write_trace

    write_trace(make_trace(ops=(make_measurement(name="aten::add").op,)), shell.folder / "trace.json")
    calibration = shell.run("calibrate", "--from", "l4.jsonl", "--json").document["calibration"]
    asked = ("predict", "trace.json", "--gpu", "L4", "--json")
    assert "calibrated: of the learned rate this GPU reaches pointwise" in shell.run(*asked).out
    path = Path(calibration["path"])
    path.write_text(path.read_text().replace('networks = "', 'networks = "older'))
    explained = shell.run(*asked).out
    assert "with networks of another version, so not corrected: run advisor calibrate again" in explained
    assert "of the learned rate this GPU reaches" not in explained


def test_a_zipped_recording_will_do(shell, recording):
    (shell.folder / "l4.jsonl.gz").write_bytes(gzip.compress(recording.read_bytes()))
    assert shell.run("calibrate", "--from", "l4.jsonl.gz").code == 0


def test_what_is_refused(shell):
    write_recording(shell.folder / "cpu.jsonl", [], backend="cpu", gpu=None)
    assert_plain_error(shell.run("calibrate", "--from", "cpu.jsonl"), 2, "backend cpu", "--backend cuda")
    write_recording(shell.folder / "z9.jsonl", [], gpu=None, device_name="NVIDIA Z9")
    assert_plain_error(shell.run("calibrate", "--from", "z9.jsonl"), 2, "'NVIDIA Z9'", "catalogs/gpus.toml")
    write_recording(shell.folder / "none.jsonl", [])
    assert_plain_error(shell.run("calibrate", "--from", "none.jsonl"), 1, "of these families: gemm")
    write_recording(shell.folder / "fast.jsonl", [make_measurement(time_s=6e-5, dtype="float16")])
    assert_plain_error(shell.run("calibrate", "--from", "fast.jsonl"), 1, "no share of a rate")
    assert_plain_error(shell.run("calibrate", "--from", "nothing"), 2, "no recording at 'nothing'")
    both = shell.run("calibrate", "--from", "fast.jsonl", "--python", sys.executable)
    assert_plain_error(both, 2, "'fast.jsonl' was measured already", "--python", "--from")
    assert not list(shell.folder.rglob("*.toml"))


def test_an_unknown_gpu_is_told_before_anything_is_measured(shell):
    path = with_nvidia_smi(shell, "NVIDIA Z9, 23034, 1, 0, 72.00")
    assert_plain_error(shell.run("calibrate", PATH=path), 2, "'NVIDIA Z9' is not in the catalog")


def test_a_broken_calibration_is_told_by_all(shell, recording):
    shell.run("calibrate", "--from", "l4.jsonl")
    (path,) = shell.folder.rglob("L4.toml")
    path.write_text("rubbish")
    assert_plain_error(shell.run("calibrate", "--from", "l4.jsonl"), 1, "L4.toml", "Delete it")
    path.unlink()
    assert shell.run("calibrate", "--from", "l4.jsonl").code == 0
