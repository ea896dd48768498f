"""Times of a job log -> seconds since 1970, also across a change of clocks.

A log without zones is written in the local time of its cluster, whose clock repeats one hour each autumn and
skips one each spring. A time in the repeated hour has two readings; what else is known of the job decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo

from advisor.core.errors import InputError
from advisor.core.units import MINUTE_S

ABSENT = frozenset({"", "-1", "unknown", "none", "n/a", "unlimited", "partition_limit", "invalid"})

_MOST_S = 1e11
"""Since 1970: the year 5138. Milliseconds since 1970 lie beyond."""

Readings = tuple[float, ...]
"""Seconds since 1970: none of a time that the log does not know, two in the hour that a clock repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """When a job entered the queue, started and ended; None where the log does not tell.

    Attributes:
        is_certain: whether the clock leaves one reading of the wait.
    """

    entered_s: float
    start_s: float | None
    end_s: float | None
    is_certain: bool = True


def zone_named(name: str) -> ZoneInfo:
    """A time zone of the IANA database.

    Raises:
        InputError: there is none of this name.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise InputError(f"no time zone is named {name!r}: give one such as Europe/Berlin or UTC.") from error


def readings_s(text: str, name: str, zone: tzinfo | None) -> Readings:
    """What an ISO time or a bare number of seconds may mean, the earliest first.

    Args:
        text: the field.
        name: its column.
        zone: of times without one; None is the zone of this machine.

    Raises:
        ValueError: it is neither a time nor absent.
    """
    if text.lower() in ABSENT:
        return ()
    if (number := finite(text)) is not None:
        if abs(number) > _MOST_S:
            raise ValueError(f"{name} {text[:40]!r} is no number of seconds: is it in milliseconds?")
        return (number,)
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return (moment.timestamp(),)
        first, second = (moment.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{name} {text!r} is no time such as 2026-03-01T12:00:00, nor seconds") from None
    # In the hour that spring skips the second reading is the earlier one, and no clock shows either.
    return (first, second) if first < second else (first,)


def times_of(
    submit: Readings, eligible: Readings, start: Readings, end: Readings, run_s: float | None
) -> Times:
    """The times of one job; a wait counts from when it could have started, not from before.

    Args:
        submit: one reading at least.
        eligible: when it was no longer held nor waited for another job.
        start: none of a job that never started.
        end: none while it runs.
        run_s: its run time, if the log tells it.
    """
    entered = sorted({max(times) for times in _pairs(submit, eligible)} if eligible else set(submit))
    if not start:
        return Times(entered_s=entered[-1], start_s=None, end_s=end[-1] if end else None)
    start = _that_fit(start, end, run_s)
    waits = sorted((s - e, s) for s in start for e in entered)
    possible = [(wait_s, start_s) for wait_s, start_s in waits if wait_s >= 0] or waits[-1:]
    wait_s, start_s = possible[0]
    last = next((e for e in end if e >= start_s), end[-1]) if end else None
    return Times(
        entered_s=start_s - wait_s,
        start_s=start_s,
        end_s=last if last is not None or run_s is None else start_s + run_s,
        is_certain=possible[-1][0] == wait_s,
    )


def finite(text: str) -> float | None:
    """A finite number, or None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _that_fit(start: Readings, end: Readings, run_s: float | None) -> Readings:
    """Readings of the start that agree with the end and the run time, or all."""
    if len(start) == 1 or run_s is None or not end:
        return start
    near = tuple(s for s in start if any(abs(e - s - run_s) <= MINUTE_S for e in end))
    return near or start


def _pairs(left: Sequence[float], right: Sequence[float]) -> list[tuple[float, float]]:
    return [(a, b) for a in left for b in right]
