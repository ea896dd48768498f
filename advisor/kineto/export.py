"""An exported profiler trace (PyTorch's Kineto, any schema up to 1) -> Trace of its median step."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.core.errors import InputError, TraceError
from advisor.core.findings import Finding
from advisor.core.findings.about_traces import IterationSeen, KernelsLeftOut, ProfileLacks
from advisor.core.gpus import resolve_gpu
from advisor.core.iterables import grouped
from advisor.core.values import Collective, MemoryUse, Op, Phase, Precision, Trace
from advisor.formats.trace_files import SCHEMA_VERSION, check_trace
from advisor.formats.typed_json import typed
from advisor.kineto import events as kineto_events
from advisor.operators.work import tensor_bytes

# Joins what ran on the GPU to operators, phases and steps of an exported profiler trace.

STEP_MARK = "ProfilerStep#"
OPTIMIZER_MARK = "Optimizer."


_MOST_SHARED = 0.5
"""Of a step, with the next one: they touch where the profiler's own work lies between them."""


@dataclass(frozen=True, slots=True)
class _Spans:
    """Spans of time, in order of their beginnings, each with the latest end up to it."""

    begins: Sequence[float]
    latest_ends: Sequence[float]

    @classmethod
    def of(cls, events: Sequence[kineto_events.HostEvent]) -> _Spans:
        """Of events in order of time."""
        ends = itertools.accumulate((event.end_s for event in events), max)
        return cls([event.begin_s for event in events], list(ends))

    def __contains__(self, moment_s: float) -> bool:
        place = bisect.bisect_right(self.begins, moment_s)
        return place > 0 and self.latest_ends[place - 1] >= moment_s


@dataclass(frozen=True, slots=True, kw_only=True)
class KinetoCall:
    """One call of an operator with what it ran on the GPU; ``operator`` is None where none is known."""

    operator: kineto_events.HostEvent | None
    phase: Phase
    begin_s: float
    device_events: tuple[kineto_events.DeviceEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KinetoStep:
    """One iteration: its calls in order of time."""

    name: str
    calls: tuple[KinetoCall, ...]

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


def join(recording: kineto_events.KinetoEvents) -> tuple[tuple[KinetoStep, ...], Unjoined]:
    """Steps with their calls, and how much could not be joined.

    Raises TraceError: nothing in the recording tells where an iteration begins and ends.
    """
    calls = _calls(recording)
    steps = tuple(step for step in _steps(recording, calls) if step.calls)
    if not steps:
        raise TraceError(
            "no kernel of the profile lies within a step: call prof.step() once per iteration, or"
            " record several optimizer steps."
        )
    return steps, _unjoined(steps)


def _calls(recording: kineto_events.KinetoEvents) -> list[KinetoCall]:
    by_id = {op.args["external id"]: op for op in recording.operators if op.args.get("external id")}
    threads = grouped(recording.operators, lambda operator: operator.thread)
    by_call: dict[tuple[int, float], list[kineto_events.DeviceEvent]] = {}
    owners: dict[tuple[int, float], kineto_events.HostEvent | None] = {}
    for number, event in enumerate(recording.device_events):
        owner = _owner(event, recording, by_id, threads)
        # Without an operator each event is a call of its own.
        key = (id(owner), owner.begin_s) if owner else (number, event.begin_s)
        by_call.setdefault(key, []).append(event)
        owners[key] = owner
    marks = [mark for mark in recording.marks if mark.name.startswith(OPTIMIZER_MARK)]
    spans = {thread: _Spans.of(own) for thread, own in grouped(marks, lambda mark: mark.thread).items()}
    main = {mark.thread for mark in recording.marks}
    calls = [_call(owners[key], events, recording, spans, main) for key, events in by_call.items()]
    return sorted(calls, key=lambda call: call.begin_s)


def _owner(
    event: kineto_events.DeviceEvent, recording: kineto_events.KinetoEvents,
    by_id: Mapping[int, kineto_events.HostEvent], threads: Mapping[str, list[kineto_events.HostEvent]],
) -> kineto_events.HostEvent | None:  # fmt: skip
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
    owner: kineto_events.HostEvent | None, events: list[kineto_events.DeviceEvent],
    recording: kineto_events.KinetoEvents, optimizer_spans: Mapping[str, _Spans], main_threads: set[str],
) -> KinetoCall:  # fmt: skip
    correlation = events[0].correlation
    launch = None if correlation is None else recording.launches.get(correlation)
    if owner is not None:
        begin_s, thread = owner.begin_s, owner.thread
    elif launch is not None:
        begin_s, thread = launch.begin_s, launch.thread
    else:
        begin_s, thread = events[0].begin_s, next(iter(main_threads), "")
    phase = Phase.FORWARD
    if thread in optimizer_spans and begin_s in optimizer_spans[thread]:
        phase = Phase.OPTIMIZER
    elif (main_threads and thread not in main_threads) or (
        owner is not None and (owner.args.get("fwd thread id") or 0) > 0
    ):
        phase = Phase.BACKWARD
    return KinetoCall(operator=owner, phase=phase, begin_s=begin_s, device_events=tuple(events))


