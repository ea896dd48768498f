"""Feasible options -> frontier, ties, named picks, the one to take, and which get a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import Job, Option, Pick
from recommender.outcome.evaluate import Judged
from recommender.ranking.folding import with_folded
from recommender.ranking.in_short import summary_of
from recommender.ranking.near import point_of, with_ties
from recommender.ranking.pareto import frontier, frontier_of_three
from recommender.ranking.picks import picks_of, recommended_of
from recommender.ranking.safety import risk_ranks
from recommender.ranking.value import Worth, wait_or_rent, worth_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """As in ``Recommendation``; ``options`` are the feasible ones, with what comparing them showed."""

    options: tuple[Option, ...] = ()
    frontier: tuple[str, ...] = ()
    recommended: str | None = None
    rule: Finding | None = None
    picks: tuple[Pick, ...] = ()
    summary: tuple[Finding, ...] = ()


def rank(
    judged: Sequence[Judged], job: Job, late: Sequence[Option] = (), *, is_whole: bool = True
) -> Ranking:
    """Compare feasible options with each other.

    The frontier is of median time and median cost; if risk counts, also of risk. It decides nothing: the
    picks do, each by figures of its option alone.

    Args:
        judged: feasible ones.
        job: with its limits.
        late: options that nothing but the deadline removes.
        is_whole: False where the job does more than the steps that were profiled.
    """
    if not judged:
        return Ranking()
    options = [item.option for item in judged]
    kept, strict = _frontiers(options, risk_counts=job.risk_counts)
    picks = picks_of(options, job)
    best_id, rule = recommended_of(picks, job)
    worth = worth_for(job)
    compared = with_folded(_with_waits(with_ties(judged, strict), worth), best_id, worth)
    best = next(option for option in compared if option.plan.id == best_id)
    return Ranking(
        options=tuple(compared),
        frontier=tuple(options[i].plan.id for i in kept),
        recommended=best_id,
        rule=rule if best.plan.usd_per_h is not None else finding(Code.COST_OF_PICK_UNKNOWN, rule=rule),
        picks=picks,
        summary=summary_of(compared, best, job, late, is_whole=is_whole),
    )


def _frontiers(options: Sequence[Option], *, risk_counts: bool) -> tuple[list[int], list[int]]:
    """Indices of the frontier, and of that of time and cost alone."""
    points = [point_of(option) for option in options]
    strict = frontier(points)
    if not risk_counts:
        return strict, strict
    risks = risk_ranks(options)
    kept = frontier_of_three([(*point, risk) for point, risk in zip(points, risks, strict=True)])
    return kept, sorted(set(strict) & set(kept), key=strict.index)  # without the riskier of equal points


def _with_waits(options: Sequence[Option], worth: Worth) -> list[Option]:
    advice = wait_or_rent(options, worth)
    return [
        replace(option, reasons=(*advice[option.plan.id], *option.reasons))
        if option.plan.id in advice
        else option
        for option in options
    ]
