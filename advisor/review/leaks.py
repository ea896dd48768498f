"""Where money leaks: runs that came to nothing, that nobody asked about, or that cost more than predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import RunStatus
from advisor.review.money import exact, total
from advisor.review.spending import cost_of

if TYPE_CHECKING:
    from advisor.review.accuracy import Comparison
    from advisor.review.billing import Billing
    from advisor.store.ledger import Run

_BY_STATUS = {
    RunStatus.FAILED: Code.LEAK_FAILED,
    RunStatus.INTERRUPTED: Code.LEAK_INTERRUPTED,
    RunStatus.LOST: Code.LEAK_LOST,
}
_MOST_NAMES = 3


def leaks_of(
    runs: Sequence[Run],
    comparisons: Sequence[Comparison],
    billing: Billing | None,
    is_advised: Callable[[Run], bool],
) -> tuple[Finding, ...]:
    """Leaks, the dearest first; a run may be in several of them, so they do not add up.

    Args:
        runs: of the period.
        comparisons: those of them that can be set beside a prediction.
        billing: what clouds billed; None without bills.
        is_advised: whether a run followed a recommendation.
    """
    leaks = [*_ended_badly(runs), *_unadvised(runs, is_advised), *_above_p90(comparisons)]
    if billing is not None:
        leaks += _idle(billing)
    return tuple(sorted(leaks, key=lambda leak: (-float(str(leak.facts["usd"])), leak.code)))


def _ended_badly(runs: Sequence[Run]) -> Iterator[Finding]:
    for status, code in _BY_STATUS.items():
        ended = [run for run in runs if run.status is status]
        if ended:
            yield _leak(code, ended, cost_of(ended))


def _unadvised(runs: Sequence[Run], is_advised: Callable[[Run], bool]) -> Iterator[Finding]:
    alone = [run for run in runs if not is_advised(run) and run.market is not None]
    if alone:
        yield _leak(Code.LEAK_UNADVISED, alone, cost_of(alone))


def _above_p90(comparisons: Iterable[Comparison]) -> Iterator[Finding]:
    above = [c for c in comparisons if c.actual_usd is not None and c.actual_usd > c.predicted_usd.p90]
    if above:
        excess = total(exact(c.actual_usd or 0.0) - exact(c.predicted_usd.p90) for c in above)
        yield _leak(Code.LEAK_ABOVE_P90, [c.run for c in above], excess)


def _idle(billing: Billing) -> Iterator[Finding]:
    for machine in billing.machines:
        if machine.idle_usd > 0:
            yield finding(
                Code.LEAK_IDLE,
                provider=machine.provider,
                instance_type=machine.instance_type,
                usd=float(machine.idle_usd),
                billed_usd=float(machine.billed_usd),
                num_runs=machine.num_runs,
            )


def _leak(code: Code, runs: Sequence[Run], usd: Decimal) -> Finding:
    """With the scripts that cost most among these runs."""
    by_script: dict[str, Decimal] = {}
    for run in runs:
        by_script[run.script] = by_script.get(run.script, Decimal(0)) + exact(run.cost_usd or 0.0)
    dearest = sorted(by_script, key=lambda script: (-by_script[script], script))[:_MOST_NAMES]
    return finding(
        code,
        usd=float(usd),
        num_runs=len(runs),
        num_unknown=sum(run.cost_usd is None for run in runs),
        scripts=[script for script in dearest if script],
    )
