"""Bills and runs together, each dollar once: what was spent, when, and by which project."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from advisor.core.iterables import grouped
from advisor.spend.charges import USD, Charge, ChargeCategory

_NOTHING = Decimal(0)
_LONGEST = timedelta(days=366)
Place: TypeAlias = "tuple[str, date]"
"""A provider and a day of it, in UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlay:
    """Money that was spent, amortised, in US dollars before tax."""

    at: datetime
    """When its period, or its run, began."""
    usd: Decimal
    provider: str
    project: str
    """"" where no one is named."""
    what: str
    """The machine or service that was billed, or the id of the run."""
    is_run: bool = False
    """Whether a run stands for it; the bill of its day has it without a project, or there is none."""
    user: str = ""
    """"" where no one is named."""

    @property
    def place(self) -> Place:
        """Where a bill would have it."""
        return self.provider, self.at.astimezone(UTC).date()


@dataclass(slots=True)
class _BilledDay:
    """A day of a cloud in the bills: what is unassigned yet, and whose the rest is."""

    unclaimed: list[Outlay] = field(default_factory=list)
    projects: set[str] = field(default_factory=set)


def outlays_of(charges: Iterable[Charge], runs: Iterable[Outlay], user_tag: str = "") -> tuple[Outlay, ...]:
    """Every charge but tax and other currencies, and every run of known cost that no bill can have.

    On a day of which a cloud's bill has a charge for the use of a machine, the bill is right: a run adds
    nothing to it. Where it names no project, the day's runs of projects that it does not name share that
    money among them, up to what they cost; the rest stays unassigned. Storage, or any other service, says
    nothing of machines.
    """
    counted = [one for one in charges if one.category is not ChargeCategory.TAX and one.currency == USD]
    is_machine = _machine_test(counted)
    days = {place: _BilledDay() for place in billed_days(counted)}
    spent: list[Outlay] = []
    for charge in counted:
        outlay = _of_charge(charge, user_tag)
        day = days[outlay.place] if is_machine(charge) else None
        if day is not None:
            day.projects.add(outlay.project)
        (spent if day is None or outlay.project or outlay.usd <= 0 else day.unclaimed).append(outlay)
    by_day = grouped(runs, lambda run: run.place)
    for place, group in by_day.items():
        if place not in days:
            spent += group
    for place, day in days.items():
        spent += _claimed(day, [run for run in by_day.get(place, ()) if run.project not in day.projects])
    return tuple(sorted(spent, key=lambda one: one.at))


def _machine_test(charges: Iterable[Charge]) -> Callable[[Charge], bool]:
    """Whether a charge is for using a machine; of a cloud that names none, whether it is for computing."""
    named = {charge.provider for charge in charges if charge.instance_type is not None}

    def is_machine(charge: Charge) -> bool:
        if charge.category is not ChargeCategory.USAGE or charge.is_unused:
            return False
        is_computing = charge.details.get("ServiceCategory") == "Compute" and charge.provider not in named
        return is_computing or charge.instance_type is not None

    return is_machine


def billed_days(charges: Collection[Charge]) -> Iterator[Place]:
    """The days of which charges tell machines: the first of each, and all days of those that cover several.

    A bill by month names days to come. With charges by day beside it, it reaches to the last of these.
    """
    long: list[tuple[str, date, date]] = []
    short: dict[str, set[date]] = {}
    for charge in filter(_machine_test(charges), charges):
        start, end = charge.start.astimezone(UTC), charge.end.astimezone(UTC)
        yield charge.provider, start.date()
        if end - start > timedelta(days=1):
            last = (min(end, start + _LONGEST) - timedelta(microseconds=1)).date()
            long.append((charge.provider, start.date(), last))
        else:
            short.setdefault(charge.provider, set()).add(start.date())
    for provider, first, last in set(long):
        reach = max((day for day in short.get(provider, ()) if first <= day <= last), default=last)
        for number in range(1, (reach - first).days + 1):
            yield provider, first + timedelta(days=number)


def _of_charge(charge: Charge, user_tag: str) -> Outlay:
    what = "commitments, unused" if charge.is_unused else charge.machine or charge.service
    return Outlay(
        at=charge.start,
        usd=charge.amortised_cost,
        provider=charge.provider,
        project=charge.project or "",
        what=what,
        user=charge.tags.get(user_tag, ""),
    )


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
