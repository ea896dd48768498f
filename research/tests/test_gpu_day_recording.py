"""The parts of a day, rehearsed on the CPU."""

import gzip
import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from advisor.formats.recording_files import read_recording
from advisor.kineto.export import STEP_MARK
from research.gpu_day import kernels, parts, plan, steps, sustained, timed_steps
from research.gpu_day.device import Device
from research.gpu_day.kernels import cases
from research.gpu_day.lines import KERNELS, Lines, read_lines
from research.gpu_day.parts import Day, record
from research.gpu_day.steps import Step, build, registry, run

torch = pytest.importorskip("torch")

TINY = Step(network="dcgan", precision="bf16", batch=2, tiny=True)
# Of torch alone, and with few weights.
OURS = (
    "unet2d",
    "unet3d",
    "dcgan",
    "translator_gnmt",
    "lstm_words",
    "dlrm",
    "dlrm_sparse",
    "speech_ctc",
    "experts",
)

ROOT = Path(__file__).parents[2]
MISSING = ("pydantic", "yaml", "rich", "typer", "platformdirs", "sqlalchemy", "requests", "pandas", "boto3",
           "altair", "cronsim", "gpuhunt")  # fmt: skip


def later(seconds=600.0):
    return time.time() + seconds


@pytest.mark.slow
def test_processes_record_the_host_and_kernels(tmp_path):
    said = []
    day = Day(folder=tmp_path, backend="cpu", tiny=True)
    record(day, 300.0, ["environment", "host", "kernels"], said.append)
    assert [line["ended"] for line in read_lines(tmp_path, "day") if "done" in line] == [["done"]] * 3
    host = {line["case"]: line for line in read_lines(tmp_path, "host") if "call_s" in line}
    assert host["forward/add"]["call_s"] >= host["forward/add"]["least_s"] > 0
    assert {"chain_both/linears", "optimizer/adamw_fused", "forward/linear_autocast"} <= host.keys()
    recording = read_recording(tmp_path / KERNELS)
    assert len(recording.measurements) + len(recording.skipped) == len(cases(tiny=True, backend="cpu"))
    assert len(said) == 6


