"""Reads an exported profiler trace (Chrome JSON of PyTorch's Kineto) into typed events.

Names of categories and arguments changed between schemas (``Operator`` / ``cpu_op``, ``external id`` /
``External id``), so all are compared in lower case. Times become seconds.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.errors import TraceError

NEWEST_SCHEMA = 1
_US = 1e-6
_MAX_JSON_BYTES = 2**32

_HOST_OPS = {"operator", "cpu_op"}
_MARKS = {"operator", "cpu_op", "user_annotation"}
_LAUNCHES = {"runtime", "cuda_runtime", "cuda_driver", "driver"}
_DEVICE = {"kernel": "kernel", "memcpy": "memcpy", "gpu_memcpy": "memcpy", "memset": "memset",
           "gpu_memset": "memset"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEvent:
    """An operator, or a mark such as ``ProfilerStep#7``, on a CPU thread."""

    name: str
    thread: str
    begin_s: float
    end_s: float
    args: Mapping[str, Any]


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
    args: Mapping[str, Any]


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
    document = _load(path)
    events = [event for event in document["traceEvents"] if isinstance(event, dict)]
    spans = [event for event in events if event.get("ph") == "X"]
    try:
        recording = Recording(
            operators=tuple(sorted(_host(spans, _HOST_OPS), key=_begin)),
            marks=tuple(sorted((m for m in _host(spans, _MARKS) if "#" in m.name), key=_begin)),
            launches=dict(_launches(spans)),
            device_events=tuple(sorted(_device(spans), key=_begin)),
            device_name=_device_name(document),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{str(path)!r} has an event we cannot read: {error!r}.") from error
    kernels = sum(event.kind == "kernel" for event in recording.device_events)
    if not recording.operators or not kernels:
        found = sorted({str(event.get("cat")) for event in spans})
        raise TraceError(
            f"{str(path)!r} holds {len(recording.operators)} operators and {kernels} GPU kernels"
            f" (categories: {', '.join(found) or 'none'}). Record with"
            " activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] and export_chrome_trace."
        )
    return recording


def _load(path: Path) -> dict[str, Any]:
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            with gzip.open(path) as file:
                raw = file.read(_MAX_JSON_BYTES)
        document = json.loads(raw)
    except OSError as error:
        raise TraceError(f"cannot read the profile {str(path)!r}: {error}.") from error
    except (EOFError, zlib.error, ValueError, RecursionError) as error:
        raise TraceError(
            f"the profile {str(path)!r} is truncated or damaged ({error}): export it again."
        ) from error
    if isinstance(document, list):  # Chrome's format allows the bare list
        document = {"traceEvents": document}
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        raise TraceError(
            f"{str(path)!r} is neither a trace of advisor profile nor a profiler's export (it has no list"
            " 'traceEvents'). Write one with advisor profile, or with torch.profiler's export_chrome_trace."
        )
    version = document.get("schemaVersion", NEWEST_SCHEMA)
    if not isinstance(version, int) or version > NEWEST_SCHEMA:
        raise TraceError(
            f"{str(path)!r} has profiler schema {version!r}, and we know those up to {NEWEST_SCHEMA}:"
            " upgrade gpu-advisor, or profile the script itself."
        )
    return document


def _host(spans: list[dict[str, Any]], categories: set[str]) -> Iterator[HostEvent]:
    for event in spans:
        if str(event.get("cat", "")).lower() in categories:
            begin_s = float(event["ts"]) * _US
            yield HostEvent(
                name=str(event["name"]),
                thread=f"{event.get('pid')}/{event.get('tid')}",
                begin_s=begin_s,
                end_s=begin_s + float(event.get("dur", 0)) * _US,
                args=_lower(event),
            )


def _launches(spans: list[dict[str, Any]]) -> Iterator[tuple[int, Launch]]:
    for event in spans:
        if str(event.get("cat", "")).lower() in _LAUNCHES:
            args = _lower(event)
            correlation = args.get("correlation")
            if correlation is not None:
                yield (
                    int(correlation),
                    Launch(
                        thread=f"{event.get('pid')}/{event.get('tid')}",
                        begin_s=float(event["ts"]) * _US,
                        external_id=_external_id(args),
                    ),
                )


def _device(spans: list[dict[str, Any]]) -> Iterator[DeviceEvent]:
    for event in spans:
        kind = _DEVICE.get(str(event.get("cat", "")).lower())
        if kind is not None:
            args = _lower(event)
            correlation = args.get("correlation")
            yield DeviceEvent(
                kind=kind,
                name=str(event["name"]),
                begin_s=float(event["ts"]) * _US,
                duration_s=float(event.get("dur", 0)) * _US,
                correlation=None if correlation is None else int(correlation),
                external_id=_external_id(args),
                args=args,
            )


def _lower(event: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name).lower(): value for name, value in (event.get("args") or {}).items()}


def _external_id(args: Mapping[str, Any]) -> int | None:
    # 0 stands for "none" where a kernel was launched outside of any operator.
    value = args.get("external id")
    return int(value) or None if value is not None else None


def _begin(event: HostEvent | DeviceEvent) -> float:
    return event.begin_s


def _device_name(document: Mapping[str, Any]) -> str | None:
    devices = document.get("deviceProperties") or []
    names = {str(device.get("name")) for device in devices if isinstance(device, dict)}
    return names.pop() if len(names) == 1 else None
