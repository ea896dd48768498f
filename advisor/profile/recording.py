"""The child's recording (an internal format) -> Trace."""

import bisect
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul
from pathlib import Path
from statistics import fmean
from typing import cast

from advisor.core.errors import ProfileError
from advisor.core.findings import Finding, Text
from advisor.core.findings.about_traces import KernelsLeftOut, StepsDiffer
from advisor.core.gpus import resolve_gpu
from advisor.core.redaction import redact_with
from advisor.core.values import Checkpoints, Collective, Flow, MemoryUse, Op, Precision, RecordedStep, Trace
from advisor.formats.trace_files import SCHEMA_VERSION, check_trace, known_warning, warning_of
from advisor.formats.typed_json import typed
from advisor.kineto.events import DeviceEvent, HostEvent, KinetoEvents, kernels_of, merged
from advisor.kineto.events import read_recording as read_kineto_recording
from advisor.operators.registry import cost_of
from advisor.payload.protocol import MARK, VERSION, Notice, Operator, Result
from advisor.profile.child_files import read_foreign
from advisor.profile.epoch import epoch_of

# Keeps what a script says from filling a terminal or a trace.

CUT_MARK = " [... cut ...] "


def cut(text: str, most: int) -> str:
    """The text, or its beginning and its end with a mark between them.

    >>> cut("a" * 99, 20)
    'aaa [... cut ...] aa'
    """
    if len(text) <= most:
        return text
    kept = most - len(CUT_MARK)
    tail = kept // 2
    return text[: kept - tail] + CUT_MARK + text[len(text) - tail :]


def cut_each(texts: Sequence[str], most: int, *, most_texts: int) -> list[str]:
    """Each text as by ``cut``, and of many texts the first ones.

    >>> cut_each(["one", "two", "three"], 80, most_texts=2)
    ['one', 'two', '[... 1 more ...]']
    """
    kept = [cut(text, most) for text in texts[:most_texts]]
    left = len(texts) - len(kept)
    return [*kept, f"[... {left:,} more ...]"] if left else kept


# The profiler's timeline of a watched iteration -> what each recorded call ran on the GPU.
#
# The dispatch mode leaves a mark around every call (``advisor#12``). A kernel belongs to the call within
# whose mark its launch lies, on the same thread.

