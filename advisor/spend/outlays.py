"""Bills and runs together, each dollar once: what was spent, when, and by which project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from advisor.spend.charges import USD, Charge, ChargeCategory

_NOTHING = Decimal(0)
_LONGEST = timedelta(days=366)
_Place: TypeAlias = "tuple[str, date]"
"""A provider and a day of it, in UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlay:
    """Money that was spent, amortised, in US dollars before tax.

    Attributes:
        at: when its period, or its run, began.
        project: "" where nobody is named.
        what: the machine or service that was billed, or the id of the run.
        is_run: whether a run stands for it; the bill of its day has it without a project, or there is none.
    """

    at: datetime
    usd: Decimal
    provider: str
    project: str
    what: str
    is_run: bool = False

    @property
    def place(self) -> _Place:
        """Where a bill would have it."""
        return self.provider, self.at.astimezone(UTC).date()


@dataclass(slots=True)
class _BilledDay:
    """A day of a cloud in the bills: what is nobody's yet, and whose the rest is."""

    unclaimed: list[Outlay] = field(default_factory=list)
    projects: set[str] = field(default_factory=set)


def outlays_of(charges: Iterable[Charge], runs: Iterable[Outlay]) -> tuple[Outlay, ...]:
    """Every charge, and every run that no bill can have.

    On a day of which a cloud's bill has a charge for use, the bill is right: a run adds nothing to it. Where
    it names no project, the day's runs of projects that it does not name share that money among them, up to
    what they cost; the rest stays nobody's.

    Args:
        charges: of bills; tax and other currencies count nowhere.
        runs: those of known cost.
    """
    days: dict[_Place, _BilledDay] = {}
    spent: list[Outlay] = []
    for charge in charges:
        if charge.category is ChargeCategory.TAX or charge.currency != USD:
            continue
        outlay = _of_charge(charge)
        is_use = charge.category is ChargeCategory.USAGE and not charge.is_unused
        if is_use:
            day = days.setdefault(outlay.place, _BilledDay())
            day.projects.add(outlay.project)
            for more in _more_days(charge):
                days.setdefault(more, _BilledDay())
        if is_use and not outlay.project and outlay.usd > 0:
            day.unclaimed.append(outlay)
        else:
            spent.append(outlay)
    by_day: dict[_Place, list[Outlay]] = {}
    for run in runs:
        by_day.setdefault(run.place, []).append(run)
    for place, group in by_day.items():
        if place not in days:
            spent += group
    for place, day in days.items():
        spent += _claimed(day, [run for run in by_day.get(place, ()) if run.project not in day.projects])
    return tuple(sorted(spent, key=lambda one: one.at))


def _of_charge(charge: Charge) -> Outlay:
    what = "commitments, unused" if charge.is_unused else charge.machine or charge.service
    return Outlay(
        at=charge.start,
        usd=charge.amortised_cost,
        provider=charge.provider,
        project=charge.project or "",
        what=what,
    )


def _more_days(charge: Charge) -> Iterator[_Place]:
    """The days after the first one of a charge that covers several, such as of a bill by month."""
    if charge.end - charge.start <= timedelta(days=1):
        return
    day = charge.start.date() + timedelta(days=1)
    while day < min(charge.end, charge.start + _LONGEST).date():
        yield charge.provider, day
        day += timedelta(days=1)


def split(usd: Decimal, weights: Sequence[Decimal]) -> list[Decimal]:
    """Parts by weight; the last one takes what is left, so that no part of a cent is lost.

    >>> split(Decimal(10), [Decimal(1), Decimal(3)])
    [Decimal('2.5'), Decimal('7.5')]
    """
    whole = sum(weights, _NOTHING)
    parts = [usd * weight / whole for weight in weights[:-1]]
    return [*parts, usd - sum(parts, _NOTHING)]


def _claimed(day: _BilledDay, runs: list[Outlay]) -> Iterator[Outlay]:
    """The day's money without a project: to its runs as far as they cost that much, the rest as it was."""
    unclaimed_usd = sum((one.usd for one in day.unclaimed), _NOTHING)
    claims_usd = sum((run.usd for run in runs if run.project), _NOTHING)
    if not (unclaimed_usd and claims_usd):
        yield from day.unclaimed
        return
    taken_usd = min(unclaimed_usd, claims_usd)
    claims = [run for run in runs if run.project and run.usd]
    for run, usd in zip(claims, split(taken_usd, [run.usd for run in claims]), strict=True):
        yield replace(run, usd=usd, is_run=True)
    for one in day.unclaimed if taken_usd < unclaimed_usd else ():
        yield replace(one, usd=one.usd - one.usd * taken_usd / unclaimed_usd)
