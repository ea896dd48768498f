"""Charges of bills -> what clouds billed, and how much of it the runs explain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING

from advisor.review.money import NOTHING, total
from advisor.review.period import Period, Scope, monday_of
from advisor.review.spending import cost_of
from advisor.spend.charges import USD, Bill, Charge, ChargeCategory

if TYPE_CHECKING:
    from datetime import date

    from advisor.store.ledger import Run

LONGEST = timedelta(days=1)
"""A charge that covers more of time is noted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledShare:
    """What was billed under one name: a provider, project or service, or the Monday of a week."""

    name: str
    usd: Decimal
    num_charges: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledMachine:
    """A kind of machine as it was billed, beside the runs that used it.

    Attributes:
        explained_usd: cost of the runs; they may be recorded before the cloud bills them.
    """

    provider: str
    instance_type: str
    billed_usd: Decimal
    explained_usd: Decimal
    num_runs: int

    @property
    def idle_usd(self) -> Decimal:
        """What no run explains; below 0 where runs cost more than was billed so far."""
        return self.billed_usd - self.explained_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Two bills that tell of the same days of a cloud, so that a charge may stand in both."""

    provider: str
    bills: tuple[str, str]
    days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Billing:
    """What clouds billed in a period, in US dollars before tax.

    Attributes:
        charges: those that count.
        by_service: charges without a machine.
        machines: the dearest first.
        tax_usd: billed besides, and counted nowhere.
        untagged_usd: of charges without a project, which count for nobody where a team is asked for.
        other_currencies: sums that are not added up, by currency.
        num_long: charges that count whole on the day they begin, though they cover more.
        num_without_machine: runs on billed clouds whose machine nobody recorded.
    """

    charges: tuple[Charge, ...]
    usd: Decimal
    by_provider: tuple[BilledShare, ...]
    by_project: tuple[BilledShare, ...]
    by_week: tuple[BilledShare, ...]
    by_service: tuple[BilledShare, ...]
    machines: tuple[BilledMachine, ...]
    tax_usd: Decimal
    untagged_usd: Decimal
    other_currencies: Mapping[str, tuple[Decimal, int]]
    overlaps: tuple[Overlap, ...]
    num_long: int
    num_without_machine: int


def billing_of(bills: Sequence[Bill], runs: Sequence[Run], period: Period, scope: Scope) -> Billing:
    """What bills say of a period. A charge counts where its own period begins.

    Args:
        bills: of any time.
        runs: of the scope, that started within the period.
        period: of the report.
        scope: whose charges count, by their tags.
    """
    begun = [charge for bill in bills for charge in bill.charges if period.holds(charge.start)]
    ours = [charge for charge in begun if scope.holds(charge.project)]
    untaxed = [charge for charge in ours if not _is_tax(charge)]
    charges = [charge for charge in untaxed if charge.currency == USD]
    billed = {charge.provider for charge in charges}
    return Billing(
        charges=tuple(charges),
        usd=_sum(charges),
        by_provider=_shares(charges, lambda charge: charge.provider),
        by_project=_shares(charges, lambda charge: charge.project or ""),
        by_week=_by_week(charges, period),
        by_service=_shares((c for c in charges if c.instance_type is None), lambda c: c.service),
        machines=_machines(charges, runs),
        tax_usd=_sum(c for c in ours if _is_tax(c) and c.currency == USD),
        untagged_usd=_sum(c for c in begun if c.project is None and not _is_tax(c) and c.currency == USD),
        other_currencies=_other_currencies(untaxed),
        overlaps=_overlaps(bills, period),
        num_long=sum(charge.end - charge.start > LONGEST for charge in charges),
        num_without_machine=sum(run.instance_type is None and run.provider in billed for run in runs),
    )


def _is_tax(charge: Charge) -> bool:
    return charge.category is ChargeCategory.TAX


def _by_week(charges: Iterable[Charge], period: Period) -> tuple[BilledShare, ...]:
    weeks: dict[str, list[Charge]] = {f"{monday}": [] for monday in period.weeks()}
    for charge in charges:
        weeks[f"{monday_of(charge.start)}"].append(charge)
    return tuple(_share(name, group) for name, group in weeks.items())


def _machines(charges: Iterable[Charge], runs: Iterable[Run]) -> tuple[BilledMachine, ...]:
    billed: dict[tuple[str, str], Decimal] = {}
    for charge in charges:
        if charge.instance_type is not None:
            key = charge.provider, charge.instance_type
            billed[key] = billed.get(key, NOTHING) + charge.billed_cost
    used: dict[tuple[str, str | None], list[Run]] = {}
    for run in runs:
        used.setdefault((run.provider, run.instance_type), []).append(run)
    machines = (
        BilledMachine(
            provider=provider,
            instance_type=machine,
            billed_usd=usd,
            explained_usd=cost_of(used.get((provider, machine), ())),
            num_runs=len(used.get((provider, machine), ())),
        )
        for (provider, machine), usd in billed.items()
    )
    return tuple(sorted(machines, key=lambda one: (-one.billed_usd, one.provider, one.instance_type)))


def _overlaps(bills: Sequence[Bill], period: Period) -> tuple[Overlap, ...]:
    days: list[tuple[str, dict[str, set[date]]]] = []
    for bill in bills:
        by_provider: dict[str, set[date]] = {}
        for charge in bill.charges:
            if period.holds(charge.start):
                by_provider.setdefault(charge.provider, set()).add(charge.start.date())
        days.append((bill.name, by_provider))
    return tuple(
        Overlap(provider=provider, bills=(one, other), days=len(mine[provider] & theirs[provider]))
        for (one, mine), (other, theirs) in combinations(days, 2)
        for provider in sorted(mine.keys() & theirs.keys())
        if mine[provider] & theirs[provider]
    )


def _other_currencies(charges: Iterable[Charge]) -> Mapping[str, tuple[Decimal, int]]:
    groups: dict[str, list[Charge]] = {}
    for charge in charges:
        if charge.currency != USD:
            groups.setdefault(charge.currency, []).append(charge)
    return {currency: (_sum(groups[currency]), len(groups[currency])) for currency in sorted(groups)}


def _shares(charges: Iterable[Charge], name_of: Callable[[Charge], str]) -> tuple[BilledShare, ...]:
    groups: dict[str, list[Charge]] = {}
    for charge in charges:
        groups.setdefault(name_of(charge), []).append(charge)
    shares = (_share(name, group) for name, group in groups.items())
    return tuple(sorted(shares, key=lambda share: (-share.usd, share.name)))


def _share(name: str, charges: Sequence[Charge]) -> BilledShare:
    return BilledShare(name=name, usd=_sum(charges), num_charges=len(charges))


def _sum(charges: Iterable[Charge]) -> Decimal:
    return total(charge.billed_cost for charge in charges)
