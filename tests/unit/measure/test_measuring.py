"""The parent: what it keeps when its child dies, lies, hangs or is another's."""

import json
import os
import sys
from pathlib import Path

import pytest

from advisor.core.errors import GpuUnusableError, InputError, ProfileError, RecordingError
from advisor.formats.recording_files import read_recording
from advisor.measure import Extent, grid, measure
from advisor.measure import measuring as session
from advisor.payload.protocol import VERSION
from tests.programs import write_program
from tests.recordings import write_recording

CASES = grid(Extent.QUICK, only=["bmm"], backend="cpu")
# Speaks as Python does when asked, and then plays the measuring process as the test's plot says.
STUB = """#!{python}
import json, os, signal, sys, time
if sys.argv[1] == "-I":
    print("Python speaks")
    sys.exit()
job = json.load(open(sys.argv[2]))
count = "{folder}/runs"
run = int(open(count).read()) if os.path.exists(count) else 0
open(count, "w").write(str(run + 1))

def tell(**line):
    with open(job["progress"], "a") as out:
        out.write(json.dumps(line) + "\\n")

def device(name="some CPU", torch="2.13.0"):
    tell(device={{"name": name, "compute_capability": None, "versions": {{"torch": torch}}}})

def case(number=0, **line):
    square = {{"shape": [8, 8], "dtype": "float32", "stride": [8, 1]}}
    operator = {{"name": "aten::mm", "phase": "forward", "inputs": [square, square], "outputs": [square],
                "attributes": {{}}, "count": 1}}
    known = {{"operator": operator, "time_s": 1e-3, "spread": 0.01, "num_samples": 7,
             "precision": {{"amp_dtype": None, "tf32_matmul": False, "tf32_cudnn": False}}}}
    tell(case=job["cases"][number]["key"], **(line or known))

def rest():
    for number in range(len(job["cases"])):
        case(number)

def end(status, **details):
    with open(job["result"] + ".part", "w") as out:
        json.dump({{"format_version": {VERSION}, "status": status, **details}}, out)
    os.replace(job["result"] + ".part", job["result"])

def die():
    os.kill(os.getpid(), signal.SIGSEGV)

{plot}
"""


@pytest.fixture
def play(tmp_path):
    """Measures with a child that follows a plot; gives the recording's path."""
    out = tmp_path / "k.jsonl"

    def run(plot: str, **options):
        stub = STUB.format(VERSION=VERSION, python=sys.executable, folder=tmp_path, plot=plot)
        python = write_program(tmp_path / "python", stub)
        (tmp_path / "runs").unlink(missing_ok=True)
        return measure(CASES, out, **{"backend": "cpu", "python": python, **options})

    return run


def test_each_line_is_kept(play, tmp_path):
    counts: list[tuple[int, int]] = []
    plot = "device(); tell(reference_s=1e-3); rest(); tell(reference_s=1.1e-3); end('ok')"
    spans = play(plot, progress=lambda done, total: counts.append((done, total)))
    assert [entry.case for entry in spans.measurements] == [case.key for case in CASES]
    assert spans.measurements[0].op.flops == 2 * 8**3
    assert spans.measurements[0].op.bytes == 3 * 8 * 8 * 4
    assert spans.references_s == (1e-3, 1.1e-3)
    assert (spans.header.device_name, spans.header.gpu, spans.header.backend) == ("some CPU", None, "cpu")
    assert counts == [(done, len(CASES)) for done in range(len(CASES) + 1)]


def test_a_finished_recording_starts_nothing(play, tmp_path):
    play("device(); rest(); end('ok')")
    before = (tmp_path / "k.jsonl").read_bytes()
    assert len(play("die()").measurements) == len(CASES)
    assert (tmp_path / "k.jsonl").read_bytes() == before
    assert not (tmp_path / "runs").exists()


def test_the_case_that_killed_the_process_is_left_out_and_the_rest_is_measured(play):
    spans = play("device()\nif run == 0:\n    case(); die()\nrest(); end('ok')")
    (skipped,) = spans.skipped
    assert skipped.case == CASES[1].key
    assert skipped.reason == "ended its process with code -11"
    assert len(spans.measurements) == len(CASES) - 1