@pytest.mark.slow
def test_kernels_need_none_of_our_packages_but_numpy(tmp_path):
    """The machine of the GPU has torch, and was not set up for us."""
    code = f"""
import sys
sys.modules.update(dict.fromkeys({MISSING!r}))
from pathlib import Path
from research.gpu_day.lines import Lines
from research.gpu_day.parts import run_part
folder = Path({str(tmp_path)!r})
run_part(Lines(folder, "kernels", {later()}), "cpu", True, folder)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    recording = read_recording(tmp_path / KERNELS)
    assert recording.header.backend == "cpu"
    assert {"aten::convolution", "aten::_ctc_loss", "aten::copy_"} <= {
        kernel.op.name for kernel in recording.measurements
    }


def test_a_step_is_timed_in_whole_and_in_phases(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "steps", lambda _: (TINY,))
    lines = Lines(tmp_path, "steps", later())
    timed_steps.time_steps(lines, "cpu", True, tmp_path)
    (line,) = [line for line in read_lines(tmp_path, "steps") if "case" in line]
    assert line["case"] == TINY.name == "dcgan/bf16/contiguous/b2/tiny"
    assert Step(**line["step"]) == TINY
    assert sum(line["phases_s"].values()) <= 1.5 * line["wall_s"]
    assert len(line["steps_s"]) == line["num_steps"]


def test_profiles_are_kept_with_steps_and_shapes(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "profiled", lambda _: (TINY,))
    timed_steps.profile_steps(Lines(tmp_path, "profiles", later()), "cpu", True, tmp_path)
    (line,) = [line for line in read_lines(tmp_path, "profiles") if "case" in line]
    with zipfile.ZipFile(tmp_path / line["trace"]) as archive:
        (name,) = archive.namelist()
        events = json.loads(archive.read(name))["traceEvents"]
    names = {event["name"] for event in events}
    assert {"aten::convolution", "aten::batch_norm"} <= names
    assert any(name.startswith(STEP_MARK) for name in names)
    assert all("Input Dims" in event["args"] for event in events if event["name"] == "aten::convolution")


def test_sustained_work_is_timed_chunk_by_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr(sustained, "_STEPS", (TINY,))
    sustained.sustain(Lines(tmp_path, "sustained", later()), "cpu", True, tmp_path)
    done = {line["case"]: line["chunks"] for line in read_lines(tmp_path, "sustained") if "case" in line}
    assert done.keys() == {"product_bf16", TINY.name}
    assert all(seconds > 0 and number >= 1 for chunks in done.values() for _, seconds, number in chunks)


def test_a_case_that_fails_is_told_and_ends_no_other(tmp_path):
    lines = Lines(tmp_path, "steps", later())
    lines.case("bad", lambda: {"wall_s": 1 / 0})
    lines.case("good", lambda: {"wall_s": 1.0})
    told = [line for line in read_lines(tmp_path) if "case" in line]
    assert told[0]["reason"] == "ZeroDivisionError: division by zero"
    assert told[1]["wall_s"] == 1.0


def test_a_case_that_a_dead_process_began_is_left_out(tmp_path):
    Lines(tmp_path, "steps", later()).write(begin="took the process with it")
    lines = Lines(tmp_path, "steps", later())
    lines.case("took the process with it", lambda: pytest.fail("it was begun again"))
    lines.case("next", dict)
    assert [line["case"] for line in read_lines(tmp_path) if "case" in line] == ["next"]


def test_a_process_whose_gpu_is_lost_ends(tmp_path):
    def lose():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(SystemExit):
        Lines(tmp_path, "steps", later()).case("bad", lose)
    (told,) = [line for line in read_lines(tmp_path) if "case" in line]
    assert "illegal memory access" in told["reason"]


def test_no_case_is_begun_after_the_time(tmp_path):
    Lines(tmp_path, "steps", later(-1)).case("late", lambda: pytest.fail("it was begun"))
    assert read_lines(tmp_path) == []


def test_a_half_line_does_not_count(tmp_path):
    Lines(tmp_path, "steps", later()).write(case="whole")
    with (tmp_path / "gpu_day.jsonl").open("a") as file:
        file.write('{"part": "steps", "ca')
    assert [line["case"] for line in read_lines(tmp_path)] == ["whole"]


def test_a_process_that_does_nothing_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "_start", lambda *_: _sleeping())
    day = Day(folder=tmp_path, backend="cpu", tiny=True, stall_s=0.2)
    record(day, 6.0, ["host"], lambda _: None)
    (done,) = [line for line in read_lines(tmp_path, "day") if "done" in line]
    assert set(done["ended"]) == {"nothing done for 0.2 s"}


def test_a_part_whose_time_is_over_ends_well(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "_start", lambda *_: _sleeping())
    monkeypatch.setattr(parts, "_GRACE_S", 0.0)
    monkeypatch.setattr(parts, "_START_S", 1.5)
    record(Day(folder=tmp_path, backend="cpu", tiny=True), 1.5, ["host"], lambda _: None)
    (done,) = [line for line in read_lines(tmp_path, "day") if "done" in line]
    assert done["ended"] == ["time over"]


def test_a_day_goes_on_where_another_stopped(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    Lines(first, "steps", later()).write(case="measured", wall_s=1.0)
    Lines(first, "steps", later()).write(begin="its time was over")
    (first / "gpu_day.jsonl.gz").write_bytes(gzip.compress((first / "gpu_day.jsonl").read_bytes()))
    (first / "gpu_day.jsonl").unlink()
    lines = Lines(second, "steps", later(), [first])
    lines.case("measured", lambda: pytest.fail("it was measured again"))
    lines.case("its time was over", dict)
    assert [line["case"] for line in read_lines(second) if "case" in line] == ["its time was over"]


def test_kernels_of_another_day_are_not_measured_again(tmp_path, monkeypatch):
    chosen = cases(tiny=True, backend="cpu")[:3]
    monkeypatch.setattr(kernels, "cases", lambda *_: chosen[:2])
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder, recorded in zip(folders, ([], folders[:1]), strict=True):
        folder.mkdir()
        kernels.time_kernels(Lines(folder, "kernels", later(), recorded), "cpu", True, folder)
        monkeypatch.setattr(kernels, "cases", lambda *_: chosen)
    done = [read_recording(folder / KERNELS).cases for folder in folders]
    assert done == [{case.key for case in chosen[:2]}, {chosen[2].key}]


def _sleeping():
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)


@pytest.mark.parametrize("network", OURS)
def test_networks_of_ours_train(network):
    work = build(Step(network=network, precision="fp32", batch=2, tiny=True), "cpu")
    before = [each.detach().clone() for each in work.model.parameters()]
    run(work)
    assert any(not torch.equal(old, new) for old, new in zip(before, work.model.parameters(), strict=True))
    assert all(each.grad is None for each in work.model.parameters())


def test_a_half_model_keeps_masters_in_fp32(monkeypatch):
    monkeypatch.setattr(steps, "_dtype", lambda known, step, _: known.get(step.precision) and torch.bfloat16)
    work = build(Step(network="dcgan", precision="o2", batch=2, tiny=True), "cpu")
    assert len(work.masters) == len(work.halves) > 0
    assert {each.dtype for each in work.halves} == {work.inputs[0].dtype} == {torch.bfloat16}
    assert {each.dtype for each in work.masters} == {torch.float32}
    norms = [module for module in work.model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    assert all(norm.weight.dtype == torch.float32 for norm in norms)
    run(work)
    for half, master in zip(work.halves, work.masters, strict=True):
        assert torch.equal(half, master.to(half.dtype))


@pytest.mark.parametrize("network", ["unet2d", "unet3d"])
def test_channels_last_reaches_inputs_and_weights(network):
    work = build(Step(network=network, precision="fp32", batch=2, layout="channels_last", tiny=True), "cpu")
    kept = torch.channels_last if network == "unet2d" else torch.channels_last_3d
    weights = [each for each in work.model.parameters() if each.dim() == work.inputs[0].dim()]
    assert all(each.is_contiguous(memory_format=kept) for each in (work.inputs[0], *weights))
    assert not work.inputs[0].is_contiguous()


def test_the_plan_names_networks_that_there_are_and_begins_with_one_step_of_each():
    planned = plan.steps()
    assert {step.network for step in planned} == set(registry())
    first = planned[: len(registry())]
    assert len({step.network for step in first}) == len(registry())
    assert len({step.name for step in planned}) == len(planned) > 100
    assert set(plan.profiled()) <= set(planned)


def test_what_cudnns_benchmark_makes_long_comes_last():
    benchmarked = [step.benchmark for step in plan.steps()]
    assert benchmarked == sorted(benchmarked)
    assert benchmarked.count(False) > 100


def test_kernels_are_enough_and_different():
    assert len({case.key for case in cases()}) == len(cases()) > 300


def test_a_cpu_has_no_memory_to_count():
    assert Device("cpu").memory() == {}
