"""Times whole steps, and records the kernels of some of them."""

from __future__ import annotations

import gc
import json
import statistics
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import torch

from . import plan
from .device import Device, Mark
from .lines import Lines
from .steps import Step, Work, build, run

# At full size, and at the tiny one.
_WARM_UPS = {False: 4, True: 1}
_LEAST_STEPS, _MOST_STEPS = {False: 5, True: 2}, 60
# Long enough for clocks to show.
_TIMED_S = {False: 0.7, True: 0.02}
_WARM_UP_S = 1.0
_MOST_KERNELS = 80
_SPANS = ("ProfilerStep", "Optimizer.")
# Of one file that comes back from a machine.
_MOST_ZIP_BYTES = 14 * 2**20
_MOST_ZIPS = 5


def time_steps(lines: Lines, backend: str, tiny: bool, folder: Path) -> None:
    """Time each step of the plan."""
    device = Device(backend)
    for step in plan.steps(tiny):
        lines.case(step.name, lambda step=step: {"step": asdict(step), **_timed(step, device)})  # type: ignore[misc]
        _clear(device)


def profile_steps(lines: Lines, backend: str, tiny: bool, folder: Path) -> None:
    """Record the kernels of the plan's steps, and keep the profiler's files."""
    device = Device(backend)
    for step in plan.profiled(tiny):
        lines.case(step.name, lambda step=step: {"step": asdict(step), **_profiled(step, device, folder)})  # type: ignore[misc]
        _clear(device)


def _clear(device: Device) -> None:
    gc.collect()
    device.forget()


def _timed(step: Step, device: Device) -> Mapping[str, object]:
    begin_s = time.perf_counter()
    work = build(step, device.name)
    device.wait()
    built = device.memory()
    first_s = _seconds(work, device)
    warmed_s = time.perf_counter()
    for _ in range(_WARM_UPS[step.tiny]):
        warm_s = _seconds(work, device)
        if time.perf_counter() - warmed_s > _WARM_UP_S:
            break
    prepared_s = time.perf_counter() - begin_s
    number = max(_LEAST_STEPS[step.tiny], min(_MOST_STEPS, int(_TIMED_S[step.tiny] / warm_s)))
    warm = device.memory()
    device.reset_peak()
    begun_s = time.time()
    marks: list[list[Mark]] = []
    host_s: list[list[float]] = []
    device.wait()
    wall_s = time.perf_counter()
    for _ in range(number):
        _marked(work, device, marks, host_s)
    launched_s = time.perf_counter() - wall_s
    device.wait()
    wall_s = time.perf_counter() - wall_s
    return {
        "wall_s": wall_s / number,
        "launched_s": launched_s / number,
        "num_steps": number,
        "first_s": first_s,
        "prepared_s": prepared_s,
        "begun_s": begun_s,
        "ended_s": time.time(),
        **_phases(marks, host_s),
        "built": built,
        # With what cuDNN tried while it chose its algorithms.
        "warm": warm,
        "memory": device.memory(),
        # A scale that fell says that the optimizer skipped steps.
        "scale": work.scaler.get_scale(),
        "loss": float(work.forward().detach()),
        "num_parameters": sum(each.numel() for each in work.model.parameters()),
    }


def _seconds(work: Work, device: Device) -> float:
    begin_s = time.perf_counter()
    run(work)
    device.wait()
    return time.perf_counter() - begin_s


def _marked(work: Work, device: Device, marks: list[list[Mark]], host_s: list[list[float]]) -> None:
    """One step with a mark before and after each phase, on the device and on the host."""
    own, host = [device.mark()], [time.perf_counter()]
    loss = work.forward()
    own.append(device.mark())
    host.append(time.perf_counter())
    work.backward(loss)
    own.append(device.mark())
    host.append(time.perf_counter())
    work.optimize()
    own.append(device.mark())
    host.append(time.perf_counter())
    marks.append(own)
    host_s.append(host)


def _phases(marks: list[list[Mark]], host_s: list[list[float]]) -> Mapping[str, object]:
    names = ("forward", "backward", "optimizer")
    on_device = [[first.seconds_to(second) for first, second in pairwise(own)]
                 for own in marks]  # fmt: skip
    on_host = [[second - first for first, second in pairwise(own)] for own in host_s]
    return {
        "phases_s": dict(zip(names, map(statistics.median, zip(*on_device, strict=True)), strict=True)),
        "host_phases_s": dict(zip(names, map(statistics.median, zip(*on_host, strict=True)), strict=True)),
        "steps_s": [round(own[0].seconds_to(own[-1]), 7) for own in marks],
    }


def _profiled(step: Step, device: Device, folder: Path) -> Mapping[str, object]:
    work = build(step, device.name)
    for _ in range(_WARM_UPS[step.tiny]):
        _seconds(work, device)
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if device.name == "cuda":
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)
    with torch.profiler.profile(activities=kinds, schedule=schedule, record_shapes=True) as profiler:
        for _ in range(2):
            run(work)
            device.wait()
            profiler.step()
    kernels = _kernels(profiler)
    longest = sorted(kernels.items(), key=lambda item: -item[1][1])
    return {
        "kernels_s": sum(seconds for _, seconds in kernels.values()),
        "num_kernels": sum(count for count, _ in kernels.values()),
        "kernels": [
            [name[:160], count, round(seconds, 9)]
            for name, (count, seconds) in longest[:_MOST_KERNELS]
        ],
        "trace": _kept(profiler, step.name.replace("/", "-") + ".json", folder),
    }  # fmt: skip


def _kernels(profiler: torch.profiler.profile) -> dict[str, tuple[int, float]]:
    """Kernel -> how many times it ran, and seconds of all."""
    counts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    inner = profiler.profiler
    assert inner is not None
    for event in inner.kineto_results.events():
        # What a script or an optimizer names is a span over kernels, and would count them twice.
        if event.device_type() == torch.autograd.DeviceType.CUDA and not event.name().startswith(_SPANS):
            counts[event.name()] += 1
            seconds[event.name()] += 1e-9 * event.duration_ns()  # type: ignore[assignment]
    return {name: (counts[name], float(seconds[name])) for name in counts}


def _kept(profiler: torch.profiler.profile, name: str, folder: Path) -> str | None:
    """The archive that got the profiler's file; None where all are full."""
    with tempfile.TemporaryDirectory() as scratch:
        exported = Path(scratch, name)
        profiler.export_chrome_trace(str(exported))
        small = json.dumps(_needed(json.loads(exported.read_bytes())), separators=(",", ":"))
    for number in range(1, _MOST_ZIPS + 1):
        path = folder / f"traces-{number}.zip"
        if path.exists() and path.stat().st_size > _MOST_ZIP_BYTES:
            continue
        with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, small)
        return path.name
    return None


def _needed(document: dict[str, object]) -> dict[str, object]:
    """Without what no reader of ours looks at: arrows, names of Python's frames."""
    events = document["traceEvents"]
    assert isinstance(events, list)
    kept = [event for event in events if event.get("cat") not in ("python_function", "ac2g", "fwdbwd")]
    return {**document, "traceEvents": kept}
