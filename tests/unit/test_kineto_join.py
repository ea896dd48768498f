"""Kernels to operators, phases and steps, by events made by hand; seconds are whole numbers here."""

from typing import Any

import pytest

from advisor.core.errors import TraceError
from advisor.core.values import Phase
from advisor.kineto.events import CudaLaunch, DeviceEvent, HostEvent, KinetoEvents
from advisor.kineto.export import KinetoCall, KinetoStep, Unjoined, join

MAIN, AUTOGRAD = "1/1", "1/2"
WHOLE = ("ProfilerStep#1", 0, 1000)


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
    marks: tuple[tuple[str, float, float], ...] = (WHOLE,),
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


def owner(*arguments: Any, **options: Any) -> str | None:
    call = only_call(*arguments, **options)
    return call.operator.name if call.operator else None


def test_the_kernels_own_id_wins_over_its_launchs():
    operators = [op("own", 10, 20, external_id=1), op("of launch", 30, 40, external_id=2)]
    assert owner(operators, [kernel(50, correlation=7, external=1)], {7: launch(35, external=2)}) == "own"


def test_the_launchs_id_wins_over_where_it_lies():
    operators = [op("around", 30, 40), op("named", 50, 60, external_id=2)]
    assert owner(operators, [kernel(70, correlation=7)], {7: launch(35, external=2)}) == "named"


def test_an_id_that_nobody_has_is_passed_over():
    operators = [op("around", 30, 40, external_id=1)]
    events = [kernel(70, correlation=7, external=8)]
    assert owner(operators, events, {7: launch(35, external=9)}) == "around"


def test_without_ids_the_innermost_operator_around_the_launch():
    operators = [op("outer", 10, 100), op("early", 20, 30), op("inner", 40, 60), op("late", 70, 80)]
    assert owner(operators, [kernel(200, correlation=7)], {7: launch(50)}) == "inner"
    assert owner(operators, [kernel(200, correlation=7)], {7: launch(65)}) == "outer"


@pytest.mark.parametrize("begin", [40, 60])
def test_an_operator_holds_its_ends(begin):
    operators = [op("outer", 10, 100), op("inner", 40, 60)]
    assert owner(operators, [kernel(200, correlation=7)], {7: launch(begin)}) == "inner"


def test_operators_of_other_threads_are_not_around_it():
    operators = [op("here", 10, 100), op("there", 40, 60, thread=AUTOGRAD)]
    assert owner(operators, [kernel(200, correlation=7)], {7: launch(50)}) == "here"


def test_marks_own_no_kernels():
    operators = [op("outer", 10, 100), op("Optimizer.zero_grad#SGD", 40, 60)]
    assert owner(operators, [kernel(200, correlation=7)], {7: launch(50)}) == "outer"


@pytest.mark.parametrize("launches", [{}, {8: launch(50)}])
def test_without_a_launch_nobody_owns_it(launches):
    assert owner([op("around", 10, 100)], [kernel(50, correlation=7)], launches) is None


def test_far_away_operators_are_not_searched():
    many = [op(f"brief {number}", 20 + number / 100, 20 + number / 100) for number in range(64)]
    assert owner([op("outer", 10, 100), *many], [kernel(200, correlation=7)], {7: launch(50)}) is None
    assert owner([op("outer", 10, 100), *many[1:]], [kernel(200, correlation=7)], {7: launch(50)}) == "outer"


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
    ("begin", "phase"),
    [(99, "forward"), (100, "optimizer"), (150, "optimizer"), (200, "optimizer"), (201, "forward")],
)
def test_the_optimizers_span_holds_its_ends(begin, phase):
    marks = (WHOLE, ("Optimizer.step#SGD.step", 100, 200))
    operators = [op("add", begin, begin + 1, external_id=1)]
    assert only_call(operators, [kernel(300, external=1)], marks=marks).phase is Phase(phase)


def test_another_thread_is_backward_even_during_an_optimizers_step():
    marks = (WHOLE, ("Optimizer.step#SGD.step", 100, 200))
    operators = [op("mm", 150, 160, thread=AUTOGRAD, external_id=1)]
    assert only_call(operators, [kernel(300, external=1)], marks=marks).phase is Phase.BACKWARD


@pytest.mark.parametrize(
    ("forward_thread", "phase"), [(None, Phase.FORWARD), (0, Phase.FORWARD), (1, Phase.BACKWARD)]
)
def test_on_the_main_thread_the_forward_thread_tells_the_backward_pass(forward_thread, phase):
    operators = [op("mm", 10, 20, external_id=1, fwd_thread_id=forward_thread)]
    assert only_call(operators, [kernel(30, external=1)]).phase is phase


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


