"""``profile`` with interpreters that are small shell scripts: what they are told, and what becomes of it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from advisor.core.errors import InputError, ProfileError, UnknownGpuError
from advisor.core.gpus import resolve_gpu
from advisor.profile import profiling as session
from advisor.profile.attempt import ScriptGpu
from advisor.profile.profiling import pretend, profile
from tests.programs import write_program
from tests.unit.profile.test_recording import recording

SECRET = "hunter22-hunter22"
# What tells an interpreter from another program.
ANSWERS = '[ "$1" = -I ] && echo Python speaks && exit'


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("raise SystemExit('never run here')\n")
    return path


def interpreter(folder: Path, name: str, **result: Any) -> Path:
    """Keeps its command line and job file, prints a line, leaves a result, and ends."""
    home = folder / name
    home.mkdir()
    if result:
        (home / "result.json").write_text(json.dumps(recording(**result)))
    return write_program(
        home / "python",
        f"""{ANSWERS}
printf '%s\\n' "$@" > '{home}/argv'
cp "$2" '{home}/job.json'
env > '{home}/environ'
folder=$(dirname "$2")
echo "printed with password={SECRET}"
echo "step 1 of 3" > "$folder/progress.txt"
[ -f '{home}/result.json' ] && cp '{home}/result.json' "$folder/result.json"
exit 3""",
    )


@pytest.fixture
def good(tmp_path):
    return interpreter(tmp_path, "good", status="ok")


def result_of(program: Path) -> dict[str, Any]:
    return json.loads((program.parent / "job.json").read_text())


def with_interpreters(monkeypatch: pytest.MonkeyPatch, *programs: Path) -> None:
    monkeypatch.setattr(session, "candidates", lambda *_: list(programs))


def test_the_child_is_told_the_script_its_arguments_and_the_gpu(script, good):
    trace = profile(script, ["--lr", "0.1"], python=good, gpu=pretend("T4"))
    job = result_of(good)
    assert (job["script"], job["arguments"]) == (str(script), ["--lr", "0.1"])
    assert job["skip_patches"] == []
    assert job["gpu"] == {
        "name": "NVIDIA T4",
        "compute_capability": "7.5",
        "num_sms": 40,
        "memory_bytes": resolve_gpu("T4").memory_bytes,
    }
    assert (trace.script, trace.arguments, trace.batch_size) == (str(script), ("--lr", "0.1"), 64)


def test_the_child_is_the_child_program_and_its_files_lie_apart(script, good):
    profile(script, python=good)
    child, job_path = (good.parent / "argv").read_text().splitlines()
    assert Path(child).name == "child.py"
    assert Path(child).is_file()
    job = result_of(good)
    parents = {Path(path).parent for path in (job_path, job["result"], job["progress"])}
    assert len(parents) == 1
    assert not parents.pop().exists()


def test_without_a_wish_the_gpu_is_one_that_can_do_all_precisions(script, good):
    profile(script, python=good)
    gpu = ScriptGpu(**result_of(good)["gpu"])
    assert gpu == ScriptGpu()
    spec = resolve_gpu("A100-SXM-80GB")
    assert (gpu.compute_capability, gpu.num_sms) == (spec.compute_capability, spec.num_sms)
    # A little less than the 80 GiB on the label, as the driver says.
    assert 0.98 < gpu.memory_bytes / spec.memory_bytes <= 1


def test_secrets_reach_neither_the_child_nor_the_trace(script, good, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", SECRET)
    monkeypatch.setenv("TORCH_HOME", "kept")
    trace = profile(script, ["--name", SECRET, "--api-key", "abc"], python=good)
    environment = (good.parent / "environ").read_text()
    assert "TORCH_HOME=kept" in environment
    assert SECRET not in environment
    assert trace.arguments == ("--name", "***", "--api-key", "***")
    # The script itself needs what it was given.
    assert result_of(good)["arguments"] == ["--name", SECRET, "--api-key", "abc"]


@pytest.mark.parametrize(
    ("details", "words"),
    [
        ({"message": f"before {SECRET} after", "traceback": "y"}, r"before \*\*\* after"),
        ({"message": "x", "traceback": f"before {SECRET} after"}, r"before \*\*\* after"),
        ({"message": "x", "traceback": None}, r"damaged recording \(traceback"),
    ],
)
def test_an_error_is_text_without_secrets(details, words, script, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", SECRET)
    with pytest.raises(ProfileError, match=words) as caught:
        profile(script, python=interpreter(tmp_path, "bad", status="crashed", **details))
    assert SECRET not in str(caught.value)


def test_the_end_of_the_output_is_told_without_secrets(script, tmp_path):
    python = interpreter(tmp_path, "silent")
    with pytest.raises(ProfileError, match=r"password=\*\*\*") as caught:
        profile(script, python=python)
    assert "exit code 3" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_an_interpreter_without_torch_is_passed_over(script, tmp_path, monkeypatch):
    first = interpreter(tmp_path, "first", status="no_torch")
    second = interpreter(tmp_path, "second", status="ok")
    third = interpreter(tmp_path, "third", status="ok")
    with_interpreters(monkeypatch, first, second, third)
    messages: list[str] = []
    profile(script, progress=messages.append)
    assert (first.parent / "argv").exists()
    assert (second.parent / "argv").exists()
    assert not (third.parent / "argv").exists()
    tried = [line for line in messages if line.startswith("profiling")]
    assert [str(first) in tried[0], str(second) in tried[1], len(tried)] == [True, True, 2]
    assert messages.count("step 1 of 3") == 2


def test_if_none_has_torch_the_last_one_is_named(script, tmp_path, monkeypatch):
    first = interpreter(tmp_path, "first", status="no_torch")
    second = interpreter(tmp_path, "second", status="no_torch")
    with_interpreters(monkeypatch, first, second)
    with pytest.raises(InputError, match="no torch") as caught:
        profile(script)
    assert str(second) in str(caught.value)
    assert str(first) not in str(caught.value)


@pytest.mark.parametrize("status", ["old_torch", "broken_torch", "crashed", "missing_module"])
def test_any_other_failure_ends_the_search(status, script, tmp_path, monkeypatch):
    first = interpreter(tmp_path, "first", status=status, message="why")
    second = interpreter(tmp_path, "second", status="ok")
    with_interpreters(monkeypatch, first, second)
    with pytest.raises((InputError, ProfileError), match="why"):
        profile(script)
    assert not (second.parent / "argv").exists()


def test_no_interpreter_at_all(script, monkeypatch):
    with_interpreters(monkeypatch)
    with pytest.raises(InputError, match=r"`profile\.python`"):
        profile(script)


def test_the_timeout_is_told(script, tmp_path):
    python = write_program(tmp_path / "python", f"{ANSWERS}\nexec sleep 60")
    with pytest.raises(ProfileError, match=r"within 0\.05 s"):
        profile(script, python=python, timeout_s=0.05)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("train.py", {"backend": "tpu"}, r"'tpu'.*auto, cuda, fake, cpu"),
        ("train.py", {"world_size": 0}, "world_size must be a whole number .* got 0"),
        ("train.py", {"world_size": -1}, "world_size must be a whole number .* got -1"),
        ("no.py", {}, "no script"),
        (".", {}, "folder"),
        ("train.ipynb", {}, "nbconvert"),
    ],
)
def test_what_cannot_be_profiled_is_refused(script, tmp_path, name, options, words):
    (tmp_path / "train.ipynb").write_text("{}")
    with pytest.raises(InputError, match=words):
        profile(tmp_path / name, **options)


def test_a_script_that_may_not_be_read(script, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: not (Path(path) == script and mode == os.R_OK))
    with pytest.raises(InputError, match="permissions"):
        profile(script)


def test_only_cuda_gpus_can_be_pretended():
    with pytest.raises(InputError, match="MI300X"):
        pretend("MI300X")
    with pytest.raises(UnknownGpuError):
        pretend("no such GPU")


def test_a_script_that_needs_torchrun_gets_a_world_of_one(script, tmp_path):
    python = interpreter(tmp_path, "torchrun", status="needs_torchrun", message="KeyError: 'RANK'")
    home = python.parent
    # The second time it has what it needs.
    program = python.read_text().replace("exit 3", f"cp '{home}/second.json' '{home}/result.json'; exit 3")
    (home / "second.json").write_text(json.dumps(recording(status="ok")))
    python.write_text(program)
    assert profile(script, python=python).batch_size == 64
    assert result_of(python)["world_size"] == 1


@pytest.mark.parametrize("world_size", [None, 8])
def test_the_child_is_told_the_world(script, good, world_size):
    profile(script, python=good, world_size=world_size)
    assert result_of(good)["world_size"] == world_size


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("advisor.profile.attempt._ROOM_BYTES", 2**62, r"temporary folder: .*No space left.*TMPDIR"),
        ("tempfile.tempdir", "/gone/with/all", r"cannot use the temporary folder.*TMPDIR"),
    ],
)
def test_a_folder_without_room_or_none_is_told(script, tmp_path, monkeypatch, name, value, words):
    python = interpreter(tmp_path, "silent")
    monkeypatch.setattr(name, value)
    with pytest.raises(InputError, match=words):
        profile(script, python=python)


def test_other_faults_are_not_blamed_on_the_folder(script, tmp_path):
    def broken_pipe(_: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        profile(script, python=interpreter(tmp_path, "good", status="ok"), progress=broken_pipe)


def test_a_sandbox_is_checked_before_anything_runs(script, tmp_path, monkeypatch, good):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="bubblewrap"):
        profile(script, python=good, sandbox=True)
    assert not (good.parent / "argv").exists()


def test_temporary_files_of_the_script_lie_with_the_job(script, good):
    profile(script, python=good)
    environ = dict(line.split("=", 1) for line in (good.parent / "environ").read_text().splitlines())
    job = (good.parent / "argv").read_text().splitlines()[1]
    assert environ["TMPDIR"] == environ["TMP"] == str(Path(job).parent / "tmp")