# A script can leave marks of its own.
_OUR_MARK = re.compile(rf"{MARK}[0-9]{{1,18}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What ran on the GPU in the watched iteration."""

    by_call: Mapping[int, tuple[DeviceEvent, ...]]
    """Device events by the number of the call that launched them."""
    unmarked: tuple[DeviceEvent, ...]
    """Those that no recorded call launched."""

    @property
    def unmarked_share(self) -> float:
        """The part of all device time that belongs to no call, 0..1."""
        lost_s = sum(event.duration_s for event in self.unmarked)
        known_s = sum(event.duration_s for events in self.by_call.values() for event in events)
        return lost_s / (lost_s + known_s) if self.unmarked else 0.0


def read_timeline(path: Path) -> Timeline:
    """Join a profiler's export by our marks. Raises TraceError: the export is damaged or holds no kernels."""
    return timeline_of(read_kineto_recording(path))


def timeline_of(recording: KinetoEvents) -> Timeline:
    """Join the events of a recording by our marks."""
    marks: dict[str, list[HostEvent]] = {}
    for mark in recording.marks:
        if _OUR_MARK.fullmatch(mark.name):
            marks.setdefault(mark.thread, []).append(mark)
    by_call: dict[int, list[DeviceEvent]] = {}
    unmarked = []
    for event in recording.device_events:
        call = _call_of(event, recording, marks)
        if call is None:
            unmarked.append(event)
        else:
            by_call.setdefault(call, []).append(event)
    return Timeline(
        by_call={call: tuple(events) for call, events in by_call.items()}, unmarked=tuple(unmarked)
    )


def _call_of(
    event: DeviceEvent, recording: KinetoEvents, marks: Mapping[str, Sequence[HostEvent]]
) -> int | None:
    launch = None if event.correlation is None else recording.launches.get(event.correlation)
    if launch is None:
        return None
    candidates = marks.get(launch.thread, [])
    # Calls do not nest: the mode is off while it runs one.
    place = bisect.bisect_right(candidates, launch.begin_s, key=lambda mark: mark.begin_s)
    if place == 0 or candidates[place - 1].end_s < launch.begin_s:
        return None
    return int(candidates[place - 1].name.removeprefix(MARK))


# Characters of each.
_MOST_CHARACTERS = {"message": 2000, "traceback": 6000, "file": 500, "text": 500}
_MOST_CHARACTERS_REFUSED, _MOST_CHARACTERS_FACT = 500, 1000
_MOST_CHARACTERS_NAME = 200
_COARSE = 8
_MOST_TEXTS = 50
# The largest networks need some megabytes, whose values are few.
_MOST_BYTES = 32 * 2**20
_MOST_VALUES = 4_000_000
_BEGINNING = re.compile(rb'^\s*{\s*"format_version"\s*:\s*(\d{1,9})\s*[,}]')
_BEGINNING_BYTES = 100


class ChildRecording(Result, total=False):
    """The child's result, and what only the parent knows of the run."""

    in_sandbox: bool
    is_nobody: bool


def read_recording(path: Path) -> ChildRecording | None:
    """What the child wrote, with what a person reads cut and without secrets; None if it wrote nothing.

    Raises ProfileError: the file is no regular one, too large, or no recording of this version.
    """
    raw = read_foreign(path, _MOST_BYTES)
    if raw is None:
        return None
    if sum(map(raw.count, (b",", b"[", b"{"))) > _MOST_VALUES:
        raise ProfileError(_damaged(f"more than {_MOST_VALUES:,} values"))
    # Of another version any other field may differ, too.
    version = _BEGINNING.search(raw[:_BEGINNING_BYTES])
    if version is not None:
        _check_version(int(version[1]))
    result = _parsed(raw)
    _check_version(result["format_version"])
    return _shown(result)


def _check_version(version: int) -> None:
    if version != VERSION:
        raise ProfileError(
            "the profiling process and this advisor are of different versions: install gpu-advisor anew."
        )


def _parsed(raw: bytes) -> Result:
    """The file by the types of ``payload/protocol.py``: a script can write one, too.

    The parser stops at 200 levels, and types are stricter than they look: no number is negative or infinite,
    no name endless. The first fault is reported.
    """
    from pydantic_core import from_json  # late, since it takes a while

    try:
        return typed(Result, from_json(raw))
    except ValueError as error:
        raise ProfileError(_damaged(cut(str(error), 200))) from error


def _damaged(why: str) -> str:
    return (
        f"the profiling process left a damaged recording ({why}), and nothing of it is used. If the script"
        " does not write to advisor's temporary files, please report this."
    )


def _shown(result: Result) -> ChildRecording:
    shown: dict[str, object] = {**result}
    for key, most in _MOST_CHARACTERS.items():
        if isinstance(text := shown.get(key), str):
            shown[key] = _cut(text, most)
    if "refused" in result:
        kept = cut_each(result["refused"], _COARSE * _MOST_CHARACTERS_REFUSED, most_texts=_MOST_TEXTS)
        shown["refused"] = [cut(redact_with(text, os.environ), _MOST_CHARACTERS_REFUSED) for text in kept]
    if "withheld" in result:
        shown["withheld"] = cut_each(result["withheld"], _MOST_CHARACTERS_NAME, most_texts=_MOST_TEXTS)
    if "warnings" in result:
        left = len(result["warnings"]) - _MOST_TEXTS
        more = [_quoted(f"[... {left:,} more ...]")] if left > 0 else []
        shown["warnings"] = [*map(_known, result["warnings"][:_MOST_TEXTS]), *more]
    return cast("ChildRecording", shown)


def _known(warning: Notice) -> Notice:
    kind = known_warning(warning["code"])
    try:
        facts = {name: _shown_fact(fact) for name, fact in warning["facts"].items()}
        if kind is not None:
            warning_of(kind, facts)
            return {"code": kind.code, "facts": facts}
    except ValueError:
        pass
    return _quoted(_cut(f"{warning['code']} {json.dumps(warning['facts'])}", _MOST_CHARACTERS_FACT))


def _shown_fact(fact: object) -> object:
    if isinstance(fact, list):
        return [_shown_fact(one) if isinstance(one, str) else one for one in fact[:_MOST_TEXTS]]
    return _cut(fact, _MOST_CHARACTERS_FACT) if isinstance(fact, str) else fact


def _quoted(text: str) -> Notice:
    return {"code": Text.code, "facts": {"text": text}}


def _cut(text: str, most: int) -> str:
    # Cut twice: half of a secret is not known as one.
    return cut(redact_with(cut(text, _COARSE * most), os.environ), most)


def trace_of(
    recording: ChildRecording, script: str, arguments: Sequence[str], timeline: Timeline | None = None
) -> Trace:
    """A trace of the recorded iteration, each operator with its cost.

    Raises:
        UnknownGpuError: the GPU that it ran on is not in the catalog.
        ProfileError: the recording is not of any iteration that can be.
    """
    try:
        trace = typed(Trace, _trace_of(recording, script, arguments, timeline))
        check_trace(trace)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ProfileError(_damaged(cut(f"{type(error).__name__}: {error}", 200))) from error
    return trace


def _trace_of(
    recording: ChildRecording, script: str, arguments: Sequence[str], timeline: Timeline | None
) -> Trace:
    ops, unknown = operators_of(recording["operators"])
    steps = _steps_of(recording)
    if timeline is None:
        # Where calls are distinguished by kernels, it is unknown what made their operands.
        pairs = zip(ops, recording["flows"], strict=True)
        ops = tuple(replace(op, flows=typed(tuple[Flow, ...], own)) for op, own in pairs)
    else:
        ops = _measured(ops, recording["calls"], timeline)
        if timeline.unmarked:
            left, share = len(timeline.unmarked), timeline.unmarked_share
            unknown.append(KernelsLeftOut(which="unmarked", num_kernels=left, share_of_time=share))
    device = recording.get("device_name")
    loading = epoch_of(recording)
    checkpoints = recording.get("checkpoints")
    return Trace(
        schema_version=SCHEMA_VERSION,
        script=script,
        arguments=tuple(arguments),
        backend=recording["backend"],
        origin_gpu=None if device is None else resolve_gpu(device).name,
        versions=dict(recording["versions"]),
        precision=typed(Precision, {"amp_dtype": recording["amp_dtype"], **recording["precision"]}),
        batch_size=loading.batch_size,
        samples_per_epoch=loading.samples_per_epoch,
        iterations_per_epoch=loading.iterations_per_epoch,
        accumulation=loading.accumulation,
        ops=ops,
        iteration_s=recording.get("iteration_s"),
        data_loading_s=loading.seconds,
        loader_cpu_s_per_sample=loading.cpu_s_per_sample,
        num_workers=loading.num_workers,
        memory=typed(MemoryUse, recording["memory"]),
        collectives=typed(tuple[Collective, ...], recording["collectives"]),
        warnings=(
            *(warning_of(known_warning(one["code"]) or Text, one["facts"]) for one in recording["warnings"]),
            *loading.warnings,
            *_differences(steps),
            *unknown,
        ),
        world_size=recording["world_size"],
        is_sharded=recording["is_sharded"],
        has_sparse_gradients=recording["has_sparse_gradients"],
        compile_mode=recording["compile_mode"],
        parallel_by=recording["parallel_by"],
        awaits_reductions=recording["awaits_reductions"],
        batch_variation=loading.batch_variation,
        checkpoints=None if checkpoints is None else typed(Checkpoints, checkpoints),
        steps=steps,
    )


# FLOPs per byte at which GPUs of today are as busy computing as reading: 60 (FP32) to 300 (BF16).
_RIDGE = 100


def _steps_of(recording: ChildRecording) -> tuple[RecordedStep, ...]:
    """What recorded steps that differ did, over what the one in the trace did."""
    if "step_counts" not in recording:
        return ()
    ops, _ = operators_of(recording["step_operators"])
    cost = [max(op.flops / _RIDGE, op.bytes) for op in ops]
    work = [sum(map(mul, cost, counts)) for counts in recording["step_counts"]]
    calls = [sum(counts) for counts in recording["step_counts"]]
    of_trace = recording["typical_step"]
    return tuple(
        RecordedStep(work=one / work[of_trace], calls=num / calls[of_trace])
        for one, num in zip(work, calls, strict=True)
    )


# Of the mean work of steps; less is not worth a word.
_LEAST_DIFFERENCE = 0.01


def _differences(steps: Sequence[RecordedStep]) -> list[Finding]:
    work = [step.work for step in steps]
    if not work or max(work) - min(work) < _LEAST_DIFFERENCE * (mean := fmean(work)):
        return []
    return [StepsDiffer(num_steps=len(work), lightest=min(work) / mean, heaviest=max(work) / mean)]


def operators_of(entries: Sequence[Operator]) -> tuple[tuple[Op, ...], list[Finding]]:
    """Recorded operators with their cost, and warnings of those whose cost is not known."""
    warnings: dict[str, Finding] = {}
    ops = []
    for entry in entries:
        op = typed(Op, {**entry, "flops": 0, "bytes": 0})
        cost = cost_of(op.name, op.inputs, op.outputs, op.attributes)
        if cost.warning is not None:
            warnings[op.name] = cost.warning
        ops.append(replace(op, flops=cost.flops, bytes=cost.bytes))
    return tuple(ops), list(warnings.values())


def _measured(ops: Sequence[Op], calls: Sequence[Sequence[int]], timeline: Timeline) -> tuple[Op, ...]:
    """Each call with what it ran; calls that launched the same kernels are counted together."""
    single = []
    for op, numbers in zip(ops, calls, strict=True):
        for number in numbers:
            events = timeline.by_call.get(number, ())
            seconds = sum(event.duration_s for event in events)
            single.append(replace(op, count=1, measured_s=seconds, kernels=kernels_of(events)))
    return merged(single)