def test_a_process_that_dies_after_the_last_case_has_done_its_work(play, tmp_path):
    spans = play("device(); rest(); die()")
    assert (len(spans.measurements), spans.skipped) == (len(CASES), ())
    assert (tmp_path / "runs").read_text() == "1"


def test_a_lost_device_gets_a_new_process(play):
    plot = (
        "device()\nif run == 0:\n    case(reason='CUDA error'); end('lost_device')\nelse: rest(); end('ok')"
    )
    spans = play(plot)
    assert [(entry.case, entry.reason) for entry in spans.skipped] == [(CASES[0].key, "CUDA error")]
    assert len(spans.measurements) == len(CASES) - 1


def test_a_device_that_is_lost_again_and_again_is_given_up(play, monkeypatch):
    monkeypatch.setattr(session, "MOST_LOSSES", 2)
    plot = "device(); case(reason='CUDA error'); end('lost_device', message='CUDA error: broken')"
    with pytest.raises(GpuUnusableError, match=r"failed 3 times.*broken.*k\.jsonl.*dmesg"):
        play(plot)


def test_a_process_that_never_saw_a_device_is_not_tried_again(play, tmp_path):
    with pytest.raises(ProfileError, match="ended its process with code -11"):
        play("print('a last word', flush=True); die()")
    assert (tmp_path / "runs").read_text() == "1"
    assert not (tmp_path / "k.jsonl").exists()


def test_a_process_that_hangs_is_ended(play, monkeypatch):
    monkeypatch.setattr(session, "STALL_S", 3.0)
    spans = play("device()\nif run == 0:\n    case(); time.sleep(60)\nrest(); end('ok')")
    assert [entry.reason for entry in spans.skipped] == ["took longer than 3 s"]


@pytest.mark.parametrize(
    ("plot", "kind", "words"),
    [
        ("end('no_torch', message='none')", InputError, "has no torch"),
        ("end('broken_torch', message='ImportError: x')", InputError, "cannot be imported: ImportError: x"),
        ("end('old_torch', message='2.1')", InputError, "too old"),
        ("end('strange_torch', message='torch.x', torch='2.9')", InputError, "lacks torch.x"),
        ("end('no_cuda', message='torch 2 finds no CUDA device')", GpuUnusableError, "--backend cpu"),
        (
            "device(); end('full_device', message='CUDA out of memory')",
            GpuUnusableError,
            "nvidia-smi.*repeat",
        ),
        ("end('full_device', message='CUDA error')", GpuUnusableError, r"no memory left .*\(CUDA error\)"),
        ("device(); end('crashed', message='KeyError()', traceback='...')", ProfileError, "report this"),
    ],
)
def test_what_keeps_it_from_measuring_is_told(play, plot, kind, words):
    with pytest.raises(kind, match=words):
        play(plot)


def test_no_interpreter_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr("advisor.profile.environment.candidates", lambda *_: [])
    with pytest.raises(InputError, match="no Python interpreter was found"):
        measure(CASES, tmp_path / "k.jsonl", backend="cpu")


def test_the_next_interpreter_is_asked_where_one_has_no_torch(play, tmp_path, monkeypatch):
    folders = [tmp_path / name for name in ("without", "with")]
    plots = ("end('no_torch')", "device(); rest(); end('ok')")
    for folder, plot in zip(folders, plots, strict=True):
        stub = STUB.format(VERSION=VERSION, python=sys.executable, folder=folder, plot=plot)
        write_program(folder / "bin/python", stub)
    monkeypatch.setenv("VIRTUAL_ENV", str(folders[0]))
    monkeypatch.setenv("CONDA_PREFIX", str(folders[1]))
    recording = measure(CASES, tmp_path / "k.jsonl", backend="cpu")
    assert len(recording.measurements) == len(CASES)


