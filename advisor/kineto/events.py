"""Reads an exported profiler trace (Chrome JSON of PyTorch's Kineto) into typed events.

Names of categories and arguments changed between schemas (``Operator`` / ``cpu_op``, ``external id`` /
``External id``), so all are compared in lower case. Times become seconds.
"""

from __future__ import annotations

import io
import math
import reprlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypedDict, get_args

from advisor.core.errors import TraceError
from advisor.formats.foreign_files import open_unpacked, read_members

JsonObject = Mapping[str, object]
"""Of a file that somebody else wrote: each value is made what it should be where it is read."""

_Whole = Literal["correlation", "external id", "fwd thread id", "sequence number", "bytes",
                 "registers per thread", "shared memory"]  # fmt: skip
_List = Literal["input dims", "input type"]
_Size = Literal["grid", "block"]
Arguments = TypedDict(
    "Arguments",
    {
        "correlation": int,
        "external id": int,
        "fwd thread id": int,
        "sequence number": int,
        "bytes": int,
        "registers per thread": int,
        "shared memory": int,
        "input dims": list[object],
        "input type": list[object],
        "grid": tuple[int, ...],
        "block": tuple[int, ...],
    },
    total=False,
)
"""What is counted with of an event: numbers, lists of anything, and the numbers of a launch."""

NEWEST_SCHEMA = 1
_US = 1e-6
_EVENTS = "traceEvents"
_MOST_CATEGORIES = 20
_LONGEST_FAULT = 200
# Marks, arrows and names of threads are about as many as the events that count.
_MOST_OTHERS = 500_000
_MOST_OTHERS_EACH = 10

_HOST_OPS = {"operator", "cpu_op"}
_MARKS = {"operator", "cpu_op", "user_annotation"}
_LAUNCHES = {"runtime", "cuda_runtime", "cuda_driver", "driver"}
_DEVICE = {"kernel": "kernel", "memcpy": "memcpy", "gpu_memcpy": "memcpy", "memset": "memset",
           "gpu_memset": "memset"}  # fmt: skip
