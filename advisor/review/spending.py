"""What runs cost, what was billed, and money that no run explains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from advisor.core.findings import Finding
from advisor.core.findings.about_spending import Leak
from advisor.core.iterables import grouped
from advisor.core.units import HOUR_S
from advisor.core.values import RunStatus
from advisor.review.budgets import NOTHING, Period, Scope, exact, monday_of, total
from advisor.review.savings import Comparison
from advisor.spend.charges import (
    USD,
    Bill,
    Charge,
    ChargeCategory,
    CommitmentUse,
    RowFault,
    commitments_of,
    coverage_of,
)
from advisor.spend.outlays import Outlay

if TYPE_CHECKING:
    from advisor.store.ledger import Run

OWN = "own machines"
OF_CLOUDS = "of a cloud, terms unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What the runs of one name cost together."""

    name: str
    """Of a project, GPU, market or provider, or the Monday of a week; "" is not known."""
    usd: Decimal
    """Of the runs whose cost is known."""
    num_runs: int
    num_unknown: int
    """Runs whose cost is not known."""
    gpu_h: float | None
    """Hours of single GPUs; None where the length of a run is not known."""
    spent_usd: Decimal | None = None
    """Bills and runs together, each dollar once; None where a bill does not know the name."""

    @property
    def is_unknown(self) -> bool:
        """Whether it has runs, and the cost of none of them is known."""
        return 0 < self.num_runs == self.num_unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What was spent, in all and by what runs have in common, the dearest first; weeks in their order."""

    all: Share
    by_project: tuple[Share, ...]
    by_gpu: tuple[Share, ...]
    by_market: tuple[Share, ...]
    by_provider: tuple[Share, ...]
    by_user: tuple[Share, ...]
    by_week: tuple[Share, ...]


def spending_of(
    runs: Sequence[Run], spent: Sequence[Outlay], period: Period, is_own: Callable[[Run], bool]
) -> Spending:
    """What the runs of a period cost, and what was spent in it, bills and runs together.

    All weeks of the period are named; ``is_own`` says whether a run used a machine of one's own, which has no
    market.
    """

    def market(run: Run) -> str:
        return run.market or (OWN if is_own(run) else OF_CLOUDS if run.provider else "")

    weeks = _shares(
        grouped(runs, lambda run: f"{monday_of(run.started_at)}"),
        {f"{monday}": NOTHING for monday in period.weeks()}
        | _summed(spent, lambda one: f"{monday_of(one.at)}"),
    )
    return Spending(
        all=_share("", runs, total(one.usd for one in spent)),
        by_project=_shares(grouped(runs, lambda run: run.project), _summed(spent, lambda one: one.project)),
        by_gpu=_shares(grouped(runs, lambda run: run.gpu)),
        by_market=_shares(grouped(runs, market)),
        by_provider=_shares(
            grouped(runs, lambda run: run.provider), _summed(spent, lambda one: one.provider)
        ),
        by_user=_shares(grouped(runs, lambda run: run.user), _summed(spent, lambda one: one.user)),
        by_week=tuple(sorted(weeks, key=lambda week: week.name)),
    )


def cost_of(runs: Iterable[Run]) -> Decimal:
    """What runs of known cost cost together."""
    return total(exact(run.cost_usd) for run in runs if run.cost_usd is not None)


def _summed(spent: Iterable[Outlay], name_of: Callable[[Outlay], str]) -> dict[str, Decimal]:
    return {name: total(one.usd for one in group) for name, group in grouped(spent, name_of).items()}


def _shares(
    groups: Mapping[str, Sequence[Run]], spent_usd: Mapping[str, Decimal] | None = None
) -> tuple[Share, ...]:
    """Of each name with runs, or with what was spent; without `spent_usd` of runs alone."""
    names = groups if spent_usd is None else {**groups, **spent_usd}
    shares = [
        _share(name, groups.get(name, ()), None if spent_usd is None else spent_usd.get(name, NOTHING))
        for name in names
    ]
    return tuple(sorted(shares, key=lambda share: (-(share.spent_usd or share.usd), share.name)))


def _share(name: str, runs: Sequence[Run], spent_usd: Decimal | None) -> Share:
    lengths = [run.duration_s for run in runs]
    gpu_h = sum(run.num_gpus * (run.duration_s or 0.0) for run in runs) / HOUR_S
    return Share(
        name=name,
        usd=cost_of(runs),
        num_runs=len(runs),
        num_unknown=sum(run.cost_usd is None for run in runs),
        gpu_h=None if None in lengths else gpu_h,
        spent_usd=spent_usd,
    )


LONGEST = timedelta(days=1)
"""A charge that covers more of time is noted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledShare:
    """What was billed under one name: a provider, project or service, or the Monday of a week."""

    name: str
    usd: Decimal
    amortised_usd: Decimal
    """With what was paid ahead spread over its use."""
    num_charges: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledMachine:
    """A kind of machine as it was billed, beside the runs that used it."""

    provider: str
    instance_type: str
    billed_usd: Decimal
    amortised_usd: Decimal
    """With the part of commitments that it used."""
    explained_usd: Decimal
    """Cost of the runs; they may be recorded before the cloud bills them."""
    num_runs: int

    @property
    def idle_usd(self) -> Decimal:
        """What no run explains; below 0 where runs cost more than was billed so far."""
        return self.amortised_usd - self.explained_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Two bills that tell of the same days of a cloud, so that a charge may stand in both."""

    provider: str
    bills: tuple[str, str]
    days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Billing:
    """What clouds billed in a period, in US dollars before tax."""

    charges: tuple[Charge, ...]
    """Those that count."""
    apart: tuple[Charge, ...]
    """Those besides, in other currencies and of tax."""
    usd: Decimal
    amortised_usd: Decimal
    by_provider: tuple[BilledShare, ...]
    by_project: tuple[BilledShare, ...]
    by_week: tuple[BilledShare, ...]
    by_service: tuple[BilledShare, ...]
    """Charges without a machine; the unused part of commitments stands below `UNUSED`."""
    machines: tuple[BilledMachine, ...]
    """The dearest first."""
    commitments: tuple[CommitmentUse, ...]
    coverage: float | None
    """The share of machines' use that commitments covered."""
    tax_usd: Decimal
    """Billed besides, and counted nowhere."""
    unreadable: tuple[RowFault, ...]
    """Rows that cannot be read; they are counted nowhere, too."""
    untagged_usd: Decimal
    """Of charges without a project, which count for no team where one is asked for."""
    other_currencies: Mapping[str, tuple[Decimal, int]]
    """Sums that are not added up, by currency."""
    overlaps: tuple[Overlap, ...]
    num_long: int
    """Charges that count whole on the day they begin, though they cover more."""
    num_without_machine: int
    """Runs on billed clouds whose machine was not recorded."""
    num_odd: int
    """Charges that count although a cell of theirs cannot be read."""

    @property
    def unreadable_usd(self) -> Decimal:
        """Dollars of the rows that cannot be read, as far as they tell."""
        return total(fault.usd for fault in self.unreadable if fault.usd is not None)

    @property
    def left_out_usd(self) -> Decimal:
        """Dollars of the bills that no sum holds: tax, and rows that cannot be read."""
        return self.tax_usd + self.unreadable_usd

    @property
    def unused_usd(self) -> Decimal:
        """The unused part of commitments."""
        return total(one.unused_usd for one in self.commitments)


