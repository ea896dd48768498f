"""Kernels to operators, phases and steps, by events made by hand; seconds are whole numbers here."""

from typing import Any

import pytest

from advisor.core.errors import TraceError
from advisor.core.values import Phase
from advisor.kineto.events import CudaLaunch, DeviceEvent, HostEvent, KinetoEvents
from advisor.kineto.export import KinetoCall, KinetoStep, Unjoined, join

MAIN, AUTOGRAD = "1/1", "1/2"
WHOLE = ("ProfilerStep#1", 0, 1000)
Marks = tuple[tuple[str, float, float], ...]


def op(name: str, begin: float, end: float, *, thread: str = MAIN, **args: Any) -> HostEvent:
    named = {key.replace("_", " "): value for key, value in args.items()}
    return HostEvent(name=name, thread=thread, begin_s=begin, end_s=end, args=named)


def kernel(
    begin: float,
    seconds: float = 1.0,
    *,
    correlation: int | None = None,
    external: int | None = None,
    kind: str = "kernel",
) -> DeviceEvent:
    return DeviceEvent(
        kind=kind,
        name=f"kernel at {begin:g}",
        begin_s=begin,
        duration_s=seconds,
        correlation=correlation,
        external_id=external,
        args={},
    )


def launch(begin: float, *, thread: str = MAIN, external: int | None = None) -> CudaLaunch:
    return CudaLaunch(thread=thread, begin_s=begin, external_id=external)


def joined(
    operators: list[HostEvent],
    events: list[DeviceEvent],
    launches: dict[int, CudaLaunch] | None = None,
    *,
    marks: Marks = (WHOLE,),
) -> tuple[tuple[KinetoStep, ...], Unjoined]:
    recording = KinetoEvents(
        operators=tuple(sorted(operators, key=lambda operator: operator.begin_s)),
        marks=tuple(op(*mark) for mark in marks),
        launches=launches or {},
        device_events=tuple(sorted(events, key=lambda event: event.begin_s)),
        device_name=None,
    )
    return join(recording)


def only_step(*arguments: Any, **options: Any) -> KinetoStep:
    (step,), _ = joined(*arguments, **options)
    return step


def only_call(*arguments: Any, **options: Any) -> KinetoCall:
    (call,) = only_step(*arguments, **options).calls
    return call


OUTER, INNER = op("outer", 10, 100), op("inner", 40, 60)
BRIEF = [op(f"brief {number}", 20 + number / 100, 20 + number / 100) for number in range(64)]


@pytest.mark.parametrize(
    ("operators", "launches", "external", "owner"),
    [
        # The kernel's own number, then that of its launch, then where that lies.
        ([op("own", 10, 20, external_id=1), op("of launch", 30, 40, external_id=2)],
         {7: launch(35, external=2)}, 1, "own"),
        ([op("around", 30, 40), op("named", 50, 60, external_id=2)],
         {7: launch(35, external=2)}, None, "named"),
        ([op("around", 30, 40, external_id=1)], {7: launch(35, external=9)}, 8, "around"),
        # The innermost operator around the launch, which holds its ends.
        ([OUTER, op("early", 20, 30), INNER, op("late", 70, 80)], {7: launch(50)}, None, "inner"),
        ([OUTER, op("early", 20, 30), INNER, op("late", 70, 80)], {7: launch(65)}, None, "outer"),
        ([OUTER, INNER], {7: launch(40)}, None, "inner"),
        ([OUTER, INNER], {7: launch(60)}, None, "inner"),
        # Operators of other threads and marks are not around it.
        ([OUTER, op("there", 40, 60, thread=AUTOGRAD)], {7: launch(50)}, None, "outer"),
        ([OUTER, op("Optimizer.zero_grad#SGD", 40, 60)], {7: launch(50)}, None, "outer"),
        # Without a launch nobody owns it, and what is far away is not searched.
        ([OUTER], {}, None, None),
        ([OUTER], {8: launch(50)}, None, None),
        ([OUTER, *BRIEF], {7: launch(50)}, None, None),
        ([OUTER, *BRIEF[1:]], {7: launch(50)}, None, "outer"),
    ],
)  # fmt: skip
def test_who_owns_a_kernel(operators, launches, external, owner):
    call = only_call(operators, [kernel(200, correlation=7, external=external)], launches)
    assert (call.operator.name if call.operator else None) == owner


