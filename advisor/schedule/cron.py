"""Cron text: five fields -> the minutes that they mean, as cron(8) reads them.

Each field is read here and spelt out as a list; the search for the next minute is APScheduler's. It would
read the fields otherwise: 0 is its Monday, and a day of the month *and* a day of the week must both hold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from advisor.core.errors import InputError

if TYPE_CHECKING:
    from apscheduler.triggers.base import BaseTrigger

EXAMPLE = "'0 8 * * MON' is Mondays at 08:00"
FIELDS = "minute, hour, day of month, month, day of week"
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_MOST_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_NICKNAMES = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}  # fmt: skip
_ITEM = re.compile(r"(?:(?P<star>\*)|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[0-9]{1,4}))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One of the five.

    Attributes:
        names: words that stand for ``lowest``, ``lowest + 1`` ...
    """

    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()


MINUTE = Field(name="minute", lowest=0, highest=59)
HOUR = Field(name="hour", lowest=0, highest=23)
DAY = Field(name="day of month", lowest=1, highest=31)
MONTH = Field(name="month", lowest=1, highest=12, names=tuple(_MONTHS))
# 7 is Sunday, too.
WEEKDAY = Field(name="day of week", lowest=0, highest=7, names=tuple(_WEEKDAYS))


@dataclass(frozen=True, kw_only=True)
class Cron:
    """The times that cron text means; each field as its values, in order.

    Attributes:
        days: of the month; None for any.
        weekdays: 0 is Sunday; None for any. Where days are given as well, either is enough.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...] | None
    months: tuple[int, ...]
    weekdays: tuple[int, ...] | None

    @property
    def is_every_hour(self) -> bool:
        """Whether it follows the hours as they pass rather than a time of the day."""
        return len(self.hours) == 24

    def next_wall(self, after: datetime) -> datetime | None:
        """The next minute that matches on a clock that is never changed; None if there is none.

        Args:
            after: without a time zone; the answer is later.
        """
        # UTC stands for the clock: it has neither gaps nor repetitions.
        start = after.replace(second=0, microsecond=0, tzinfo=UTC)
        found: datetime | None = self._trigger.get_next_fire_time(
            start.replace(second=1), start.replace(second=1)
        )
        return None if found is None else found.replace(tzinfo=None)

    @cached_property
    def _trigger(self) -> BaseTrigger:
        from apscheduler.triggers.combining import OrTrigger

        triggers = [self._one_trigger(self.days, None)] if self.days is not None else []
        if self.weekdays is not None or not triggers:
            triggers.append(self._one_trigger(None, self.weekdays))
        return OrTrigger(triggers) if len(triggers) > 1 else triggers[0]

    def _one_trigger(self, days: tuple[int, ...] | None, weekdays: tuple[int, ...] | None) -> BaseTrigger:
        from apscheduler.triggers.cron import CronTrigger

        # APScheduler counts from Monday.
        from_monday = None if weekdays is None else [(day - 1) % 7 for day in weekdays]
        return CronTrigger(
            month=_listed(self.months),
            day=_listed(days),
            day_of_week=_listed(from_monday),
            hour=_listed(self.hours),
            minute=_listed(self.minutes),
            second="0",
            timezone=UTC,
        )


def _listed(values: tuple[int, ...] | list[int] | None) -> str:
    return "*" if values is None else ",".join(map(str, sorted(values)))


@lru_cache(maxsize=1024)
def parse_cron(text: str) -> Cron:
    """The times that five fields mean.

    Raises:
        InputError: it has another number of fields, one cannot be read or crons read it in different ways, or
            it never comes.
    """
    fields = text.split()
    if len(fields) != 5:
        raise InputError(_wrong_number(text, fields))
    minutes, hours, months = (_values(text, fields[i], of) for i, of in ((0, MINUTE), (1, HOUR), (3, MONTH)))
    days, weekdays = _values(text, fields[2], DAY), _values(text, fields[4], WEEKDAY)
    any_day, any_weekday = _is_any(fields[2], days, 31), _is_any(fields[4], weekdays, 7)
    if not any_day and not any_weekday and "*" in (fields[2][0], fields[4][0]):
        raise InputError(
            f"cron text {text!r}: crons disagree whether days of month {fields[2]!r} and days of week"
            f" {fields[4]!r} must both hold or either is enough. Give one of the two fields as '*'."
        )
    if any_weekday and not any_day and all(min(days) > _MOST_DAYS[month - 1] for month in months):
        raise InputError(f"cron text {text!r} never comes: no such month has a day {min(days)}.")
    return Cron(
        minutes=minutes,
        hours=hours,
        months=months,
        days=None if any_day else days,
        weekdays=None if any_weekday else weekdays,
    )


def _wrong_number(text: str, fields: list[str]) -> str:
    if len(fields) == 1 and fields[0].lower() in _NICKNAMES:
        return f"cron text {text!r} is a nickname: write {_NICKNAMES[fields[0].lower()]!r}."
    hint = " Seconds and years are not among them." if len(fields) > 5 else ""
    number = f"{len(fields)} field{'' if len(fields) == 1 else 's'}"
    return f"cron text {text!r} has {number}, it needs five: {FIELDS}.{hint} Such as {EXAMPLE}."


def _is_any(field: str, values: tuple[int, ...], all_of_them: int) -> bool:
    return field.startswith("*") and len(values) == all_of_them


def _values(text: str, field: str, of: Field) -> tuple[int, ...]:
    """All values of a field; Sunday as 0 alone."""
    values = {value for item in field.split(",") for value in _range(text, item, of)}
    return tuple(sorted({value % 7 for value in values} if of is WEEKDAY else values))


def _range(text: str, item: str, of: Field) -> range:
    match = _ITEM.fullmatch(item)
    step = int(match["step"] or 1) if match else 0
    if match is None or step == 0 or (match["step"] and not match["star"] and match["last"] is None):
        raise InputError(
            f"cron text {text!r}: {of.name} {item!r} cannot be read: write a number, a range such as"
            f" {of.lowest}-{of.lowest + 3}, a list with commas, '*', or steps such as */2."
        )
    if match["star"]:
        # Not both names of Sunday: */2 is SUN, TUE, THU, SAT.
        return range(of.lowest, (6 if of is WEEKDAY else of.highest) + 1, step)
    first = _number(text, match["first"], of)
    last = first if match["last"] is None else _number(text, match["last"], of)
    if last < first:
        raise InputError(
            f"cron text {text!r}: {of.name} {item!r} goes backwards: write two ranges with a comma."
        )
    return range(first, last + 1, step)


def _number(text: str, word: str, of: Field) -> int:
    if word.upper() in of.names:
        return of.lowest + of.names.index(word.upper())
    # Ten digits are more than any field takes, and int() of a million would take long.
    if word.isdigit() and len(word) < 10 and of.lowest <= int(word) <= of.highest:
        return int(word)
    names = f" or {of.names[0]}-{of.names[-1]}" if of.names else ""
    raise InputError(f"cron text {text!r}: {of.name} {word!r} may be {of.lowest}-{of.highest}{names}.")