UNUSED = "commitments, unused"


def billing_of(bills: Sequence[Bill], runs: Sequence[Run], period: Period, scope: Scope) -> Billing:
    """What bills of any time say of a period and a scope. A charge counts where its own period begins."""
    begun = [charge for bill in bills for charge in bill.charges if period.holds(charge.start)]
    ours = [charge for charge in begun if scope.holds(charge.project)]
    untaxed = [charge for charge in ours if not _is_tax(charge)]
    charges = [charge for charge in untaxed if charge.currency == USD]
    billed = {charge.provider for charge in charges}
    weeks = grouped(charges, lambda charge: monday_of(charge.start))
    return Billing(
        charges=tuple(charges),
        apart=tuple(charge for charge in ours if _is_tax(charge) or charge.currency != USD),
        usd=_sum(charges),
        amortised_usd=total(charge.amortised_cost for charge in charges),
        by_provider=_billed_shares(charges, lambda charge: charge.provider),
        by_project=_billed_shares(charges, lambda charge: charge.project or ""),
        by_week=tuple(_billed_share(f"{monday}", weeks.get(monday, ())) for monday in period.weeks()),
        by_service=_billed_shares(
            (c for c in charges if c.machine is None), lambda c: UNUSED if c.is_unused else c.service
        ),
        machines=_machines(charges, runs),
        commitments=commitments_of(charges),
        coverage=coverage_of(charges),
        tax_usd=_sum(c for c in ours if _is_tax(c) and c.currency == USD),
        unreadable=tuple(fault for bill in bills for fault in faults_in(bill, period)),
        untagged_usd=_sum(c for c in begun if c.project is None and not _is_tax(c) and c.currency == USD),
        other_currencies=_other_currencies(untaxed),
        overlaps=_overlaps(bills, period),
        num_long=sum(charge.end - charge.start > LONGEST for charge in charges),
        num_without_machine=sum(run.instance_type is None and run.provider in billed for run in runs),
        num_odd=sum(bool(charge.odd) for charge in begun),
    )


def faults_in(bill: Bill, period: Period) -> tuple[RowFault, ...]:
    """The rows that a bill left out and that belong to a period, or may."""
    return tuple(fault for fault in bill.faults if fault.start is None or period.holds(fault.start))


def _is_tax(charge: Charge) -> bool:
    return charge.category is ChargeCategory.TAX


