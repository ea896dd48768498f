"""Each plan in the better of two ways: with checkpoints, or restarted from zero after each preemption.

A script that saves no checkpoints, or does not resume from those it saves, runs on a spot machine in either
way: as it is, from zero each time, or with the work that makes it resume. Which is taken follows from the
plan alone: the one of least total, work counted.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from advisor.core.findings.about_estimates import AddCheckpoints, SaveCheckpoints
from advisor.core.values import CheckpointUse, Job, Option, Plan, Recovery, Script, Work, Workload
from recommender.conditions import Conditions
from recommender.outcome.draws import Draws
from recommender.outcome.evaluate import Judged, evaluate_all
from recommender.outcome.spot import SpotTerms, suits, under
from recommender.ranking.value import Preference, Worth, preference, worth_for

# Plans looked at where it is unknown what the script does.
MOST_DOUBTED = 32
# What becomes of options under the organisation's rules, on these terms.
Ruling = Callable[[Sequence[Option], SpotTerms], Sequence[Option]]


def evaluate_ways(
    workloads: Sequence[Workload],
    plans: Sequence[Plan],
    job: Job,
    draws: Draws,
    conditions: Conditions,
    ruled: Ruling = lambda options, _: options,
) -> list[Judged]:
    """What each plan means for the job, the better way first and the other beside it.

    Args:
        workloads: of one variant of the script, one for each GPU and layout of the plans.
        draws: of luck and ignorance, the same for both ways.
        conditions: how spot machines behave where the script resumes.
        ruled: what rules make of options; by default nothing.
    """
    judged = _recovering(workloads, plans, job, draws, conditions, ruled)
    use = use_of(workloads[0].script)
    # Checkpoints make a difference on spot machines for longer than an interval.
    saving = (AddCheckpoints, SaveCheckpoints)
    options = [item.option for item in judged]
    asked = [one for one in options if any(isinstance(change, saving) for change in one.script_changes)]
    if use is CheckpointUse.RESUMES:
        return judged
    if use is None:
        # They only tell what would be recommended if the script saved none.
        asked = sorted(asked, key=lambda option: preference(option, worth_for(job)))[:MOST_DOUBTED]
    if not asked:
        return judged
    again = {option.plan.id for option in asked}
    from_zero = replace(conditions, spot=replace(conditions.spot, checkpoint_interval_h=None))
    kept = [plan for plan in plans if plan.id in again]
    restarted = _recovering(workloads, kept, job, draws, from_zero, ruled)
    others = {item.option.plan.id: item for item in restarted}
    found = []
    for item in judged:
        ways = [item, *filter(None, [others.get(item.option.plan.id)])]
        if use is not None:
            ways.sort(key=lambda way: _rank(way, worth_for(job)))
        found.append(replace(ways[0], other=ways[1].option) if len(ways) > 1 else item)
    return found


def _recovering(
    workloads: Sequence[Workload],
    plans: Sequence[Plan],
    job: Job,
    draws: Draws,
    conditions: Conditions,
    ruled: Ruling,
) -> list[Judged]:
    """Each plan under its best recovery policy, by the same draws; the first of equals."""
    best: dict[str, Judged] = {}
    worth, terms_of = worth_for(job), conditions.terms_of()
    for policy in Recovery:
        if asked := [plan for plan in plans if suits(policy, plan, job, conditions.spot)]:
            judged = list(evaluate_all(workloads, asked, job, draws, under(policy, job, terms_of)))
            options = ruled([item.option for item in judged], conditions.spot)
            for item, option in zip(judged, options, strict=True):
                item = item if option is item.option else replace(item, option=option)
                other = best.get(option.plan.id)
                if other is None or _rank(item, worth) < _rank(other, worth):
                    best[option.plan.id] = item
    return [best[plan.id] for plan in plans]


def _rank(item: Judged, worth: Worth) -> tuple[bool, Preference]:
    return not item.option.feasible, preference(item.option, worth)


def use_of(script: Script) -> CheckpointUse | None:
    """What the script does with checkpoints; None where unknown, which counts as that it resumes."""
    return None if script.checkpoints is None else script.checkpoints.use


def other_ways(judged: Sequence[Judged], script: Script) -> list[Option]:
    """The feasible ways that were not chosen; none where it is unknown which the script takes."""
    others = [] if use_of(script) is None else [item.other for item in judged]
    return [option for option in others if option is not None and option.feasible]


def as_it_is(judged: Sequence[Judged], script: Script) -> list[Option]:
    """Feasible options that need no work on the script: what is chosen of a plan, or its other way."""
    chosen = (item.option for item in judged if item.option.feasible)
    return [option for option in (*chosen, *other_ways(judged, script)) if not option.work]


def with_work(judged: Sequence[Judged]) -> list[Option]:
    """Feasible options that need some."""
    return [item.option for item in judged if item.option.feasible and item.option.work]


def if_it_resumed(item: Judged) -> Option:
    """The option of a plan if the script saved and resumed by itself: without the work for it."""
    ways = (way for way in (item.option, item.other) if way is not None and way.feasible)
    option = next((way for way in ways if Work.CHECKPOINTS in way.work), item.option)
    kept = tuple(change for change in option.script_changes if not isinstance(change, AddCheckpoints))
    return replace(option, script_changes=kept) if len(kept) < len(option.script_changes) else option


def if_it_saved_none(item: Judged) -> Iterator[Option]:
    """The ways of a plan if the script saved no checkpoints: restarted from zero, or with work for them."""
    if item.other is not None and item.other.feasible:
        yield item.other
    # Checkpoints to save are checkpoints to add in a script that has none.
    changes = [
        AddCheckpoints(
            interval_s=change.interval_s,
            best_interval_s=change.best_interval_s,
            script=change.assumed_of or "the script",
            saves=False,
            saved_at=None,
        )
        if isinstance(change, SaveCheckpoints)
        else change
        for change in item.option.script_changes
    ]
    yield replace(item.option, script_changes=tuple(changes))