def calls_by_step(marks: tuple[tuple[str, float, float], ...], begins: list[float]) -> dict[str, list[float]]:
    operators = [op("x", begin, begin, external_id=n) for n, begin in enumerate(begins, start=1)]
    events = [kernel(begin, external=n) for n, begin in enumerate(begins, start=1)]
    steps, _ = joined(operators, events, marks=marks)
    return {step.name: [call.begin_s for call in step.calls] for step in steps}


def test_a_step_holds_its_beginning_and_not_its_end():
    marks = (("ProfilerStep#1", 100, 200), ("ProfilerStep#2", 200, 300))
    assert calls_by_step(marks, [99, 100, 199, 200, 299, 300]) == {
        "ProfilerStep#1": [100, 199],
        "ProfilerStep#2": [200, 299],
    }


def test_steps_without_kernels_are_left_out():
    marks = (("ProfilerStep#1", 100, 200), ("ProfilerStep#2", 200, 300), ("ProfilerStep#3", 300, 400))
    assert list(calls_by_step(marks, [150, 350])) == ["ProfilerStep#1", "ProfilerStep#3"]


def test_without_step_marks_optimizer_steps_bound_the_iterations():
    marks = tuple(("Optimizer.step#SGD.step", begin, begin + 20) for begin in (100, 200, 300))
    # Between 120 and 220, and between 220 and 320.
    assert calls_by_step(marks, [110, 120, 150, 210, 220, 319, 320]) == {
        "optimizer step 1": [120, 150, 210],
        "optimizer step 2": [220, 319],
    }


def test_of_two_optimizers_the_first_one_bounds():
    marks = tuple(
        (f"Optimizer.step#{name}.step", begin, begin + 10)
        for name, begin in (("SGD", 100), ("Adam", 150), ("SGD", 200), ("Adam", 250))
    )
    assert calls_by_step(marks, [105, 140, 180, 240]) == {"optimizer step 1": [140, 180]}


def test_zeroing_gradients_is_no_step():
    marks = tuple(("Optimizer.zero_grad#SGD.zero_grad", begin, begin + 10) for begin in (100, 200))
    with pytest.raises(TraceError, match=r"prof\.step"):
        calls_by_step(marks, [150])


def test_profiler_steps_win_over_optimizer_steps():
    marks = (
        ("ProfilerStep#4", 0, 1000),
        *(("Optimizer.step#SGD.step", begin, begin + 20) for begin in (100, 200, 300)),
    )
    assert calls_by_step(marks, [50, 350]) == {"ProfilerStep#4": [50, 350]}


def test_a_mark_that_is_listed_twice_is_one_step():
    marks = (("ProfilerStep#1", 0, 100),) * 2
    assert calls_by_step(marks, [50]) == {"ProfilerStep#1": [50]}


def test_steps_that_overlap_a_little_share_no_call():
    marks = (("ProfilerStep#1", 0, 110), ("ProfilerStep#2", 100, 200))
    assert calls_by_step(marks, [50, 105]) == {"ProfilerStep#1": [50], "ProfilerStep#2": [105]}


@pytest.mark.parametrize("second", [(0, 100), (10, 90), (40, 140), (0, 1000)])
def test_steps_that_overlap_by_more_are_refused(second):
    """Before: each held all calls of both, a hundred thousand of them 5.8 GB."""
    marks = (("ProfilerStep#1", 0, 100), ("ProfilerStep#2", *second))
    with pytest.raises(TraceError, match="'ProfilerStep#1' and 'ProfilerStep#2' of the profile overlap"):
        calls_by_step(marks, [50])


def test_optimizer_steps_within_each_other_share_no_call():
    """Of two threads, or nested: their ends are not in the order of their beginnings."""
    ends = [(0, 100), (10, 20), (30, 40), (50, 60)]
    marks = tuple(("Optimizer.step#SGD.step", *span) for span in ends)
    assert calls_by_step(marks, [25, 55, 70]) == {"optimizer step 1": [25], "optimizer step 2": [55],
                                                  "optimizer step 3": [70]}  # fmt: skip


@pytest.mark.parametrize(
    "marks", [(), (("ProfilerStep#1", 100, 200),), (("Optimizer.step#SGD.step", 100, 200),)]
)
def test_kernels_outside_of_all_steps_are_an_error(marks):
    with pytest.raises(TraceError, match="optimizer steps"):
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