def _machines(charges: Iterable[Charge], runs: Iterable[Run]) -> tuple[BilledMachine, ...]:
    billed = grouped(
        (charge for charge in charges if charge.machine is not None),
        lambda charge: (charge.provider, charge.machine or ""),
    )
    used = grouped(runs, lambda run: (run.provider, run.instance_type or ""))
    machines = (
        BilledMachine(
            provider=provider,
            instance_type=machine,
            billed_usd=_sum(group),
            amortised_usd=total(charge.amortised_cost for charge in group),
            explained_usd=cost_of(used.get((provider, machine), ())),
            num_runs=len(used.get((provider, machine), ())),
        )
        for (provider, machine), group in billed.items()
    )
    return tuple(sorted(machines, key=lambda one: (-one.amortised_usd, one.provider, one.instance_type)))


def _overlaps(bills: Sequence[Bill], period: Period) -> tuple[Overlap, ...]:
    days: list[tuple[str, dict[str, set[date]]]] = []
    for bill in bills:
        by_provider: dict[str, set[date]] = defaultdict(set)
        days.append((bill.name, by_provider))
        for charge in bill.charges:
            if period.holds(charge.start):
                by_provider[charge.provider].add(charge.start.date())
    return tuple(
        Overlap(provider=provider, bills=(one, other), days=len(mine[provider] & theirs[provider]))
        for (one, mine), (other, theirs) in combinations(days, 2)
        for provider in sorted(mine.keys() & theirs.keys())
        if mine[provider] & theirs[provider]
    )


def _other_currencies(charges: Iterable[Charge]) -> Mapping[str, tuple[Decimal, int]]:
    groups = grouped((charge for charge in charges if charge.currency != USD), lambda one: one.currency)
    return {currency: (_sum(groups[currency]), len(groups[currency])) for currency in sorted(groups)}


def _billed_shares(charges: Iterable[Charge], name_of: Callable[[Charge], str]) -> tuple[BilledShare, ...]:
    shares = (_billed_share(name, group) for name, group in grouped(charges, name_of).items())
    return tuple(sorted(shares, key=lambda share: (-share.amortised_usd, share.name)))


def _billed_share(name: str, charges: Sequence[Charge]) -> BilledShare:
    amortised_usd = total(charge.amortised_cost for charge in charges)
    return BilledShare(name=name, usd=_sum(charges), amortised_usd=amortised_usd, num_charges=len(charges))


def _sum(charges: Iterable[Charge]) -> Decimal:
    return total(charge.billed_cost for charge in charges)


_Kind = Literal["failed", "interrupted", "lost", "unadvised", "above-p90"]

_BY_STATUS: Mapping[RunStatus, _Kind] = {
    RunStatus.FAILED: "failed",
    RunStatus.INTERRUPTED: "interrupted",
    RunStatus.LOST: "lost",
}
_MOST_NAMES = 3


def leaks_of(
    runs: Sequence[Run],
    comparisons: Sequence[Comparison],
    billing: Billing | None,
    is_advised: Callable[[Run], bool],
) -> tuple[Finding, ...]:
    """Leaks, the dearest first; a run may be in several of them, so they do not add up."""
    leaks = list(_of_runs(runs, comparisons, is_advised))
    if billing is not None:
        leaks += _idle(billing)
    return tuple(sorted(leaks, key=lambda leak: (-float(str(leak.facts["usd"])), leak.code)))


def _of_runs(
    runs: Sequence[Run], comparisons: Iterable[Comparison], is_advised: Callable[[Run], bool]
) -> Iterator[Finding]:
    for status, code in _BY_STATUS.items():
        if ended := [run for run in runs if run.status is status]:
            yield _leak(code, ended, cost_of(ended))
    if alone := [run for run in runs if not is_advised(run) and run.market is not None]:
        yield _leak("unadvised", alone, cost_of(alone))
    above = [c for c in comparisons if c.actual_usd is not None and c.actual_usd > c.predicted_usd.p90]
    if above:
        excess = total(exact(c.actual_usd or 0.0) - exact(c.predicted_usd.p90) for c in above)
        yield _leak("above-p90", [c.run for c in above], excess)


def _idle(billing: Billing) -> Iterator[Finding]:
    if billing.unused_usd > 0:
        paid_usd = total(one.used_usd + one.unused_usd for one in billing.commitments)
        names = [one.name for one in billing.commitments if one.unused_usd > 0 and one.name]
        yield Leak(
            of="unused",
            usd=float(billing.unused_usd),
            share_of_commitments=float(billing.unused_usd / paid_usd),
            num_commitments=len(names),
            commitments=names[:_MOST_NAMES],
        )
    for machine in billing.machines:
        if machine.idle_usd > 0:
            yield Leak(
                of="idle",
                provider=machine.provider,
                instance_type=machine.instance_type,
                usd=float(machine.idle_usd),
                amortised_usd=float(machine.amortised_usd),
                num_runs=machine.num_runs,
            )


def _leak(of: _Kind, runs: Sequence[Run], usd: Decimal) -> Finding:
    """With the scripts that cost most among these runs."""
    by_script = {script: cost_of(some) for script, some in grouped(runs, lambda run: run.script).items()}
    dearest = sorted(by_script, key=lambda script: (-by_script[script], script))[:_MOST_NAMES]
    return Leak(
        of=of,
        usd=float(usd),
        num_runs=len(runs),
        num_unknown=sum(run.cost_usd is None for run in runs),
        scripts=[script for script in dearest if script],
    )