@pytest.mark.parametrize(
    ("plot", "words"),
    [
        ("device(name='another CPU')", "device some CPU, and this is device another CPU"),
        ("device(torch='2.14.0')", "torch 2.13.0, and this is torch 2.14.0"),
    ],
)
def test_times_of_two_devices_are_not_mixed(play, tmp_path, plot, words):
    with pytest.raises(ProfileError):
        play("device(); case(); end('crashed')")
    before = (tmp_path / "k.jsonl").read_bytes()
    with pytest.raises(RecordingError, match=words):
        play(plot + "; rest(); end('ok')")
    assert (tmp_path / "k.jsonl").read_bytes() == before


def test_a_half_line_is_dropped_when_it_goes_on(play, tmp_path):
    with pytest.raises(ProfileError):
        play("device(); case(); case(1); end('crashed')")
    path = tmp_path / "k.jsonl"
    path.write_bytes(path.read_bytes()[:-25])
    spans = play("device(); rest(); end('ok')")
    assert sorted(entry.case for entry in spans.measurements) == sorted(case.key for case in CASES)


def test_a_recording_of_a_gpu_is_not_continued_on_a_cpu_and_other_files_are_left_alone(play, tmp_path):
    path = tmp_path / "k.jsonl"
    write_recording(path, [])
    with pytest.raises(RecordingError, match="backend cuda, not cpu"):
        play("rest()")
    path.write_text("my thesis")
    with pytest.raises(RecordingError, match="not a recording"):
        play("rest()")
    assert path.read_text() == "my thesis"
    for name, words in (("no/k.jsonl", "there is no folder"), ("k.jsonl.gz", "run gzip afterwards")):
        with pytest.raises(RecordingError, match=words):
            measure(CASES, tmp_path / name, backend="cpu")


def test_a_disk_that_is_full_ends_it(play, tmp_path, monkeypatch):

    def full(path: Path, entry: object) -> None:
        raise RecordingError("cannot write: No space left on device")

    monkeypatch.setattr("advisor.formats.recording_files.append_entry", full)
    with pytest.raises(RecordingError, match="No space left"):
        play("device(); rest(); time.sleep(60)")
    assert read_recording(tmp_path / "k.jsonl").measurements == ()


BUSY = "echo 'NVIDIA L4, 23034, 18000, 97, 72.00'"


def test_a_busy_gpu_is_not_measured(tmp_path, monkeypatch):
    write_program(tmp_path / "nvidia-smi", BUSY)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(GpuUnusableError, match=r"NVIDIA L4 is busy \(97% utilized\): times would be wrong"):
        measure(CASES, tmp_path / "k.jsonl", backend="cuda")


STATE = """#!/bin/sh
case "$*" in
  *driver_version*) echo "580.95, 1200, 2040, 72.00" ;;
  *) echo "NVIDIA L4, 23034, 1, 0, 72.00" ;;
esac
"""


def test_the_header_tells_what_nvidia_smi_knows(play, tmp_path, monkeypatch):
    write_program(tmp_path / "nvidia-smi", STATE)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    header = play("device(name='NVIDIA L4'); rest(); end('ok')", backend="cuda").header
    assert (header.gpu, header.versions["driver"]) == ("L4", "580.95")
    assert (header.sm_clock_hz, header.max_sm_clock_hz, header.power_limit_w) == (1.2e9, 2.04e9, 72.0)
    # One that the catalog lacks is measured all the same.
    (tmp_path / "k.jsonl").unlink()
    header = play("device(name='NVIDIA Z999'); rest(); end('ok')", backend="cuda").header
    assert (header.device_name, header.gpu) == ("NVIDIA Z999", None)


def test_a_finished_recording_is_read_whoever_uses_the_gpu(play, tmp_path, monkeypatch):
    play("device(name='NVIDIA L4'); rest(); end('ok')", backend="cuda")
    write_program(tmp_path / "nvidia-smi", BUSY)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert len(play("die()", backend="cuda").measurements) == len(CASES)


def test_the_job_is_plain_json_with_the_reference(play, tmp_path):
    play(f"import shutil; shutil.copy(sys.argv[2], '{tmp_path}/job'); device(); rest(); end('ok')")
    job = json.loads((tmp_path / "job").read_text())
    assert job["module"] == "grid_run"
    assert job["reference"]["call"]["operator"] == "aten::mm.default"
    assert [case["key"] for case in job["cases"]] == [case.key for case in CASES]
