"""What a team's report says of savings, of leaks, and of what nobody knows."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.findings import Code
from advisor.core.units import format_duration, format_usd
from advisor.report.words.table import Words


def _runs(num: int, what: str = "run") -> str:
    return f"{num:,} {what}{'' if num == 1 else 's'}"


def _charges(num: int) -> str:
    return _runs(num, "charge")


def _of_scripts(scripts: Sequence[str]) -> str:
    return f" (most of it: {', '.join(scripts)})" if scripts else ""


def at_least(amount: str, num_unknown: int, *, of: int) -> str:
    """What so many runs cost together, the cost of some of them not being known.

    >>> at_least("$4", 0, of=3), at_least("$4", 1, of=3), at_least("$0", 3, of=3)
    ('$4', 'at least $4', 'unknown')
    """
    if 0 < of == num_unknown:
        return "unknown"
    return f"{'at least ' if num_unknown else ''}{amount}"


def _cost(usd: float, num_unknown: int, num_runs: int) -> str:
    cost = at_least(format_usd(usd), num_unknown, of=num_runs)
    return "an unknown amount" if cost == "unknown" else cost


def saving(
    *,
    script: str,
    project: str,
    rhythm: str,
    share: float,
    num_gpus: int,
    gpu: str,
    place: str,
    market: str,
    usd: float,
    now_usd: float,
    time_p90_s: float,
    deadline_s: float | None,
) -> str:
    """One job and where it costs less."""
    whose = f" of {project}" if project else ""
    machine = f"{num_gpus} x {gpu}" if num_gpus > 1 else gpu
    kept = (
        "no deadline is recorded"
        if deadline_s is None
        else f"still before its deadline of {format_duration(deadline_s)}"
    )
    return (
        f"the {rhythm} job {script}{whose} is {share:.0%} cheaper on {machine} in {place} ({market}):"
        f" {format_usd(usd)} instead of {format_usd(now_usd)} a run, within {format_duration(time_p90_s)} at"
        f" p90, {kept}"
    )


def leak_failed(*, usd: float, num_runs: int, num_unknown: int, scripts: Sequence[str]) -> str:
    """Runs that ended with an error."""
    return f"{_runs(num_runs)} failed and cost {_cost(usd, num_unknown, num_runs)}{_of_scripts(scripts)}"


def leak_interrupted(*, usd: float, num_runs: int, num_unknown: int, scripts: Sequence[str]) -> str:
    """Runs that somebody or something stopped."""
    cost = _cost(usd, num_unknown, num_runs)
    return f"{_runs(num_runs)} {_were(num_runs)} interrupted and cost {cost}{_of_scripts(scripts)}"


def leak_lost(*, usd: float, num_runs: int, num_unknown: int, scripts: Sequence[str]) -> str:
    """Runs whose end nobody saw."""
    cost = _cost(usd, num_unknown, num_runs)
    return f"{_runs(num_runs)} ended unseen, for {cost}{_of_scripts(scripts)}"


def leak_unadvised(*, usd: float, num_runs: int, num_unknown: int, scripts: Sequence[str]) -> str:
    """Runs that nobody asked about."""
    cost = _cost(usd, num_unknown, num_runs)
    return (
        f"{_runs(num_runs)} for {cost} followed no recommendation{_of_scripts(scripts)}:"
        " `advisor recommend --record` gives one"
    )


def leak_above_p90(*, usd: float, num_runs: int, num_unknown: int, scripts: Sequence[str]) -> str:  # noqa: ARG001
    """Runs that cost more than 9 of 10 should."""
    return f"{_runs(num_runs)} cost more than predicted at p90, by {format_usd(usd)}{_of_scripts(scripts)}"


def leak_idle(*, provider: str, instance_type: str, usd: float, billed_usd: float, num_runs: int) -> str:
    """A machine that was billed for longer than it ran."""
    return (
        f"{provider} billed {format_usd(billed_usd)} for {instance_type}, and {_runs(num_runs)} explain"
        f"{'s' if num_runs == 1 else ''} all but {format_usd(usd)}: machines that were left on, or runs that"
        " were not recorded"
    )


def bill_rows_left_out(*, bill: str, num_left_out: int, num_read: int, first: Sequence[str]) -> str:
    """Rows of a bill that cannot be true."""
    num_more = num_left_out - len(first)
    more = f"; and {num_more:,} more" if num_more else ""
    return (
        f"{bill}: {_runs(num_left_out, 'row')} cannot be read and {_were(num_left_out)} left out, beside"
        f" {num_read:,} that could: {'; '.join(first)}{more}"
    )


def bills_overlap(*, bills: Sequence[str], provider: str, num_days: int) -> str:
    """Two bills of the same days."""
    return (
        f"{' and '.join(bills)} both cover {provider} on {_runs(num_days, 'day')}: unless they are of"
        " different accounts, these charges count twice"
    )


def other_currency(*, currency: str, amount: float, num_charges: int) -> str:
    """What is not added up."""
    return (
        f"{_charges(num_charges)} in {currency}, {amount:,.2f} in all, {_were(num_charges)} not converted and"
        f" {'is' if num_charges == 1 else 'are'} not included"
    )


def run_costs_unknown(*, num_runs: int, runs: Sequence[str]) -> str:
    """Runs without a cost."""
    num_more = num_runs - len(runs)
    some = f"{', '.join(runs)}{f' and {num_more:,} more' if num_more else ''}"
    return f"the cost of {_runs(num_runs)} is not known and not included: {some}"


def run_costs_estimated(*, num_runs: int) -> str:
    """Runs whose cost is price x time."""
    return f"the cost of {_runs(num_runs)} is price x time, and no bill"


def run_machines_unknown(*, num_runs: int) -> str:
    """Runs that cannot be set beside a bill."""
    return (
        f"{_runs(num_runs)} on billed clouds {'names' if num_runs == 1 else 'name'} no instance type and"
        f" explain{'s' if num_runs == 1 else ''} no charge: `advisor run -- COMMAND` records it"
    )


def prices_not_remembered(*, gpus: Sequence[str]) -> str:
    """GPUs without a history."""
    return f"no price of {', '.join(gpus)} is remembered for this period: `advisor prices refresh` pulls them"


def jobs_unpriced(*, num_jobs: int, scripts: Sequence[str]) -> str:
    """Jobs that cannot be compared with other machines."""
    some = f"{', '.join(scripts)}{', ...' if num_jobs > len(scripts) else ''}"
    return (
        f"{_runs(num_jobs, 'recurring job')} cannot be priced elsewhere ({some}): no recommendation has"
        " their time on other GPUs (`advisor recommend --record` does), or nothing quoted is for rent"
        " on their terms"
    )


def long_charges(*, num_charges: int) -> str:
    """Charges of a month, say."""
    return (
        f"{_charges(num_charges)} cover{'s' if num_charges == 1 else ''} more than a day and count"
        f"{'s' if num_charges == 1 else ''} whole on the first of it"
    )


def charges_untagged(*, usd: float) -> str:
    """Charges without a project."""
    return f"{format_usd(usd)} of charges name no project, so they count for no team (report.project_tag)"


def tax_apart(*, usd: float) -> str:
    """Tax."""
    return f"{format_usd(usd)} of tax was billed besides: all sums are before tax"


def _were(num: int) -> str:
    return "was" if num == 1 else "were"


TEAM_REPORT: Words = {
    Code.SAVING: saving,
    Code.LEAK_ABOVE_P90: leak_above_p90,
    Code.LEAK_FAILED: leak_failed,
    Code.LEAK_IDLE: leak_idle,
    Code.LEAK_INTERRUPTED: leak_interrupted,
    Code.LEAK_LOST: leak_lost,
    Code.LEAK_UNADVISED: leak_unadvised,
    Code.BILL_ROWS_LEFT_OUT: bill_rows_left_out,
    Code.BILLS_OVERLAP: bills_overlap,
    Code.CHARGES_UNTAGGED: charges_untagged,
    Code.FORECAST_UNKNOWN: (
        "how the month will end is not known: a forecast draws from at least {least_weeks} weeks of recorded"
        " runs"
    ),
    Code.JOBS_UNPRICED: jobs_unpriced,
    Code.LONG_CHARGES: long_charges,
    Code.NO_RUNS_IN_PERIOD: (
        "no run is recorded in this period: `advisor run -- COMMAND` records one, --since looks further back"
    ),
    Code.OTHER_CURRENCY: other_currency,
    Code.PRICES_NOT_REMEMBERED: prices_not_remembered,
    Code.RUN_COSTS_ESTIMATED: run_costs_estimated,
    Code.RUN_COSTS_UNKNOWN: run_costs_unknown,
    Code.RUN_MACHINES_UNKNOWN: run_machines_unknown,
    Code.TAX_APART: tax_apart,
}
