"""Feasible options -> frontier, ties, named picks, the one to take, and which get a row."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from advisor.core.findings import Finding, about_answers
from advisor.core.values import Job, Listed, Merit, Option, Pick, PickName, Script
from recommender.outcome.evaluate import Judged
from recommender.outcome.spot import is_spot
from recommender.ranking import value
from recommender.ranking.checkpoint_ways import other_ways
from recommender.ranking.frontier import (
    frontier,
    frontier_of_three,
    nearest,
    point_of,
    with_folded,
    with_ties,
)
from recommender.ranking.what_tips import by_checkpoints, summary_of, what_tips

RiskKey = tuple[float, bool, float, bool]


def risk_key(option: Option) -> RiskKey:
    """Less is safer: odds of missing a limit, then whether it can be preempted, the cost at p90, the quota.

    The odds are those of the limit that is likelier to be missed, 0 without limits, to a hundredth: less is
    luck of the draws.
    """
    odds = [p for p in (option.p_within_budget, option.p_within_deadline) if p is not None]
    odds_of_missing = round(1 - min(odds, default=1.0), 2)
    return odds_of_missing, is_spot(option.plan), option.cost_usd.p90, option.plan.lacks_quota


def safest(options: Sequence[Option]) -> Option:
    """The one of least risk; of equal ones the faster at p90."""
    return min(options, key=lambda option: (risk_key(option), option.time_s.p90, option.plan.id))


# The named picks. Each is the least of a figure of its own, so that no other option changes which it is.


def picks_of(options: Sequence[Option], job: Job) -> tuple[Pick, ...]:
    """The best option at each thing; there must be one at least."""
    picked = ((name, picked_by(name, options, job)) for name in PickName)
    return tuple(
        Pick(name=name, plan_id=option.plan.id, reason=_why(name, option, options, value.worth_for(job)))
        for name, option in picked
    )


def best_of(options: Sequence[Option], job: Job) -> Option:
    """The one to take: the pick that was asked for, else the best value."""
    return picked_by(job.pick or PickName.BEST_VALUE, options, job)


def recommended_of(picks: Sequence[Pick], job: Job) -> tuple[str, Finding]:
    """The same of the picks: the plan, and why it is the one to take."""
    wanted = job.pick or PickName.BEST_VALUE
    chosen = next(pick for pick in picks if pick.name is wanted)
    if job.pick is None:
        return chosen.plan_id, chosen.reason
    return chosen.plan_id, about_answers.ObjectiveOfPolicy(reason=chosen.reason)


def picked_by(name: PickName, options: Sequence[Option], job: Job) -> Option:
    """The option that is the best at one thing."""
    worth = value.worth_for(job)
    if name is PickName.FASTEST:
        return fastest(options)
    if name is PickName.SAFEST:
        return safest(options)
    is_by_total = name is PickName.BEST_VALUE and worth.hour_usd
    return value.least_total(options, worth) if is_by_total else cheapest(options, worth)


def _why(name: PickName, option: Option, options: Sequence[Option], worth: value.Worth) -> Finding:
    is_cost_known = option.plan.usd_per_h is not None
    if name is PickName.FASTEST:
        return about_answers.Fastest(work=list(option.work))
    if name is PickName.SAFEST:
        missed, preempted, cost_usd, _ = risk_key(option)
        limits = {"budget": option.p_within_budget, "deadline": option.p_within_deadline}
        return about_answers.Safest(
            limits=[limit for limit, p in limits.items() if p is not None],
            p_met=1 - missed,
            is_preemptible=preempted,
            cost_p90_usd=cost_usd,
            is_cost_known=is_cost_known,
        )
    if name is PickName.BEST_VALUE and worth.hour_usd:
        return value.why_least(option, worth)
    return about_answers.Cheapest(
        is_cost_known=is_cost_known,
        is_guess_below=is_guess_below(option, options, worth),
        is_rent_below=any(other.counted_usd < option.counted_usd for other in options),
        work=list(option.work),
        change_usd=value.change_usd(option, worth),
    )


def cheapest(options: Sequence[Option], worth: value.Worth) -> Option:
    """The least median cost and work, a price that was not quoted at its p90; of equal ones the faster."""
    return min(
        options,
        key=lambda o: (o.counted_usd + value.change_usd(o, worth), o.time_s.p50, risk_key(o), o.plan.id),
    )


def is_guess_below(option: Option, options: Sequence[Option], worth: value.Worth) -> bool:
    """Whether the median of a price that was not quoted, which counts at its p90, is below the cheapest."""
    least_usd = option.cost_usd.p50 + value.change_usd(option, worth)
    return any(other.cost_usd.p50 + value.change_usd(other, worth) < least_usd for other in options)


def fastest(options: Sequence[Option]) -> Option:
    """The least median time; of equal ones the cheaper."""
    return min(options, key=lambda o: (o.time_s.p50, o.counted_usd, risk_key(o), o.plan.id))


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
    judged: Sequence[Judged], job: Job, late: Sequence[Option] = (), *, script: Script, is_whole: bool = True
) -> Ranking:
    """Compare feasible options with each other.

    The frontier is of median time and median cost; if risk counts, also of risk. It decides nothing: the
    picks do, each by figures of its option alone. Nothing but the deadline removes those that are ``late``,
    and the job is whole unless it does more than the steps that were profiled.
    """
    if not judged:
        return Ranking()
    options = [item.option for item in judged]
    kept, strict = _frontiers(options, risk_counts=job.risk_counts)
    picks = picks_of(options, job)
    best_id, rule = recommended_of(picks, job)
    worth = value.worth_for(job)
    tied = with_ties(judged, strict)
    advice = value.wait_or_rent(tied, worth)
    waits = [replace(o, reasons=(*advice[o.plan.id], *o.reasons)) if o.plan.id in advice else o for o in tied]
    compared = with_folded(waits, best_id, worth)
    best = next(option for option in compared if option.plan.id == best_id)
    tips, ways = by_checkpoints(judged, best, job, script), other_ways(judged, script)
    tipped_by = what_tips(compared, best, job, late, tips, ways)
    return Ranking(
        options=tuple(compared),
        frontier=tuple(options[i].plan.id for i in kept),
        recommended=best_id,
        rule=rule if best.plan.usd_per_h is not None else about_answers.CostOfPickUnknown(rule=rule),
        picks=picks,
        summary=summary_of(best, job, script=script, tipped_by=tipped_by, is_whole=is_whole),
    )


def _frontiers(options: Sequence[Option], *, risk_counts: bool) -> tuple[list[int], list[int]]:
    points = [point_of(option) for option in options]
    strict = frontier(points)
    if not risk_counts:
        return strict, strict
    keys = [risk_key(option) for option in options]
    place = {key: i for i, key in enumerate(sorted(set(keys)))}  # equal risks alike
    kept = frontier_of_three([(*point, place[key]) for point, key in zip(points, keys, strict=True)])
    return kept, sorted(set(strict) & set(kept), key=strict.index)  # without the riskier of equal points


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
        as_it_is: the best one without work on the script.
    """
    by_id = {option.plan.id: option for option in options}
    best, has_limit = by_id[best_id], job.budget_usd is not None or job.deadline_s is not None
    named = [(best, Merit.RECOMMENDED)]
    named += [] if as_it_is is None else [(_in(by_id, as_it_is), Merit.AS_IT_IS)]
    # What is better in neither expected cost nor time is not worth its work.
    ours, theirs = best.expected if with_work is None else with_work.expected, best.expected
    is_better = ours.cost_usd < theirs.cost_usd or ours.time_s < theirs.time_s
    if with_work is not None and (is_better or with_work.plan.id == best_id):
        named.append((_in(by_id, with_work), Merit.WITH_WORK))
    for pick in picks:
        option = by_id[pick.plan_id]
        # Odds that are closer are the same.
        is_surer = option is best or _odds(option) > _odds(best) + 0.01
        if pick.name in _MERITS and (pick.name is not PickName.SAFEST or (has_limit and is_surer)):
            named.append((option, _MERITS[pick.name]))
    return _rows([*named, *_own(options, job)])


def _odds(option: Option) -> float:
    odds = (option.p_within_budget, option.p_within_deadline)
    return min((p for p in odds if p is not None), default=1.0)


def nearest_rows(options: Iterable[Option], job: Job) -> tuple[Listed, ...]:
    """Where nothing is feasible: what misses limits least, else the best of each reason; and own machines."""
    removed = sorted(options, key=lambda option: value.preference(option, value.worth_for(job)))
    near = [item.option for item in nearest(removed, job)]
    # Which software runs nowhere matters to none whom more money or time would help.
    first = {option.removed_by[:1]: option for option in ([] if near else reversed(removed))}
    of_merit = [(option, Merit.NEAREST) for option in near]
    return _rows([*of_merit, *_own(removed, job), *((one, Merit.NEAREST) for one in first.values())])


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


def _own(options: Iterable[Option], job: Job) -> Iterator[tuple[Option, Merit]]:
    """Of this machine and of each cluster the best option, feasible or not."""
    worth = value.worth_for(job)
    best: dict[str, Option] = {}
    for option in sorted(options, key=lambda o: (not o.feasible, value.preference(o, worth))):
        if option.plan.offer is None:
            best.setdefault(option.plan.provider, option)
    yield from ((option, Merit.OWN) for option in best.values())
