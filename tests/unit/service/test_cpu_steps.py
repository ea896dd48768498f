"""This machine's CPU: a small script's steps are timed on it, and it is an option then."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from advisor.core.errors import InputError, ProfileError
from advisor.core.findings.about_options import TimedOnCpu
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Job, PickName, Trace
from advisor.payload.real_device import CPU_S, CpuStepClock
from advisor.profile.profiling import time_on_cpu
from advisor.service.listening import Listener
from advisor.service.recommend import recommending
from advisor.service.recommend.pipeline import recommendation_of, with_variants
from advisor.workloads.cpu import CPU, CpuSteps
from tests.builders import make_plan, make_trace
from tests.recommending import places

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