def test_kernels_of_one_operator_are_one_call_in_order():
    operators = [op("mm", 10, 20, external_id=1)]
    call = only_call(operators, [kernel(90, 3, external=1), kernel(50, 2, external=1)])
    assert [event.begin_s for event in call.device_events] == [50, 90]
    assert call.begin_s == 10


def test_lost_kernels_are_calls_of_their_own_even_at_the_same_time():
    step = only_step([op("mm", 10, 20)], [kernel(50, 2), kernel(50, 3)])
    assert [len(call.device_events) for call in step.calls] == [1, 1]
    assert step.device_s == 5


def test_equal_operators_at_other_times_are_other_calls():
    operators = [op("mm", 10, 20, external_id=1), op("mm", 30, 40, external_id=2)]
    step = only_step(operators, [kernel(50, external=2), kernel(60, external=1)])
    assert [call.begin_s for call in step.calls] == [10, 30]


def test_a_lost_kernel_begins_at_its_launch_or_else_on_the_gpu():
    assert only_call([op("x", 1, 2)], [kernel(50, correlation=7)], {7: launch(40)}).begin_s == 40
    assert only_call([op("x", 1, 2)], [kernel(50, correlation=7)]).begin_s == 50
    assert only_call([op("x", 1, 2)], [kernel(50)]).begin_s == 50


@pytest.mark.parametrize(
    ("begin", "options", "phase"),
    [
        # The span of the optimizer holds its ends.
        *((begin, {}, Phase.FORWARD) for begin in (99, 201)),
        *((begin, {}, Phase.OPTIMIZER) for begin in (100, 150, 200)),
        # Another thread is backward even then; on the main one the forward thread tells the backward pass.
        (150, {"thread": AUTOGRAD}, Phase.BACKWARD),
        (10, {"fwd_thread_id": None}, Phase.FORWARD),
        (10, {"fwd_thread_id": 0}, Phase.FORWARD),
        (10, {"fwd_thread_id": 1}, Phase.BACKWARD),
    ],
)
def test_the_phase_of_a_call(begin, options, phase):
    marks = (WHOLE, ("Optimizer.step#SGD.step", 100, 200))
    operators = [op("add", begin, begin + 1, external_id=1, **options)]
    assert only_call(operators, [kernel(300, external=1)], marks=marks).phase is phase


def test_a_lost_kernel_has_the_phase_of_its_launch():
    marks = (WHOLE, ("Optimizer.step#SGD.step", 100, 200))
    events = [kernel(300, correlation=number) for number in (1, 2, 3)]
    launches = {1: launch(50), 2: launch(60, thread=AUTOGRAD), 3: launch(150)}
    step = only_step([op("x", 1, 2)], events, launches, marks=marks)
    assert [call.phase for call in step.calls] == [Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER]


def test_without_a_launch_the_time_on_the_gpu_tells():
    marks = (WHOLE, ("Optimizer.step#SGD.step", 100, 200))
    step = only_step([op("x", 1, 2)], [kernel(50), kernel(150)], marks=marks)
    assert [call.phase for call in step.calls] == [Phase.FORWARD, Phase.OPTIMIZER]


def calls_by_step(marks: Marks, begins: list[float]) -> dict[str, list[float]]:
    operators = [op("x", begin, begin, external_id=n) for n, begin in enumerate(begins, start=1)]
    events = [kernel(begin, external=n) for n, begin in enumerate(begins, start=1)]
    steps, _ = joined(operators, events, marks=marks)
    return {step.name: [call.begin_s for call in step.calls] for step in steps}


def steps_of(*spans: tuple[float, float], name: str = "Optimizer.step#SGD.step") -> Marks:
    return tuple((name.replace("*", str(number)), *span) for number, span in enumerate(spans, start=1))


