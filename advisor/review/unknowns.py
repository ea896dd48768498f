"""What a report does not know, each with what it would take to know it: nothing of it counts as nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import CostKind
from advisor.review.forecast import LEAST_WEEKS

if TYPE_CHECKING:
    from advisor.review.billing import Billing
    from advisor.review.budgets import BudgetState
    from advisor.review.price_moves import PriceMoves
    from advisor.review.savings import Recurring
    from advisor.spend.charges import Bill
    from advisor.store.ledger import Run

_MOST_NAMES = 3


def unknown_runs(runs: Sequence[Run], impossible: Sequence[str] = ()) -> Iterator[Finding]:
    """Runs of which something is missing, and records that cannot be true."""
    if impossible:
        first = list(impossible[:_MOST_NAMES])
        yield finding(Code.RECORDS_IMPOSSIBLE, num_records=len(impossible), first=first)
    without_cost = [run for run in runs if run.cost_usd is None]
    if without_cost:
        yield finding(
            Code.RUN_COSTS_UNKNOWN,
            num_runs=len(without_cost),
            runs=[run.id for run in without_cost[:_MOST_NAMES]],
        )
    estimated = [run for run in runs if run.cost_kind is CostKind.ESTIMATED]
    if estimated:
        yield finding(Code.RUN_COSTS_ESTIMATED, num_runs=len(estimated))


def unknown_bills(bills: Sequence[Bill], billing: Billing, *, is_of_team: bool) -> Iterator[Finding]:
    """What of the bills could not be read, or is not added up."""
    for bill in bills:
        if bill.faults:
            yield finding(
                Code.BILL_ROWS_LEFT_OUT,
                bill=bill.name,
                num_left_out=len(bill.faults),
                num_read=len(bill.charges),
                first=[f"line {fault.line}: {fault.reason}" for fault in bill.faults[:_MOST_NAMES]],
            )
    for currency, (amount, num) in billing.other_currencies.items():
        yield finding(Code.OTHER_CURRENCY, currency=currency, amount=float(amount), num_charges=num)
    for overlap in billing.overlaps:
        yield finding(
            Code.BILLS_OVERLAP, bills=list(overlap.bills), provider=overlap.provider, num_days=overlap.days
        )
    if is_of_team and billing.untagged_usd:
        yield finding(Code.CHARGES_UNTAGGED, usd=float(billing.untagged_usd))
    if billing.tax_usd:
        yield finding(Code.TAX_APART, usd=float(billing.tax_usd))
    if billing.num_long:
        yield finding(Code.LONG_CHARGES, num_charges=billing.num_long)
    if billing.num_without_machine:
        yield finding(Code.RUN_MACHINES_UNKNOWN, num_runs=billing.num_without_machine)


def unknown_prospects(
    states: Sequence[BudgetState], moves: PriceMoves, unpriced: Sequence[Recurring]
) -> Iterator[Finding]:
    """What of the future, of prices and of savings nobody can tell."""
    if any(state.month.forecast is None for state in states):
        yield finding(Code.FORECAST_UNKNOWN, least_weeks=LEAST_WEEKS)
    if moves.unknown_gpus:
        yield finding(Code.PRICES_NOT_REMEMBERED, gpus=list(moves.unknown_gpus))
    if unpriced:
        yield finding(
            Code.JOBS_UNPRICED, num_jobs=len(unpriced), scripts=[job.script for job in unpriced[:_MOST_NAMES]]
        )
