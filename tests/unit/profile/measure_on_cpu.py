"""Runs the measurement of a real GPU on CPU tensors: the profiler is real, CUDA's clock is not.

Usage: ``python -m tests.unit.profile.measure_on_cpu FOLDER CASES.json``: for each name the samples of each
span. Each is measured in a fork and leaves the files ``NAME.timeline.json`` and ``NAME.result.json``
in the folder.
"""

import importlib
import json
import os
import sys
from pathlib import Path

import torch

from tests.unit.profile.probe_server import CHILD, GPU
from tests.warm.server import load

SPAN_S = 0.5


class Event:
    """An iteration of 64 samples takes half a second, one of others in proportion."""

    now_ms = 0.0

    def __init__(self, *, enable_timing):
        assert enable_timing

    def record(self):
        self.recorded_ms = Event.now_ms

    def elapsed_time(self, end):
        return end.recorded_ms - self.recorded_ms


def pretend_to_have_cuda():
    torch.cuda.Event = Event
    torch.cuda.synchronize = torch.cuda.reset_peak_memory_stats = lambda: None
    torch.cuda.max_memory_allocated = lambda: 10**9
    torch.cuda.get_device_name = lambda: "NVIDIA A100-SXM4-80GB"


def main(folder, cases):
    payload = load(CHILD).PAYLOAD
    for name, samples in json.loads(Path(cases).read_text()).items():
        pid = os.fork()
        if pid == 0:
            measure(
                payload, Path(folder) / f"{name}.timeline.json", Path(folder) / f"{name}.result.json", samples
            )
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0, name


def measure(payload, timeline, target, samples):
    pretend_to_have_cuda()
    session_module, measuring, iteration, gpu = (
        importlib.import_module(f"{payload}.{name}")
        for name in ("session", "real_device", "recording.iteration", "fake.gpu")
    )
    session = session_module.Session(gpu.PretendedGpu.from_job(GPU), "cpu")
    measurement = measuring.SpanMeasurement(session, str(timeline), lambda: None)

    def on_span(count):
        span = iterations.last
        span["loading"] = {"samples": samples[count - 1]}
        Event.now_ms += 1e3 * SPAN_S * span["loading"]["samples"] / 64
        measurement.end_span(count, span, is_steady=iterations.is_steady)
        watched.append(session.mode.marks_calls)

    iterations, watched = iteration.Iterations(session, on_span), []
    iterations.install()
    iterations.start_span()
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    while measurement.result is None:
        loss = model(torch.zeros(16, 64)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    result = {**iterations.last, **measurement.result, "watched": watched}
    target.write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
