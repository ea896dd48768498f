"""Joins what ran on the GPU to operators, phases and steps of an exported profiler trace."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.core.errors import TraceError
from advisor.core.values import Phase
from advisor.kineto.events import DeviceEvent, HostEvent, Recording

STEP_MARK = "ProfilerStep#"
OPTIMIZER_MARK = "Optimizer."


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of an operator with what it ran on the GPU; ``operator`` is None where none is known."""

    operator: HostEvent | None
    phase: Phase
    begin_s: float
    device_events: tuple[DeviceEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One iteration: its calls in order of time."""

    name: str
    calls: tuple[Call, ...]

    @property
    def device_s(self) -> float:
        """Seconds of everything that ran on the GPU."""
        return sum(event.duration_s for call in self.calls for event in call.device_events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjoined:
    """Kernels without an operator, in all steps."""

    kernels: int
    share_of_kernels: float
    share_of_time: float


def join(recording: Recording) -> tuple[tuple[Step, ...], Unjoined]:
    """Steps with their calls, and how much could not be joined.

    Raises:
        TraceError: nothing in the recording tells where an iteration begins and ends.
    """
    calls = _calls(recording)
    steps = tuple(step for step in _steps(recording, calls) if step.calls)
    if not steps:
        raise TraceError(
            "no kernel of the profile lies within a step: call prof.step() once per iteration, or"
            " record several optimizer steps."
        )
    return steps, _unjoined(steps)


def _calls(recording: Recording) -> list[Call]:
    by_id = {op.args["external id"]: op for op in recording.operators if op.args.get("external id")}
    threads = _by_thread(recording.operators)
    grouped: dict[tuple[int, float], list[DeviceEvent]] = {}
    owners: dict[tuple[int, float], HostEvent | None] = {}
    for number, event in enumerate(recording.device_events):
        owner = _owner(event, recording, by_id, threads)
        # Without an operator each event is a call of its own.
        key = (id(owner), owner.begin_s) if owner else (number, event.begin_s)
        grouped.setdefault(key, []).append(event)
        owners[key] = owner
    spans = [mark for mark in recording.marks if mark.name.startswith(OPTIMIZER_MARK)]
    main = {mark.thread for mark in recording.marks}
    calls = [_call(owners[key], events, recording, spans, main) for key, events in grouped.items()]
    return sorted(calls, key=lambda call: call.begin_s)


def _by_thread(operators: Sequence[HostEvent]) -> Mapping[str, list[HostEvent]]:
    threads: dict[str, list[HostEvent]] = {}
    for operator in operators:
        threads.setdefault(operator.thread, []).append(operator)
    return threads


def _owner(
    event: DeviceEvent,
    recording: Recording,
    by_id: Mapping[int, HostEvent],
    threads: Mapping[str, list[HostEvent]],
) -> HostEvent | None:
    """By external id, the kernel's own or its launch's; else the innermost operator at the launch."""
    launch = None if event.correlation is None else recording.launches.get(event.correlation)
    for external_id in (event.external_id, launch.external_id if launch else None):
        if external_id is not None and external_id in by_id:
            return by_id[external_id]
    if launch is None:
        return None
    operators = threads.get(launch.thread, [])
    place = bisect.bisect_right(operators, launch.begin_s, key=lambda op: op.begin_s)
    enclosing = (op for op in reversed(operators[max(place - 64, 0) : place]) if op.end_s >= launch.begin_s)
    return next((op for op in enclosing if "#" not in op.name), None)


def _call(
    owner: HostEvent | None,
    events: list[DeviceEvent],
    recording: Recording,
    optimizer_spans: Sequence[HostEvent],
    main_threads: set[str],
) -> Call:
    correlation = events[0].correlation
    launch = None if correlation is None else recording.launches.get(correlation)
    if owner is not None:
        begin_s, thread = owner.begin_s, owner.thread
    elif launch is not None:
        begin_s, thread = launch.begin_s, launch.thread
    else:
        begin_s, thread = events[0].begin_s, next(iter(main_threads), "")
    phase = Phase.FORWARD
    if any(span.begin_s <= begin_s <= span.end_s and span.thread == thread for span in optimizer_spans):
        phase = Phase.OPTIMIZER
    elif (main_threads and thread not in main_threads) or _is_backward(owner):
        phase = Phase.BACKWARD
    return Call(operator=owner, phase=phase, begin_s=begin_s, device_events=tuple(events))


def _is_backward(owner: HostEvent | None) -> bool:
    return owner is not None and (owner.args.get("fwd thread id") or 0) > 0


def _steps(recording: Recording, calls: Sequence[Call]) -> list[Step]:
    spans = [
        (mark.name, mark.begin_s, mark.end_s) for mark in recording.marks if mark.name.startswith(STEP_MARK)
    ] or _between_optimizer_steps(recording)
    begins = [call.begin_s for call in calls]
    return [
        Step(
            name=name,
            calls=tuple(calls[bisect.bisect_left(begins, begin) : bisect.bisect_left(begins, end)]),
        )
        for name, begin, end in spans
    ]


def _between_optimizer_steps(recording: Recording) -> list[tuple[str, float, float]]:
    """Without prof.step(): from the end of one step of the first optimizer to the end of the next."""
    marks = [mark for mark in recording.marks if mark.name.startswith("Optimizer.step#")]
    ends = [mark.end_s for mark in marks if mark.name == marks[0].name]
    return [
        (f"optimizer step {i}", begin, end)
        for i, (begin, end) in enumerate(itertools.pairwise(ends), start=1)
    ]


def _unjoined(steps: Sequence[Step]) -> Unjoined:
    kernels = [
        (event.duration_s, call.operator is None)
        for step in steps
        for call in step.calls
        for event in call.device_events
        if event.kind == "kernel"
    ]
    lost = [duration for duration, is_lost in kernels if is_lost]
    total_s = sum(duration for duration, _ in kernels)
    return Unjoined(
        kernels=len(lost),
        share_of_kernels=len(lost) / len(kernels) if kernels else 0.0,
        share_of_time=sum(lost) / total_s if total_s else 0.0,
    )