@pytest.mark.parametrize(
    ("marks", "begins", "expected"),
    [
        # A step holds its beginning and not its end.
        (steps_of((100, 200), (200, 300), name="ProfilerStep#*"), [99, 100, 199, 200, 299, 300],
         {"ProfilerStep#1": [100, 199], "ProfilerStep#2": [200, 299]}),
        # Without kernels it is left out; listed twice it is one; two that overlap a little share no call.
        (steps_of((100, 200), (200, 300), (300, 400), name="ProfilerStep#*"), [150, 350],
         {"ProfilerStep#1": [150], "ProfilerStep#3": [350]}),
        (steps_of((0, 100), (0, 100), name="ProfilerStep#1"), [50], {"ProfilerStep#1": [50]}),
        (steps_of((0, 110), (100, 200), name="ProfilerStep#*"), [50, 105],
         {"ProfilerStep#1": [50], "ProfilerStep#2": [105]}),
        # Else steps of the first optimizer bound iterations: from 120 to 220, and from 220 to 320.
        (steps_of((100, 120), (200, 220), (300, 320)), [110, 120, 150, 210, 220, 319, 320],
         {"optimizer step 1": [120, 150, 210], "optimizer step 2": [220, 319]}),
        ((*steps_of((100, 110), (200, 210)), *steps_of((150, 160), (250, 260), name="Optimizer.step#Adam")),
         [105, 140, 180, 240], {"optimizer step 1": [140, 180]}),
        ((("ProfilerStep#4", 0, 1000), *steps_of((100, 120), (200, 220), (300, 320))), [50, 350],
         {"ProfilerStep#4": [50, 350]}),
        # Of two threads, or nested: their ends are not in the order of their beginnings.
        (steps_of((0, 100), (10, 20), (30, 40), (50, 60)), [25, 55, 70],
         {"optimizer step 1": [25], "optimizer step 2": [55], "optimizer step 3": [70]}),
    ],
)  # fmt: skip
def test_calls_of_each_step(marks, begins, expected):
    assert calls_by_step(marks, begins) == expected


@pytest.mark.parametrize("second", [(0, 100), (10, 90), (40, 140), (0, 1000)])
def test_steps_that_overlap_by_more_are_refused(second):
    """Before: each held all calls of both, a hundred thousand of them 5.8 GB."""
    marks = (("ProfilerStep#1", 0, 100), ("ProfilerStep#2", *second))
    with pytest.raises(TraceError, match="'ProfilerStep#1' and 'ProfilerStep#2' of the profile overlap"):
        calls_by_step(marks, [50])


@pytest.mark.parametrize(
    "marks",
    [
        (), steps_of((100, 200), name="ProfilerStep#1"), steps_of((100, 200)),
        steps_of((400, 410), (600, 610), name="Optimizer.zero_grad#SGD.zero_grad"),
    ],
)  # fmt: skip
def test_kernels_outside_of_all_steps_are_an_error(marks):
    with pytest.raises(TraceError, match=r"prof\.step.*optimizer steps"):
        calls_by_step(marks, [500])


def test_lost_kernels_are_counted_by_number_and_by_time():
    operators = [op("mm", 10, 20, external_id=1)]
    events = [
        kernel(30, 6, external=1),
        kernel(40, 2, external=1),
        kernel(50, 8),
        kernel(60, 4, kind="memcpy"),
    ]
    _, unjoined = joined(operators, events)
    # One of three kernels; 8 of 16 seconds. The copy is no kernel.
    assert unjoined == Unjoined(kernels=1, share_of_kernels=1 / 3, share_of_time=0.5)


def test_lost_kernels_outside_of_steps_do_not_count():
    operators = [op("mm", 10, 20, external_id=1)]
    _, unjoined = joined(operators, [kernel(30, external=1), kernel(2000)])
    assert unjoined == Unjoined(kernels=0, share_of_kernels=0.0, share_of_time=0.0)


def test_without_kernels_or_time_nothing_is_lost():
    _, copies = joined([op("x", 1, 2)], [kernel(30, kind="memcpy")])
    assert copies == Unjoined(kernels=0, share_of_kernels=0.0, share_of_time=0.0)
    _, instant = joined([op("x", 1, 2)], [kernel(30, 0.0)])
    assert instant == Unjoined(kernels=1, share_of_kernels=1.0, share_of_time=0.0)
