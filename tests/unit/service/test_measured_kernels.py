"""Measuring and calibrating as use cases: what is handed on, noted and kept."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import advisor.measure
from advisor.config.layers import FLAG, TracingSettings
from advisor.config.settings import InputSettings, ProfileSettings
from advisor.core.errors import InputError, ProfileError
from advisor.core.findings.about_options import TimedOnCpu
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Job, PickName, Trace
from advisor.formats.recording_files import read_recording
from advisor.measure import Extent, grid
from advisor.payload.real_device import CPU_S, CpuStepClock
from advisor.predict.knowledge import read_calibration
from advisor.profile.profiling import time_on_cpu
from advisor.service.listening import Listener
from advisor.service.measured_kernels import MeasureRequest, calibrate_gpu, measure_kernels
from advisor.service.recommend import recommending
from advisor.service.recommend.pipeline import recommendation_of, with_variants
from advisor.workloads.cpu import CPU, CpuSteps
from tests.builders import make_plan, make_trace
from tests.listening import Heard
from tests.recommending import places
from tests.recordings import make_measurement, write_recording

PYTHON = Path("/p/python")


def measuring(monkeypatch: pytest.MonkeyPatch, steps: list[tuple[int, int]], end: type | None = None) -> Any:
    """A measurement that counts so; answers with the recording that is at its path."""
    calls: list[Any] = []

    def measure(cases: Any, path: Path, *, progress: Callable[[int, int], None], **options: Any) -> Any:
        calls.append((cases, options))
        for done, total in steps:
            progress(done, total)
        if end is not None:
            raise end
        return read_recording(path)

    monkeypatch.setattr(advisor.measure, "measure", measure)
    return calls


def request(path: Path) -> MeasureRequest:
    return MeasureRequest(extent=Extent.QUICK, out=path, families=("gemm",), backend="cpu")


def test_what_was_asked_for_is_measured(monkeypatch, tmp_path):
    path = write_recording(tmp_path / "k.jsonl", [make_measurement()], backend="cpu")
    calls = measuring(monkeypatch, [(0, 2), (1, 2), (2, 2)])
    heard = Heard()
    answer = measure_kernels(request(path), PYTHON, heard)
    assert answer.recording == read_recording(path)
    ((cases, options),) = calls
    assert cases == grid(Extent.QUICK, only=["gemm"], backend="cpu")
    assert options == {"backend": "cpu", "python": Path("/p/python")}
    assert heard.notes == []


def test_a_complete_recording_is_noted(monkeypatch, tmp_path):
    path = write_recording(tmp_path / "k.jsonl", [make_measurement()], backend="cpu")
    measuring(monkeypatch, [(2, 2)])
    heard = Heard()
    measure_kernels(request(path), PYTHON, heard)
    assert heard.notes == [f"{path} was complete already."]


@pytest.mark.parametrize(("steps", "words"), [([(0, 9), (4, 9)], "4 of 9 are kept in"), ([(0, 9)], None)])
def test_who_interrupts_hears_what_is_kept(monkeypatch, tmp_path, steps, words):
    measuring(monkeypatch, steps, KeyboardInterrupt)
    heard = Heard()
    with pytest.raises(KeyboardInterrupt):
        measure_kernels(request(tmp_path / "k.jsonl"), PYTHON, heard)
    assert [words in note for note in heard.notes] == ([] if words is None else [True])


def test_a_recording_is_fitted_to_and_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    kernels = [make_measurement(time_s=0.02, case=f"{n:016x}") for n in range(9)]
    path = write_recording(tmp_path / "k.jsonl", kernels)
    tracing = TracingSettings(profile=ProfileSettings(), input=InputSettings(), origins={})
    calibration, kept = calibrate_gpu(path, tracing, Heard())
    assert calibration.gpu == "L4"
    assert kept.is_file()
    stored = read_calibration("L4")
    assert stored is not None
    assert stored["source"].endswith(calibration.source)


def test_an_interpreter_for_a_recording_is_refused(tmp_path):
    given = TracingSettings(
        profile=ProfileSettings(), input=InputSettings(), origins={"profile.python": FLAG}
    )
    with pytest.raises(InputError, match=r"give profile\.python to measure here, or source"):
        calibrate_gpu(tmp_path / "k.jsonl", given, Heard())


T4 = resolve_gpu("T4")
SCRIPT = """
import torch
device = {device}
weights = torch.zeros(8, 1, device=device, requires_grad=True)
optimizer = torch.optim.SGD([weights], lr=0.1)
for step in range(100):
    optimizer.zero_grad()
    (torch.ones(4, 8, device=device) @ weights).sum().backward()
    optimizer.step()
