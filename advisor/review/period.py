"""What a report is about: a stretch of time, and whose runs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

NOTHING = Decimal(0)


def exact(usd: float) -> Decimal:
    """The number that a person or a cloud wrote, of which the database keeps the nearest double.

    >>> exact(0.1)
    Decimal('0.1')
    """
    return Decimal(repr(usd))


def total(amounts: Iterable[Decimal]) -> Decimal:
    """The exact sum; 0 of nothing."""
    return sum(amounts, NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """From a moment on, and until another that does not belong to it; both in UTC."""

    since: datetime
    until: datetime

    def holds(self, moment: datetime) -> bool:
        """Whether a moment lies within."""
        return self.since <= moment < self.until

    @property
    def days(self) -> float:
        """How long it is."""
        return (self.until - self.since) / timedelta(days=1)

    def weeks(self) -> Iterator[date]:
        """The Mondays of all weeks that it touches."""
        last = (self.until - timedelta(microseconds=1)).date()
        monday = monday_of(self.since)
        while monday <= last:
            yield monday
            monday += timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose runs and charges count.

    Attributes:
        team: its name; None without one.
        projects: those that count; None for all.
    """

    team: str | None = None
    projects: frozenset[str] | None = None

    def holds(self, project: str | None) -> bool:
        """Whether what belongs to a project counts."""
        return self.projects is None or project in self.projects


def monday_of(moment: datetime) -> date:
    """The Monday of a moment's week, in UTC.

    >>> monday_of(datetime(2026, 11, 22, 23, 59, tzinfo=UTC))
    datetime.date(2026, 11, 16)
    """
    day = moment.astimezone(UTC).date()
    return day - timedelta(days=day.weekday())


def month_of(moment: datetime) -> Period:
    """The calendar month of a moment, in UTC; a moment that ends a month belongs to it.

    >>> month_of(datetime(2026, 11, 22, tzinfo=UTC)).days
    30.0
    """
    inside = moment.astimezone(UTC) - timedelta(microseconds=1)
    start = inside.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return Period(since=start, until=(start + timedelta(days=32)).replace(day=1))