def _steps(recording: kineto_events.KinetoEvents, calls: Sequence[KinetoCall]) -> list[KinetoStep]:
    marks = [mark for mark in recording.marks if mark.name.startswith(STEP_MARK)]
    # Some schemas list a mark twice, as an operator and as an annotation.
    spans = list(dict.fromkeys((mark.name, mark.begin_s, mark.end_s) for mark in marks))
    # Steps of one process follow each other.
    for (name, begin, end), (next_name, next_begin, next_end) in itertools.pairwise(spans):
        shorter_s = min(end - begin, next_end - next_begin)
        if min(end, next_end) - next_begin > _MOST_SHARED * shorter_s:
            raise TraceError(
                f"the steps {name[:40]!r} and {next_name[:40]!r} of the profile overlap, so nothing"
                " tells which of them an operator belongs to: export the profile of one process, in which"
                " prof.step() is called once per iteration."
            )
    spans = spans or _between_optimizer_steps(recording)
    begins = [call.begin_s for call in calls]
    return [
        KinetoStep(
            name=name, calls=tuple(calls[bisect.bisect_left(begins, begin) : bisect.bisect_left(begins, end)])
        )
        for name, begin, end in _apart(spans)
    ]


def _apart(spans: Sequence[tuple[str, float, float]]) -> Iterator[tuple[str, float, float]]:
    """Spans in order of time, each ended where the next one begins: no call is in two of them."""
    following = [*(begin for _, begin, _ in spans[1:]), math.inf]
    for (name, begin, end), next_begin in zip(spans, following, strict=False):
        yield name, begin, min(end, next_begin)


def _between_optimizer_steps(recording: kineto_events.KinetoEvents) -> list[tuple[str, float, float]]:
    """Without prof.step(): from the end of one step of the first optimizer to the end of the next."""
    marks = [mark for mark in recording.marks if mark.name.startswith("Optimizer.step#")]
    ends = sorted(mark.end_s for mark in marks if mark.name == marks[0].name)
    return [
        (f"optimizer step {i}", begin, end)
        for i, (begin, end) in enumerate(itertools.pairwise(ends), start=1)
    ]


def _unjoined(steps: Sequence[KinetoStep]) -> Unjoined:
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


# Names under which copies and fills appear; their bytes are the profiler's own.
_COPY_NAMES = {"HtoD": "advisor::h2d_copy", "DtoH": "advisor::d2h_copy"}


def read_kineto(path: Path, *, origin_gpu: str | None = None) -> Trace:
    """The median step of an exported profile.

    Args:
        path: what ``export_chrome_trace`` wrote, gzipped or not.
        origin_gpu: the GPU it ran on, where the file does not say or says it wrongly.

    Raises:
        TraceError: the file is damaged, foreign, of an unknown schema or without kernels or steps.
        InputError: the GPU is needed and not given.
        UnknownGpuError: the GPU is not in the catalog.
    """
    recording = kineto_events.read_recording(path)
    untyped = _trace(recording, path, origin_gpu)
    try:
        trace = typed(Trace, untyped)
        check_trace(trace)
    except ValueError as error:
        raise TraceError(f"the profile {str(path)!r} is damaged: {error}. Export it again.") from error
    return trace


