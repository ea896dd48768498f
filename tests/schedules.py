"""Schedules for tests, and cron as its manual tells it: minute by minute, slow and clear."""

from collections.abc import Set
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from advisor.core.values import DeliverWhen, Schedule

AT = datetime(2026, 11, 22, 12, tzinfo=UTC)
"""A Sunday."""
_NAMES = {
    name: str(number)
    for names, first in (
        (("sun", "mon", "tue", "wed", "thu", "fri", "sat"), 0),
        (("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1),
    )
    for number, name in enumerate(names, first)
}
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def make_schedule(**changes: Any) -> Schedule:
    """Mondays at eight in Zurich, with these changes."""
    fields: dict[str, Any] = {
        "id": "5f",
        "name": "weekly",
        "cron": "0 8 * * MON",
        "zone": "Europe/Zurich",
        "command": ("prices", "refresh"),
        "folder": "/home/ann/train",
        "channel": None,
        "when": DeliverWhen.ALWAYS,
        "added_at": AT,
        "settled_until": AT,
    }
    return Schedule(**fields | changes)


def matches(text: str, shown: datetime) -> bool:
    """Whether cron starts a command at a minute of the wall clock; crontab(5), word by word.

    "Commands are executed by cron(8) when the minute, hour, and month fields match the current time, and at
    least one of the two day fields (day of month, or day of week) match." A field of ``*`` leaves the day to
    the other one.
    """
    minute, hour, day, month, weekday = (
        value in _values(field, low, high)
        for field, value, (low, high) in zip(
            text.split(),
            (shown.minute, shown.hour, shown.day, shown.month, shown.isoweekday() % 7),
            _BOUNDS,
            strict=True,
        )
    )
    day_field, weekday_field = text.split()[2], text.split()[4]
    if day_field == "*":
        return minute and hour and month and weekday
    if weekday_field == "*":
        return minute and hour and month and day
    return minute and hour and month and (day or weekday)


@cache
def _values(field: str, low: int, high: int) -> Set[int]:
    values: set[int] = set()
    for item in field.lower().split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        begin = low if span == "*" else int(_NAMES.get(first, first))
        end = high if span == "*" else int(_NAMES.get(last or first, last or first))
        wanted = range(begin, end + 1, int(step or 1))
        # Sunday has two numbers. Counted from 0, a step meets 7 only where it was written.
        values |= {*wanted} | ({0} if high == 7 and 7 in wanted and span != "*" else set())
    return values


def next_by_manual(text: str, after: datetime, *, most: timedelta) -> datetime | None:
    """The next matching minute of the wall clock, found by looking at each; None if there is none so soon."""
    shown = after.replace(second=0, microsecond=0)
    while shown < after + most:
        shown += timedelta(minutes=1)
        if matches(text, shown):
            return shown
    return None