"""
EITHER = '"cuda" if torch.cuda.is_available() else "cpu"'


@pytest.mark.parametrize(
    ("ends_s", "times_s"),
    [
        # The first step tells nothing.
        (range(1, 10), [1.0] * 8),
        ([5.0, 7.0, CPU_S + 1], [2.0, CPU_S - 6]),
        ([CPU_S + 1, CPU_S + 31], [30.0]),
    ],
)
def test_steps_are_timed_until_they_are_enough_or_late(ends_s, times_s):
    moments = iter([0.0, *ends_s])
    clock = CpuStepClock(lambda: next(moments))
    for number, _ in enumerate(ends_s, start=1):
        assert clock.result is None
        clock.end_span(number, {}, is_steady=True)
    assert clock.result == {"step_times_s": times_s}


def timed(script: Path) -> tuple[float, ...]:
    return time_on_cpu(
        script, [], python=None, timeout_s=120, fake_data=(), num_samples=None, sandbox=False,
        sandbox_read=(), env=(), variables={},
    )  # fmt: skip


@pytest.mark.torch
def test_a_script_that_runs_without_a_gpu_is_timed_and_another_is_not(tmp_path, warm_children):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(device=EITHER))
    times_s = timed(script)
    assert len(times_s) == CpuStepClock.num_spans
    assert all(time_s > 0 for time_s in times_s)
    script.write_text(SCRIPT.format(device='"cuda"'))
    with pytest.raises(ProfileError):
        timed(script)


def steps_of(time_s: float) -> CpuSteps:
    return CpuSteps(cpu="Some CPU", times_s=(time_s, time_s * 1.1), memory_bytes=2**34, num_vcpus=4)


def answer(time_s: float) -> Any:
    steps = steps_of(time_s)
    plans, gpus = [make_plan("T4", usd_per_h=0.5), steps.plan], {T4.name: T4, CPU: steps.spec}
    there = replace(places(plans, gpus, Job(iterations=1000)), cpu=steps)
    trace = make_trace()
    return with_variants(recommendation_of(trace, there), trace, there, ("compile",))


def test_a_cpu_that_is_fast_enough_is_recommended_for_nothing():
    chosen = answer(0.01).chosen
    assert (chosen.plan.id, chosen.plan.gpu, chosen.cost_usd.p90) == ("local/cpu", CPU, 0)
    # A thousand steps of 10.5 ms, from now on.
    assert chosen.time_s.p50 == pytest.approx(10.5)
    assert chosen.time_s.p90 > chosen.time_s.p50
    assert chosen.work == ()
    assert any(isinstance(reason, TimedOnCpu) for reason in chosen.reasons)


def test_one_that_takes_weeks_is_the_cheapest_and_no_more():
    ranked = answer(3600.0)
    assert ranked.chosen.plan.gpu == "T4"
    assert {pick.name: pick.plan_id for pick in ranked.picks}[PickName.CHEAPEST] == "local/cpu"


@pytest.mark.parametrize(
    ("change", "is_asked"),
    [
        ({}, True),
        ({"is_on": False}, False),
        ({"gpus": ("T4",)}, False),
        ({"source": make_trace()}, False),
        ({"trace": {"memory": replace(make_trace().memory, peak_bytes=2**60)}}, False),
        ({"trace": {"world_size": 8}}, False),
        ({"most_flops": -1.0}, False),
    ],
)
def test_only_small_scripts_are_timed_and_where_nothing_forbids_it(tmp_path, monkeypatch, change, is_asked):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    monkeypatch.setattr(recommending, "MOST_FLOPS", change.get("most_flops", 1e15))
    monkeypatch.setattr(recommending, "steps_on_cpu", lambda *_: (0.5, 0.6))
    request: Any = SimpleNamespace(
        trace=SimpleNamespace(source=change.get("source", script)), gpus=change.get("gpus", ())
    )
    settings = SimpleNamespace(local=SimpleNamespace(cpu=change.get("is_on", True)), profile=None)
    before = places([make_plan("T4")], {T4.name: T4}, Job(iterations=10))
    trace: Trace = make_trace(**change.get("trace", {}))
    config: Any = SimpleNamespace(settings=settings)
    after = recommending.with_cpu(before, trace, request, config, Listener())
    assert ("local/cpu" in {plan.id for plan in after.plans}) == is_asked


def test_one_that_cannot_run_there_leaves_everything_as_it_was(tmp_path, monkeypatch):
    """And one whose job has no known length is not timed first."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)

    def fails(*_: object) -> tuple[float, ...]:
        raise ProfileError("no CUDA")

    monkeypatch.setattr(recommending, "MOST_FLOPS", 1e15)
    monkeypatch.setattr(recommending, "steps_on_cpu", fails)
    request: Any = SimpleNamespace(trace=SimpleNamespace(source=script), gpus=())
    config: Any = SimpleNamespace(settings=SimpleNamespace(local=SimpleNamespace(cpu=True), profile=None))
    before = places([make_plan("T4")], {T4.name: T4}, Job(iterations=10))
    assert recommending.with_cpu(before, make_trace(), request, config, Listener()) is before
    endless = make_trace(iterations_per_epoch=None)
    with pytest.raises(InputError):
        recommending.with_cpu(replace(before, job=Job(epochs=1.0)), endless, request, config, Listener())


PROGRAM = """
import os, sys
from advisor.service.recommend.pipeline import load_numpy
load_numpy()
import numpy
numpy.ones((900, 900)) @ numpy.ones((900, 900))
print(os.environ.get("OPENBLAS_NUM_THREADS"), "numpy" in sys.modules, len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
@pytest.mark.parametrize(("given", "printed"), [(None, "None True 1"), ("2", "2 True 2")])
def test_numpy_has_one_thread_unless_the_user_says_otherwise(given, printed):
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    if (os.cpu_count() or 1) < 2:
        pytest.skip("needs two cores")
    variable = {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=kept | variable, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == printed
