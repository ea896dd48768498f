"""The few options that somebody could want, each for a reason: the rows of one screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from advisor.core.values import Job, Listed, Merit, Option, Pick, PickName
from recommender.ranking.neighbours import nearest
from recommender.ranking.value import preference, worth_for

MOST_LISTED = 6
_MERITS = {PickName.CHEAPEST: Merit.CHEAPEST, PickName.FASTEST: Merit.FASTEST, PickName.SAFEST: Merit.SAFEST}


def shortlist(
    options: Sequence[Option],
    picks: Iterable[Pick],
    job: Job,
    *,
    best_id: str,
    as_it_is: Option | None,
    with_work: Option | None = None,
) -> tuple[Listed, ...]:
    """The recommended option, the best with and without work, the picks, and the best of each own kind.

    Args:
        options: all, feasible or not.
        picks: among the feasible ones; of them the safest is listed if a limit was asked for.
        job: with its limits.
        best_id: of the recommended one.
        as_it_is: the best one without work on the script.
        with_work: the best one that needs some.
    """
    by_id = {option.plan.id: option for option in options}
    named = [(by_id[best_id], Merit.RECOMMENDED)]
    named += [] if as_it_is is None else [(_in(by_id, as_it_is), Merit.AS_IT_IS)]
    named += [] if with_work is None else [(_in(by_id, with_work), Merit.WITH_WORK)]
    named += [(by_id[plan_id], merit) for plan_id, merit in _picked(picks, job)]
    return _rows([*named, *_own(options, job)])


def nearest_rows(options: Iterable[Option], job: Job) -> tuple[Listed, ...]:
    """Where nothing is feasible: what misses least, own machines, and the best of each other reason."""
    removed = sorted(options, key=lambda option: preference(option, worth_for(job)))
    near = [item.option for item in nearest(removed, job)]
    first: dict[object, Option] = {option.removed_by[:1]: option for option in reversed(near)}
    for option in removed:
        first.setdefault(option.removed_by[:1], option)
    others = [option for option in first.values() if option not in near]
    of_merit = [(option, Merit.NEAREST) for option in near]
    return _rows([*of_merit, *_own(removed, job), *((option, Merit.NEAREST) for option in others)])


def _in(by_id: dict[str, Option], option: Option) -> Option:
    """The option as it was ranked, if it is the same way of its plan."""
    ranked = by_id[option.plan.id]
    return ranked if ranked.work == option.work else option


def _rows(named: Iterable[tuple[Option, Merit]]) -> tuple[Listed, ...]:
    """A row for each option with all its merits; none for what is folded into a row that is listed."""
    merits: dict[tuple[str, object], list[Merit]] = {}
    rows: dict[tuple[str, object], Option] = {}
    for option, merit in named:
        key = option.plan.id, option.work
        is_spoken_for = option.folded_into in {plan_id for plan_id, _ in rows}
        if key in rows or (len(rows) < MOST_LISTED and not is_spoken_for):
            rows.setdefault(key, option)
            merits.setdefault(key, []).append(merit)
    return tuple(Listed(option=option, merits=tuple(merits[key])) for key, option in rows.items())


def _picked(picks: Iterable[Pick], job: Job) -> Iterator[tuple[str, Merit]]:
    has_limit = job.budget_usd is not None or job.deadline_s is not None
    for pick in picks:
        if pick.name in _MERITS and (has_limit or pick.name is not PickName.SAFEST):
            yield pick.plan_id, _MERITS[pick.name]


def _own(options: Iterable[Option], job: Job) -> Iterator[tuple[Option, Merit]]:
    """Of this machine and of each cluster the best option, feasible or not."""
    worth = worth_for(job)
    best: dict[str, Option] = {}
    for option in sorted(options, key=lambda o: (not o.feasible, preference(o, worth))):
        if option.plan.offer is None:
            best.setdefault(option.plan.provider, option)
    yield from ((option, Merit.OWN) for option in best.values())
