"""When a schedule is due: moments from its cron text and its zone; what was missed, and what is caught up.

A time of the day that the clock leaves out comes once, at the moment of the jump; one that it shows twice
comes once, the first time. What comes every hour follows the hours as they pass, whatever the clock does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from advisor.core.values import Schedule
from advisor.schedule.cron import Cron, parse_cron
from advisor.schedule.zones import change_between, first_moment, wall, zone_of

MOST_MISSED = 100
"""How many missed occurrences are listed one by one."""
_MINUTE = timedelta(minutes=1)
# How far back the last occurrence is sought: a longer way only where a shorter one had none.
_SPANS = tuple(timedelta(days=days) for days in (1 / 24, 1, 7, 31, 366, 5 * 366, 41 * 366))


def next_after(schedule: Schedule, moment: datetime) -> datetime | None:
    """The first time after a moment at which the schedule is due, in UTC; None if it never is again.

    Args:
        schedule: whose fields and zone count.
        moment: with a time zone.

    Raises:
        InputError: its fields or its zone cannot be read.
    """
    return next_time(parse_cron(schedule.cron), zone_of(schedule.zone), moment)


def next_time(cron: Cron, zone: ZoneInfo, moment: datetime) -> datetime | None:
    """As :func:`next_after`."""
    try:
        return (_next_hourly if cron.is_every_hour else _next_daily)(cron, zone, moment.astimezone(UTC))
    except OverflowError:  # the year 10000
        return None


def _next_daily(cron: Cron, zone: ZoneInfo, moment: datetime) -> datetime | None:
    shown = cron.next_wall(wall(moment, zone))
    while shown is not None:
        due_at = first_moment(shown, zone)
        if due_at is not None and due_at > moment:
            return due_at
        shown = cron.next_wall(shown)
    return None


def _next_hourly(cron: Cron, zone: ZoneInfo, moment: datetime) -> datetime | None:
    """Search with the offset of the moment, and anew from where the clock is changed on the way."""
    start, offset = moment, _offset(moment, zone)
    while True:
        shown = cron.next_wall((start + offset).replace(tzinfo=None))
        if shown is None:
            return None
        due_at = (shown - offset).replace(tzinfo=UTC)
        offset_then = _offset(due_at, zone)
        if offset_then == offset:
            return due_at
        # A second before: the moment of the change may match itself.
        start = change_between(start, due_at, zone) - timedelta(seconds=1)
        offset = offset_then


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What became due in a while.

    Attributes:
        run_at: the latest time, if it is not too old to catch up; it alone is run.
        missed: the times that will never run, oldest first; at most ``MOST_MISSED``.
        are_all: whether ``missed`` names all of them.
    """

    run_at: datetime | None
    missed: tuple[datetime, ...]
    are_all: bool = True


def due(schedule: Schedule, now: datetime, *, catch_up_s: float) -> Due:
    """What became due since the schedule was settled.

    Args:
        schedule: settled until some time.
        now: with a time zone.
        catch_up_s: how late, in seconds, the latest time may still run.

    Raises:
        InputError: its fields or its zone cannot be read.
    """
    latest = _latest(schedule, now)
    if latest is None:
        return Due(run_at=None, missed=())
    is_run = (now - latest).total_seconds() <= catch_up_s
    before = times_between(schedule, schedule.settled_until, latest - _MINUTE if is_run else latest)
    missed = tuple(islice(before, MOST_MISSED + 1))
    return Due(
        run_at=latest if is_run else None,
        missed=missed[:MOST_MISSED],
        are_all=len(missed) <= MOST_MISSED,
    )


def times_between(schedule: Schedule, after: datetime, until: datetime) -> Iterator[datetime]:
    """When it is due after one moment and until another, in order."""
    moment = next_after(schedule, after)
    while moment is not None and moment <= until:
        yield moment
        moment = next_after(schedule, moment)


def _latest(schedule: Schedule, now: datetime) -> datetime | None:
    """The last time it was due since it was settled; None if it was not."""
    for span in _SPANS:
        start = max(schedule.settled_until, now - span)
        latest = None
        for latest in times_between(schedule, start, now):  # noqa: B007 - the last one is wanted
            pass
        if latest is not None or start == schedule.settled_until:
            return latest
    return None
