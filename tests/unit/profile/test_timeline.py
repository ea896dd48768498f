"""Kernels find the recorded call within whose mark they were launched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.kineto.events import CudaLaunch, DeviceEvent, HostEvent, KinetoEvents
from advisor.profile.recording import timeline_of


def mark(number, begin_s, end_s, thread="1/1"):
    return HostEvent(name=f"advisor#{number}", thread=thread, begin_s=begin_s, end_s=end_s, args={})


def kernel(correlation, duration_s=1.0, name="k"):
    return DeviceEvent(
        kind="kernel", name=name, begin_s=100.0, duration_s=duration_s, correlation=correlation,
        external_id=None, args={},
    )  # fmt: skip


def recording(marks, launches, events):
    return KinetoEvents(
        operators=(), marks=tuple(sorted(marks, key=lambda m: m.begin_s)), launches=launches,
        device_events=tuple(events), device_name=None,
    )  # fmt: skip


def launch(begin_s, thread="1/1"):
    return CudaLaunch(thread=thread, begin_s=begin_s, external_id=None)


def test_by_time_and_thread():
    # Backward runs on another thread at the same time as nothing: its marks are its own.
    timeline = timeline_of(
        recording(
            [mark(7, 0.0, 1.0), mark(8, 2.0, 3.0), mark(9, 2.0, 9.0, thread="1/2")],
            {1: launch(0.5), 2: launch(2.5), 3: launch(2.5, thread="1/2"), 4: launch(1.5)},
            [kernel(1), kernel(2), kernel(2, name="second"), kernel(3), kernel(4, 4.0), kernel(5)],
        )
    )
    assert {call: [event.name for event in events] for call, events in timeline.by_call.items()} == {
        7: ["k"], 8: ["k", "second"], 9: ["k"],
    }  # fmt: skip
    assert [event.correlation for event in timeline.unmarked] == [4, 5]
    assert timeline.unmarked_share == pytest.approx(5 / 9)


def test_other_marks_are_no_calls():
    optimizer = HostEvent(name="Optimizer.step#SGD", thread="1/1", begin_s=0.0, end_s=9.0, args={})
    timeline = timeline_of(recording([optimizer], {1: launch(0.5)}, [kernel(1)]))
    assert not timeline.by_call
    assert timeline.unmarked_share == 1.0


def test_nothing_lost_when_all_is_joined():
    timeline = timeline_of(recording([mark(0, 0.0, 1.0)], {1: launch(0.0)}, [kernel(1, 0.0)]))
    assert timeline.unmarked_share == 0.0


@given(st.lists(st.floats(0.1, 1.0), min_size=1, max_size=20), st.lists(st.floats(0.0, 30.0), max_size=30))
def test_agrees_with_looking_at_every_mark(lengths, times):
    marks, begin = [], 0.0
    for number, length in enumerate(lengths):
        marks.append(mark(number, begin, begin + length))
        begin += 1.5 * length
    launches = {number: launch(time) for number, time in enumerate(times)}
    timeline = timeline_of(recording(marks, launches, [kernel(number) for number in launches]))
    for number, time in enumerate(times):
        holding = [m for m in marks if m.begin_s <= time <= m.end_s]
        events = timeline.by_call.get(int(holding[0].name[8:]), ()) if holding else timeline.unmarked
        assert number in [event.correlation for event in events]


def test_a_mark_that_a_script_made_up_is_no_mark_of_ours():
    """Before: ``record_function("advisor#mine")`` in a script ended the profiling in a ValueError."""
    forged = [mark("mine", 0.0, 1.0), mark("9" * 5000, 0.0, 1.0), mark("-1", 0.0, 1.0)]
    assert timeline_of(recording(forged, {1: launch(0.5)}, [kernel(1)])).by_call == {}
