"""When a schedule is due: cron text and a time zone -> moments; what was missed, and what is caught up.

``cronsim`` reads the fields and finds the moments, with the rules of Debian's cron for clocks that change. It
gets each field written out: that decides what counts as a fixed time of the day, and refuses what other
schedulers would read differently.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import groupby, islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError

from advisor.core.errors import InputError, did_you_mean
from advisor.core.values import Schedule

MOST_MISSED = 100
"""How many missed times are listed one by one."""
_EXAMPLE = "'0 8 * * MON' is Mondays at 08:00"
_FIELDS = "minute, hour, day of month, month, day of week"
# By the name that cronsim gives a field in its errors.
_ALLOWED = {
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31 (a day that one of the months has)",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT (0 and 7 are Sunday)",
}
_NICKNAMES = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}  # fmt: skip
# cronsim also takes L, LW, 5L and 1#2, which no export can say, and 5/10, which crons read in different ways.
_ITEM = re.compile(r"(?:\*|\w+-\w+)(?:/\d{1,4})?|[A-Z]{3}|\d{1,4}", re.ASCII)
_MICROSECOND = timedelta(microseconds=1)
# How far back the latest time is looked for: further only where nothing is nearer.
_SPANS = tuple(timedelta(days=days) for days in (1 / 24, 1, 31, 366, 5 * 366))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """The times that cron text means; each field as its values, in order."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...] | None
    """Of the month; None for any."""
    months: tuple[int, ...]
    weekdays: tuple[int, ...] | None
    """0 is Sunday; None for any. Where days are given as well, either is enough."""

    @property
    def text(self) -> str:
        """Five fields of numbers, with Sunday as 0: what every cron reads alike.

        >>> parse_cron("*/20 8 * JAN-FEB SAT,7").text
        '0,20,40 8 * 1-2 0,6'
        """
        times = f"{listed(self.minutes, 60)} {listed(self.hours, 24)} {listed(self.days)}"
        return f"{times} {listed(self.months, 12)} {listed(self.weekdays)}"

    def after(self, moment: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """The times after a moment by the clock of a zone, in order and in UTC.

        A time of the day that the clock skips comes when it jumps; one that it shows twice comes the first
        time. With every hour given, it follows the hours as they pass.
        """
        # A "*" as minutes would make cronsim follow the hours as they pass: true of "*" as hours alone.
        minutes = listed(self.minutes, 60 if len(self.hours) == 24 else None)
        text = f"{minutes} {self.text.partition(' ')[2]}"
        try:
            for local in CronSim(text, moment.astimezone(zone)):
                due_at = local.astimezone(UTC)
                # Not again at the second of two equal readings of the clock, or for a second skipped time.
                if due_at > moment:
                    yield due_at
                    moment = due_at
        except OverflowError:  # the year 10000
            return


def listed(
    values: tuple[int, ...] | None, all_of_them: int | None = None, *, dash: str = "-", digits: int = 1
) -> str:
    """Numbers as ranges and a list; ``*`` for any, or where there are all.

    Args:
        values: in order; None for any.
        all_of_them: how many there can be; None where a list of all means something else than any.
        digits: of each number, at least.

    >>> listed((0, 1, 2, 4), 60)
    '0-2,4'
    """
    if values is None or len(values) == all_of_them:
        return "*"
    # In a run of neighbours, value and position grow alike.
    runs = ([value for _, value in run] for _, run in groupby(enumerate(values), lambda one: one[1] - one[0]))
    ends = (run[:1] if len(run) == 1 else [run[0], run[-1]] for run in runs)
    return ",".join(dash.join(f"{end:0{digits}}" for end in pair) for pair in ends)


@lru_cache(maxsize=1024)
def parse_cron(text: str) -> Cron:
    """The times that five fields mean.

    Raises InputError: it has another number of fields, one cannot be read or crons read it in different ways,
    or it never comes.
    """
    fields = text.upper().split()
    if len(fields) == 1 and (nickname := fields[0].lower()) in _NICKNAMES:
        raise InputError(f"cron text {text!r} is a nickname: write {_NICKNAMES[nickname]!r}.")
    if len(fields) != 5:
        hint = " Seconds and years are not among them." if len(fields) > 5 else ""
        number = f"{len(fields)} field{'' if len(fields) == 1 else 's'}"
        raise InputError(
            f"cron text {text!r} has {number}, it needs five: {_FIELDS}.{hint} Such as {_EXAMPLE}."
        )
    for name, field in zip(_ALLOWED, fields, strict=True):
        if not all(_ITEM.fullmatch(item) for item in field.split(",")):
            raise _wrong_field(text, name)
    try:
        # cronsim reads a range of one number with a step, 0-0/2, as one without an end.
        plain = re.sub(r"\b(\w+)-\1/[1-9]\d*", r"\1", " ".join(fields))
        read = CronSim(plain, datetime(2000, 1, 1))  # noqa: DTZ001 - only the fields count
    except CronSimError as error:
        raise _wrong_field(text, str(error).removeprefix("Bad ")) from None
    # Written as numbers, all of them are not any: then the other field does not count.
    days = None if fields[2][0] == "*" and len(read.days) == 31 else tuple(sorted(read.days))
    of_week = {day % 7 for day in read.weekdays if isinstance(day, int)}
    weekdays = None if fields[4][0] == "*" and len(of_week) == 7 else tuple(sorted(of_week))
    if days is not None and weekdays is not None and read.day_and:
        raise InputError(
            f"cron text {text!r}: crons disagree whether days of month {fields[2]!r} and days of week"
            f" {fields[4]!r} must both hold or either is enough. Give one of the two fields as '*'."
        )
    return Cron(
        minutes=tuple(sorted(read.minutes)),
        hours=tuple(sorted(read.hours)),
        months=tuple(sorted(read.months)),
        days=days,
        weekdays=weekdays,
    )


def _wrong_field(text: str, name: str) -> InputError:
    field = text.split()[[*_ALLOWED].index(name)]
    return InputError(
        f"cron text {text!r}: {name.replace('-', ' ')} {field!r} is not valid: write {_ALLOWED[name]}, '*',"
        " a range such as 1-5, a list with commas, or steps such as */2."
    )


def zone_of(name: str) -> ZoneInfo:
    """The time zone of a name. Raises InputError: there is none of this name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a path, an empty name, a folder
        hint = did_you_mean(name, available_timezones(), most=1)
        raise InputError(
            f"there is no time zone {name!r}: give one such as Europe/Zurich or UTC.{hint}"
        ) from None


def times_after(schedule: Schedule, moment: datetime) -> Iterator[datetime]:
    """The times after a moment at which a schedule is due, in order and in UTC.

    Raises InputError: its fields or its zone cannot be read.
    """
    return parse_cron(schedule.cron).after(moment, zone_of(schedule.zone))


def next_after(schedule: Schedule, moment: datetime) -> datetime | None:
    """The first of `times_after`; None if there is none."""
    return next(times_after(schedule, moment), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What became due in a while."""

    run_at: datetime | None
    """The latest time, if it is not too old to catch up; it alone is run."""
    missed: tuple[datetime, ...]
    """The times that will never run, oldest first; at most ``MOST_MISSED``."""
    are_all: bool = True
    """Whether ``missed`` names all of them."""


def due(schedule: Schedule, now: datetime, *, catch_up_s: float) -> Due:
    """What became due since the schedule was settled.

    Args:
        now: with a time zone.
        catch_up_s: how late, in seconds, the latest time may still run.

    Raises InputError: its fields or its zone cannot be read.
    """
    run_at = _latest(schedule, now, catch_up_s)
    end = now if run_at is None else run_at - _MICROSECOND
    missed = tuple(islice(_between(schedule, schedule.settled_until, end), MOST_MISSED + 1))
    return Due(run_at=run_at, missed=missed[:MOST_MISSED], are_all=len(missed) <= MOST_MISSED)


def _between(schedule: Schedule, after: datetime, until: datetime) -> Iterator[datetime]:
    for moment in times_after(schedule, after):
        if moment > until:
            return
        yield moment


def _latest(schedule: Schedule, now: datetime, catch_up_s: float) -> datetime | None:
    """The last time it was due since it was settled, at most so long ago; None if there is none."""
    since_settled = now - schedule.settled_until
    whole = min(
        since_settled, timedelta(seconds=min(catch_up_s, since_settled.total_seconds())) + _MICROSECOND
    )
    for span in (*(span for span in _SPANS if span < whole), whole):
        last = deque(_between(schedule, now - span, now), maxlen=1)
        if last:
            return last[0]
    return None