_WHOLE: tuple[_Whole, ...] = get_args(_Whole)
_LISTS: tuple[_List, ...] = get_args(_List)
_SIZES: tuple[_Size, ...] = get_args(_Size)
_MOST = 2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEvent:
    """An operator, or a mark such as ``ProfilerStep#7``, on a CPU thread."""

    name: str
    thread: str
    begin_s: float
    end_s: float
    args: Arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A call of the CUDA runtime; ``correlation`` leads to what it started on the GPU."""

    thread: str
    begin_s: float
    external_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEvent:
    """A kernel, copy or fill on the GPU."""

    kind: str
    name: str
    begin_s: float
    duration_s: float
    correlation: int | None
    external_id: int | None
    args: Arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """All events that matter, in order of time; launches by correlation."""

    operators: tuple[HostEvent, ...]
    marks: tuple[HostEvent, ...]
    launches: Mapping[int, Launch]
    device_events: tuple[DeviceEvent, ...]
    device_name: str | None


def read_recording(path: Path) -> Recording:
    """Parse a profiler export, gzipped or not.

    Raises:
        TraceError: missing, truncated, no profiler export, of an unknown schema, or without kernels.
    """
    try:
        with open_unpacked(path) as file:
            recording = _read(file, path)
    except OSError as error:
        raise TraceError(f"cannot read the profile {str(path)!r}: {error.strerror}.") from error
    except (EOFError, zlib.error, ValueError) as error:
        raise TraceError(
            f"the profile {str(path)!r} is truncated or damaged ({error}): export it again."
        ) from error
    return recording.recording(path)


@dataclass(slots=True)
class _Found:
    """What has been read so far, in the order of the file."""

    operators: list[HostEvent] = field(default_factory=list)
    marks: list[HostEvent] = field(default_factory=list)
    launches: dict[int, Launch] = field(default_factory=dict)
    device_events: list[DeviceEvent] = field(default_factory=list)
    categories: set[str] = field(default_factory=set)
    device_name: str | None = None
    num_others: int = 0

    def take(self, event: JsonObject) -> None:
        """Keep an event if it matters.

        Raises:
            KeyError, TypeError, ValueError, OverflowError, AttributeError: it is no event of a profiler.
        """
        # Every event of Chrome's format has a phase; "X" is one with a duration.
        category = self._category(event) if event["ph"] == "X" else ""
        if category in _MARKS:
            host = _host(event)
            if category in _HOST_OPS:
                self.operators.append(host)
            if "#" in host.name:
                self.marks.append(host)
        elif category in _LAUNCHES:
            self.launches.update(_launch(event))
        elif category in _DEVICE:
            self.device_events.append(_device(event, _DEVICE[category]))
        else:
            self._pass_over()

    def recording(self, path: Path) -> Recording:
        """All of it in order of time.

        Raises:
            TraceError: there are no operators or no kernels.
        """
        kernels = sum(event.kind == "kernel" for event in self.device_events)
        if not self.operators or not kernels:
            raise TraceError(
                f"{str(path)!r} holds {len(self.operators)} operators and {kernels} GPU kernels"
                f" (categories: {', '.join(sorted(self.categories)) or 'none'}). Record with"
                " activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] and export_chrome_trace."
            )
        return Recording(
            operators=tuple(sorted(self.operators, key=_begin)),
            marks=tuple(sorted(self.marks, key=_begin)),
            launches=self.launches,
            device_events=tuple(sorted(self.device_events, key=_begin)),
            device_name=self.device_name,
        )

    def _category(self, event: JsonObject) -> str:
        category = str(event.get("cat"))
        if len(self.categories) < _MOST_CATEGORIES:
            self.categories.add(category[:40])
        return category.lower()

    def _pass_over(self) -> None:
        self.num_others += 1
        num_kept = len(self.operators) + len(self.launches) + len(self.device_events)
        if self.num_others > _MOST_OTHERS + _MOST_OTHERS_EACH * num_kept:
            raise ValueError(f"{self.num_others:,} events are neither operators, launches nor kernels")


def _read(file: io.BufferedReader, path: Path) -> _Found:
    """Take the events as they come: what is no profile is refused at the first of them."""
    recording = _Found()
    is_export = False
    with io.TextIOWrapper(file, "utf-8-sig") as text:
        for name, value in read_members(text, streamed=_EVENTS):
            if name == "schemaVersion":
                _check_schema(value, path)
            elif name == "deviceProperties":
                recording.device_name = _device_name(value)
            elif isinstance(value, Iterator):
                is_export = True
                _take_all(value, recording, path)
    if not is_export:
        raise TraceError(
            f"{str(path)!r} is neither a trace of advisor profile nor a profiler's export (it has no list"
            " 'traceEvents'). Write one with advisor profile, or with torch.profiler's export_chrome_trace."
        )
    return recording


def _take_all(events: Iterator[JsonObject], recording: _Found, path: Path) -> None:
    for event in events:
        try:
            recording.take(event)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            fault = f"{type(error).__name__}: {str(error)[:_LONGEST_FAULT]}"
            raise TraceError(
                f"{str(path)!r} has an event we cannot read: {fault} in {reprlib.repr(event)}."
            ) from error


def _check_schema(version: object, path: Path) -> None:
    if not isinstance(version, int) or version > NEWEST_SCHEMA:
        raise TraceError(
            f"{str(path)!r} has profiler schema {reprlib.repr(version)}, and we know those up to"
            f" {NEWEST_SCHEMA}: upgrade gpu-advisor, or profile the script itself."
        )


def _host(event: JsonObject) -> HostEvent:
    begin_s = _seconds(event["ts"])
    return HostEvent(
        name=str(event["name"]),
        thread=_thread(event),
        begin_s=begin_s,
        end_s=begin_s + _seconds(event.get("dur", 0)),
        args=_args(event),
    )


def _launch(event: JsonObject) -> dict[int, Launch]:
    """By its correlation; none without one."""
    args = _args(event)
    correlation = args.get("correlation")
    if correlation is None:
        return {}
    begin_s = _seconds(event["ts"])
    return {correlation: Launch(thread=_thread(event), begin_s=begin_s, external_id=_external_id(args))}


def _device(event: JsonObject, kind: str) -> DeviceEvent:
    args = _args(event)
    return DeviceEvent(
        kind=kind,
        name=str(event["name"]),
        begin_s=_seconds(event["ts"]),
        duration_s=_seconds(event.get("dur", 0)),
        correlation=args.get("correlation"),
        external_id=_external_id(args),
        args=args,
    )


def _seconds(microseconds: object) -> float:
    seconds = float(_number(microseconds)) * _US
    if not math.isfinite(seconds):
        raise ValueError(f"a time of {seconds} s")
    return seconds


def _thread(event: JsonObject) -> str:
    return f"{event.get('pid')}/{event.get('tid')}"


def _args(event: JsonObject) -> Arguments:
    given = event.get("args") or {}
    if not isinstance(given, dict):
        raise TypeError(f"arguments that are a {type(given).__name__}")
    values = {str(name).lower(): value for name, value in given.items()}
    args = Arguments()
    for whole in _WHOLE:
        if values.get(whole) is not None:
            args[whole] = _whole(values[whole])
    for name in _LISTS:
        if isinstance(items := values.get(name), list):
            args[name] = items
    for size in _SIZES:
        if isinstance(items := values.get(size), list):
            args[size] = tuple(map(_whole, items[:3]))
    return args


def _number(value: object) -> str | float:
    if not isinstance(value, str | int | float):
        raise TypeError(f"a {type(value).__name__} in place of a number")
    return value


def _whole(value: object) -> int:
    number = int(_number(value))
    if abs(number) >= _MOST:
        raise ValueError(f"a number of {number.bit_length()} bits")
    return number


def _external_id(args: Arguments) -> int | None:
    # 0 stands for "none" where a kernel was launched outside of any operator.
    return args.get("external id") or None


def _begin(event: HostEvent | DeviceEvent) -> float:
    return event.begin_s


def _device_name(devices: object) -> str | None:
    listed = devices if isinstance(devices, list) else []
    names = {str(device.get("name")) for device in listed if isinstance(device, dict)}
    return names.pop() if len(names) == 1 else None
