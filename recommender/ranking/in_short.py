"""The answer in three findings: what to take, what it takes, and what could change either."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import Job, Option
from recommender.ranking.tip import machine
from recommender.ranking.tipping import what_tips
from recommender.ranking.value import must_change


def summary_of(
    options: Sequence[Option], chosen: Option, job: Job, late: Sequence[Option], *, is_whole: bool = True
) -> tuple[Finding, ...]:
    """Of the chosen one among feasible options that are folded; ``late`` miss nothing but the deadline.

    ``is_whole`` is False where the job does more than the steps that were profiled.
    """
    tipped_by = what_tips(options, chosen, job, late)
    time_s, usd = chosen.time_s, chosen.cost_usd
    return (
        finding(
            Code.SUMMARY_CHOICE,
            machine=machine(chosen),
            is_rented=chosen.plan.offer is not None,
            must_change=must_change(chosen),
            num_iterations=chosen.iterations,
            iteration_s=chosen.estimate.iteration_s.p50,
        ),
        finding(
            Code.SUMMARY_COST_AND_TIME,
            cost_p50_usd=usd.p50,
            cost_p90_usd=usd.p90,
            time_p50_s=time_s.p50,
            time_p90_s=time_s.p90,
            is_cost_known=chosen.plan.usd_per_h is not None,
            is_whole=is_whole,
        ),
        finding(
            Code.SUMMARY_DOUBT,
            risk=chosen.risk.code.value,
            num_nodes=chosen.plan.num_nodes,
            tipped_by=tipped_by,
        ),
    )
