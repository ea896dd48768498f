"""The order of warm-up, timing and watching, and marks that lead from each recorded call to the timeline.

The parts that only a GPU has are in tests/end_to_end/test_cuda_backend.py.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from advisor.kineto.events import CudaLaunch, DeviceEvent, KinetoEvents, _host
from advisor.profile.recording import timeline_of

WARM_UP, TIMED = 4, 8
pytestmark = pytest.mark.torch


# The samples of each span. In "uneven" the tenth span ends an epoch with a short batch, and so does the first
# watched one. In "skipping" the eighth span holds two batches, since a GradScaler skipped a step.
CASES = {
    "even": [64] * 13,
    "uneven": [64] * 9 + [7] + [64] * 2 + [7] + [64] * 5,
    "skipping": [64] * 7 + [128] + [64] * 8,
}


@pytest.fixture(scope="module")
def measured(warm_module, tmp_path_factory):
    """Of each case the result, and the events of its timeline."""
    folder = tmp_path_factory.mktemp("measured")
    cases = folder / "cases.json"
    cases.write_text(json.dumps(CASES))
    warm_module("tests.unit.profile.measure_on_cpu", folder, cases)
    return {
        name: (
            json.loads((folder / f"{name}.result.json").read_text()),
            json.loads((folder / f"{name}.timeline.json").read_text())["traceEvents"],
        )
        for name in CASES
    }


def test_nothing_is_watched_before_the_time_is_known_and_the_allocator_tells_the_peak(measured):
    result, _ = measured["even"]
    assert result["watched"] == [False] * (WARM_UP + TIMED - 1) + [True, False]
    memory = result["memory"]
    parameters = sum(-(-n // 512) * 512 for n in (64 * 32 * 4, 32 * 4, 32 * 8 * 4, 8 * 4))
    assert memory["parameter_bytes"] == memory["gradient_bytes"] == parameters
    # AdamW keeps two moments, and on a CPU a step count for each of the four.
    assert memory["optimizer_bytes"] == 2 * parameters + 4 * 512
    assert memory["peak_bytes"] == 10**9
    assert memory["activation_bytes"] == 10**9 - 4 * parameters - 4 * 512


# A short last batch is not the one that is taken, and a skipped step is not what others are held against.
@pytest.mark.parametrize(("name", "num_watched"), [("even", 1), ("uneven", 2), ("skipping", 1)])
def test_a_full_iteration_is_timed_and_watched(measured, name, num_watched):
    result, _ = measured[name]
    assert result["iteration_s"] == pytest.approx(0.5)
    assert result["loading"]["samples"] == 64
    assert len(result["watched"]) == WARM_UP + TIMED + num_watched


@pytest.mark.parametrize("name", ["even", "uneven"])
def test_every_recorded_call_has_its_operator_in_the_timeline(measured, name):
    result, events = measured[name]
    numbers = sorted(number for calls in result["calls"] for number in calls)
    assert len(numbers) == sum(entry["count"] for entry in result["operators"])
    by_call = timeline_of(pretended_launches(events)).by_call
    for entry, calls in zip(result["operators"], result["calls"], strict=True):
        for call in calls:
            assert entry["name"] in [event.name for event in by_call[call]]


def pretended_launches(events):
    """As if each operator's event were the launch of a kernel of its name."""
    spans = [event for event in events if event.get("ph") == "X"]
    operators = [_host(event) for event in spans if event["cat"] == "cpu_op"]
    marks = [_host(event) for event in spans if event["cat"] == "user_annotation"]
    marks.sort(key=lambda mark: mark.begin_s)
    return KinetoEvents(
        operators=(),
        marks=tuple(marks),
        launches={
            number: CudaLaunch(thread=operator.thread, begin_s=operator.begin_s, external_id=None)
            for number, operator in enumerate(operators)
        },
        device_events=tuple(
            DeviceEvent(
                kind="kernel", name=operator.name, begin_s=0.0, duration_s=1.0, correlation=number,
                external_id=None, args={},
            )
            for number, operator in enumerate(operators)
        ),
        device_name=None,
    )  # fmt: skip


class Mode:
    """A dispatch mode that counts entering and leaving."""

    marks_calls = False

    def __init__(self):
        self.depth = 0

    def __enter__(self):
        self.depth += 1

    def __exit__(self, *_):
        self.depth -= 1


class Profiler:
    def __init__(self, **_):
        self.is_running = False

    def start(self):
        self.is_running = True

    def stop(self):
        self.is_running = False

    def export_chrome_trace(self, path):
        Path(path).write_text("{}")


@pytest.fixture
def measurement(monkeypatch, tmp_path):
    torch = pytest.importorskip("torch")
    from advisor.payload.real_device import SpanMeasurement

    class Event:
        def __init__(self, **_):
            pass

        def record(self):
            pass

        def elapsed_time(self, _):
            return 100.0

    monkeypatch.setattr(torch.cuda, "Event", Event)
    for name in ("synchronize", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 10)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "GPU")
    monkeypatch.setattr(torch.profiler, "profile", Profiler)
    session = SimpleNamespace(watching=Mode())
    watched = []
    return SpanMeasurement(session, str(tmp_path / "t.json"), lambda: watched.append(1)), session, watched


SPAN = {"loading": None, "memory": dict.fromkeys(("parameter_bytes", "gradient_bytes", "optimizer_bytes"), 1)}


def end_spans(measurement, counts, is_steady=True):
    for count in counts:
        measurement.end_span(count, SPAN, is_steady=is_steady)


def test_timing_waits_until_it_is_certain_what_an_iteration_is(measurement):
    measured, session, watched = measurement
    end_spans(measured, range(1, 40), is_steady=False)
    assert not watched
    end_spans(measured, range(40, 40 + TIMED + 2))
    assert watched == [1]
    assert measured.result["iteration_s"] == pytest.approx(0.1)
    assert session.watching.depth == 0


@pytest.mark.parametrize("spans_before", range(1, WARM_UP + TIMED + 1))
def test_an_iteration_that_is_cut_anew_is_timed_anew(measurement, spans_before):
    measured, session, _ = measurement
    end_spans(measured, range(1, spans_before + 1))
    # A network that steps more rarely turns up, and counting begins again.
    end_spans(measured, range(1, WARM_UP + TIMED + 1))
    assert measured.result is None
    assert (session.watching.depth, session.watching.marks_calls) == (1, True)
    end_spans(measured, [WARM_UP + TIMED + 1])
    assert measured.result["memory"]["activation_bytes"] == 7
    assert (session.watching.depth, session.watching.marks_calls) == (0, False)
