"""The few options that somebody could want, each for a reason: the rows of one screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from advisor.core.values import Job, Listed, Merit, Option, Pick, PickName
from recommender.ranking.value import least_total, preference, worth_for

MOST_LISTED = 6
_MERITS = {PickName.CHEAPEST: Merit.CHEAPEST, PickName.FASTEST: Merit.FASTEST, PickName.SAFEST: Merit.SAFEST}


def shortlist(options: Sequence[Option], picks: Sequence[Pick], job: Job, best_id: str) -> tuple[Listed, ...]:
    """The recommended option, the best for the script as it is, the picks, and the best of each own kind.

    Args:
        options: all, feasible or not.
        picks: among the feasible ones; of them the safest is listed if a limit was asked for.
        job: with its limits.
        best_id: of the recommended one.
    """
    named = [
        (best_id, Merit.RECOMMENDED),
        *_as_it_is(options, job),
        *_picked(picks, job),
        *_own(options, job),
    ]
    return _rows(named, options)


def nearest_rows(options: Iterable[Option], job: Job) -> tuple[Listed, ...]:
    """Where nothing is feasible: own machines, and the best option of each reason for a removal."""
    removed = sorted(options, key=lambda option: preference(option, worth_for(job)))
    first: dict[object, str] = {}
    for option in removed:
        first.setdefault(option.removed_by[:1], option.plan.id)
    return _rows([*_own(removed, job), *((plan_id, Merit.NEAREST) for plan_id in first.values())], removed)


def _rows(named: Iterable[tuple[str, Merit]], options: Iterable[Option]) -> tuple[Listed, ...]:
    """A row for each plan with all its merits; none for what is folded into a row that is listed."""
    folded = {option.plan.id: option.folded_into for option in options}
    merits: dict[str, list[Merit]] = {}
    for plan_id, merit in named:
        if plan_id in merits or (len(merits) < MOST_LISTED and folded[plan_id] not in merits):
            merits.setdefault(plan_id, []).append(merit)
    return tuple(Listed(plan_id=plan_id, merits=tuple(of_plan)) for plan_id, of_plan in merits.items())


def _as_it_is(options: Iterable[Option], job: Job) -> Iterator[tuple[str, Merit]]:
    """The best one for which no more than a line of the script changes."""
    ready = [option for option in options if option.feasible and not option.work]
    if ready:
        yield least_total(ready, worth_for(job)).plan.id, Merit.AS_IT_IS


def _picked(picks: Iterable[Pick], job: Job) -> Iterator[tuple[str, Merit]]:
    has_limit = job.budget_usd is not None or job.deadline_s is not None
    for pick in picks:
        if pick.name in _MERITS and (has_limit or pick.name is not PickName.SAFEST):
            yield pick.plan_id, _MERITS[pick.name]


def _own(options: Iterable[Option], job: Job) -> Iterator[tuple[str, Merit]]:
    """Of this machine and of each cluster the best option, feasible or not."""
    worth = worth_for(job)
    best: dict[str, str] = {}
    for option in sorted(options, key=lambda o: (not o.feasible, preference(o, worth))):
        if option.plan.offer is None:
            best.setdefault(option.plan.provider, option.plan.id)
    yield from ((plan_id, Merit.OWN) for plan_id in best.values())