def _trace(recording: kineto_events.KinetoEvents, path: Path, origin_gpu: str | None) -> Trace:
    name = origin_gpu or recording.device_name
    if name is None:
        raise InputError(
            f"the profile {str(path)!r} does not say which GPU it ran on: add `origin_gpu` NAME."
        )
    origin = resolve_gpu(name).name
    steps, unjoined = join(recording)
    step = sorted(steps, key=lambda step: step.device_s)[(len(steps) - 1) // 2]
    exchanged = [call for call in step.calls if _is_collective(call)]
    computed = [call for call in step.calls if not _is_collective(call)]
    autograd = kineto_events.Autograd.of(recording.operators)
    collectives: tuple[Collective, ...] = ()
    exchange: list[Finding] = []
    if exchanged:
        # That there is communication, and how often; a profile does not tell its size.
        collectives = (Collective(kind="nccl", num_bytes=None, world_size=None, count=len(exchanged)),)
        seconds = sum(event.duration_s for call in exchanged for event in call.device_events)
        exchange = [KernelsLeftOut(which="exchange", num_kernels=len(exchanged), time_s=seconds)]
    return Trace(
        schema_version=SCHEMA_VERSION, script=str(path), arguments=(), backend="kineto", origin_gpu=origin,
        versions={}, precision=Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=True),
        batch_size=None, samples_per_epoch=None, iterations_per_epoch=None, accumulation=1,
        ops=kineto_events.merged(op for call in computed for op in _ops(call, autograd)),
        # A profiled step waits for the profiler, so its wall time says little about a run without one.
        iteration_s=None, data_loading_s=None, num_workers=None, memory=_memory(recording, len(steps)),
        collectives=collectives, warnings=(*_warnings(steps, step, unjoined, recording), *exchange),
    )  # fmt: skip


def _is_collective(call: KinetoCall) -> bool:
    return all("nccl" in event.name.lower() for event in call.device_events)


def _ops(call: KinetoCall, autograd: kineto_events.Autograd) -> list[Op]:
    """One Op for the kernels of a call, and one for each copy and fill in it."""
    kernels = [event for event in call.device_events if event.kind == "kernel"]
    others = [event for event in call.device_events if event.kind != "kernel"]
    ops = [_traffic_op(event, call.phase) for event in others]
    if not kernels:
        return ops
    inputs = kineto_events.tensors_of(call.operator) if call.operator else ()
    outputs, flops, num_bytes = kineto_events.cost_of_call(call.operator, inputs, autograd)
    short = kernels[0].name.removeprefix("void ").partition("<")[0].partition("(")[0]
    op = Op(
        name=call.operator.name if call.operator else f"unjoined::{short}",
        phase=call.phase,
        inputs=inputs,
        outputs=outputs,
        attributes={},
        flops=flops,
        bytes=num_bytes,
        count=1,
        measured_s=sum(event.duration_s for event in kernels),
        kernels=kineto_events.kernels_of(kernels),
    )
    return [op, *ops]


def _traffic_op(event: kineto_events.DeviceEvent, phase: Phase) -> Op:
    direction = next((name for word, name in _COPY_NAMES.items() if word in event.name), None)
    num_bytes = event.args.get("bytes") or 0
    # A copy within the device reads and writes, a fill only writes.
    within = 2 * num_bytes if event.kind == "memcpy" else num_bytes
    return Op(
        name=direction or f"advisor::{event.kind}",
        phase=phase,
        inputs=(),
        outputs=(),
        attributes={},
        flops=0,
        bytes=num_bytes if direction else within,
        count=1,
        measured_s=event.duration_s,
    )


def _memory(recording: kineto_events.KinetoEvents, num_steps: int) -> MemoryUse:
    """Gradients from what autograd accumulates; a profile tells nothing of the rest."""
    gradients = [
        tensor_bytes(tensor)
        for operator in recording.operators
        if operator.name.startswith("torch::autograd::AccumulateGrad")
        for tensor in kineto_events.tensors_of(operator)[:1]
    ]
    gradient_bytes = sum(gradients) // num_steps or None
    return MemoryUse(
        parameter_bytes=gradient_bytes, gradient_bytes=gradient_bytes, optimizer_bytes=None,
        activation_bytes=None, peak_bytes=None,
    )  # fmt: skip


def _warnings(
    steps: Sequence[KinetoStep], step: KinetoStep, unjoined: Unjoined, recording: kineto_events.KinetoEvents
) -> tuple[Finding, ...]:
    warnings: list[Finding] = [IterationSeen(of="median-step", names=[step.name], num=len(steps))]
    if unjoined.kernels:
        warnings.append(
            KernelsLeftOut(
                which="unjoined",
                share_of_kernels=unjoined.share_of_kernels,
                share_of_time=unjoined.share_of_time,
            )
        )
    if not any(operator.args.get("input dims") for operator in recording.operators):
        warnings.append(ProfileLacks(what="shapes"))
    elif not any(operator.args.get("input type") for operator in recording.operators):
        warnings.append(ProfileLacks(what="dtypes"))
    return (*warnings, ProfileLacks(what="flags"))
