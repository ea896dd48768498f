"""The profiler's timeline of a watched iteration -> what each recorded call ran on the GPU.

The dispatch mode leaves a mark around every call (``advisor#12``). A kernel belongs to the call within
whose mark its launch lies, on the same thread.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.kineto.events import DeviceEvent, HostEvent, Recording, read_recording
from advisor.payload.protocol import MARK

# A script can leave marks of its own.
_OUR_MARK = re.compile(rf"{MARK}[0-9]{{1,18}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What ran on the GPU in the watched iteration.

    Attributes:
        by_call: device events by the number of the call that launched them.
        unmarked: those that no recorded call launched.
    """

    by_call: Mapping[int, tuple[DeviceEvent, ...]]
    unmarked: tuple[DeviceEvent, ...]

    @property
    def unmarked_share(self) -> float:
        """The part of all device time that belongs to no call, 0..1."""
        lost_s = sum(event.duration_s for event in self.unmarked)
        known_s = sum(event.duration_s for events in self.by_call.values() for event in events)
        return lost_s / (lost_s + known_s) if self.unmarked else 0.0


def read_timeline(path: Path) -> Timeline:
    """Join a profiler's export by our marks.

    Raises:
        TraceError: the export is damaged or holds no kernels.
    """
    return timeline_of(read_recording(path))


def timeline_of(recording: Recording) -> Timeline:
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
    event: DeviceEvent, recording: Recording, marks: Mapping[str, Sequence[HostEvent]]
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
