"""One job side by side: two plans, or two versions of its script on the same machines and prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from advisor.core.errors import InputError, NothingFeasibleError, ThresholdExceededError
from advisor.core.findings import Finding
from advisor.core.gpus import load_gpus
from advisor.core.values import Option, Phase, Plan, Trace
from advisor.service.listening import Listener
from advisor.service.prices.book import PriceBook
from advisor.service.recommend.pipeline import judged_of
from advisor.service.recommend.recommending import RecommendRequest, check, places_of, ranked_on
from advisor.service.revisions import ScriptOrTrace, laid_out
from advisor.service.traces import TraceRequest, holds_data, trace_of

if TYPE_CHECKING:
    from advisor.config.layers import Config, TracingSettings
    from recommender.comparison import PlanComparison, ScriptChange
    from recommender.outcome.evaluate import Judged
    from recommender.ranking.value import Worth


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareAnswer:
    """Two plans side by side."""

    comparison: PlanComparison
    trace: Trace
    warnings: tuple[Finding, ...]


def compare(a: str, b: str, job: RecommendRequest, config: Config, listener: Listener) -> CompareAnswer:
    """Judge two plans by the same draws, each at its cheapest place that does the job.

    Names come before the script is profiled, which takes longest: what is wrong with them shows at once.

    Args:
        a: an id of a plan, or words that one machine has, such as ``p4d.24xlarge spot`` or ``L4:4``; so is b.

    Raises:
        InputError: a name is of no plan or of several, both are the same, or the job cannot be meant.
        NoOfferError: there is nothing to choose from.
        PolicyViolationError: the policy removes every plan of both names.
        AdvisorError: the script, prices or the database cannot be read.
    """
    check(job, listener)
    from recommender.comparison import compared
    from recommender.plans.named import num_nodes_of, plans_named
    from recommender.ranking.value import worth_for

    config = _with_nodes(config, max(num_nodes_of(a), num_nodes_of(b)))
    book = PriceBook(settings=config.pricing)
    places = places_of(replace(job, everywhere=True), config, book, listener)
    named = {name: plans_named(name, places.plans) for name in (a, b)}
    trace = trace_of(job.trace, config.tracing, listener)
    asked = {plan.id: plan for plans in named.values() for plan in plans}
    judged = judged_of(trace, places, tuple(asked.values()))
    chosen = _chosen(named, judged, worth_for(places.job), listener)
    return CompareAnswer(
        comparison=compared(chosen[a], chosen[b], places.job),
        trace=trace,
        warnings=(*trace.warnings, *places.warnings),
    )


def _with_nodes(config: Config, num_nodes: int) -> Config:
    """Plans of as many nodes as a name asks for, unless someone allows fewer."""
    from advisor.config.layers import ARGUMENT

    name = "cloud.max_nodes"
    if num_nodes <= 1 or name in config.origins:
        return config
    cloud = config.settings.cloud.model_copy(update={"max_nodes": num_nodes})
    settings = config.settings.model_copy(update={"cloud": cloud})
    return replace(config, settings=settings, origins={**config.origins, name: ARGUMENT})


def check_feasible(answer: CompareAnswer) -> None:
    """Refuse two plans of which neither does the job. Raises NothingFeasibleError: says so."""
    if not (answer.comparison.a.feasible or answer.comparison.b.feasible):
        raise NothingFeasibleError("neither plan does the job: see what removes each of them.")


def _chosen(
    named: Mapping[str, Sequence[Plan]], judged: Sequence[Judged], worth: Worth, listener: Listener
) -> Mapping[str, Judged]:
    """A plan of its own for each name, with a note; one that may mean fewer is checked first."""
    chosen: dict[str, Judged] = {}
    for name, plans in sorted(named.items(), key=lambda item: len(item[1])):
        taken = {item.option.plan.id for item in chosen.values()}
        others = [plan for plan in plans if plan.id not in taken]
        if not others:
            raise InputError(
                f"both names are of the same plan, {plans[0].id}: name another machine, number of GPUs,"
                " region or market."
            )
        from recommender.comparison import cheapest_first

        chosen[name] = min(_judged(others, judged), key=lambda item: cheapest_first(item.option))
        if len(others) > 1:
            plan_id, rest = chosen[name].option.plan.id, "" if len(others) == len(plans) else "other "
            num_plans = f"{len(others)} {rest}plans"
            listener.note(
                f"{name!r} is {plan_id}, the cheapest of {num_plans} that it may mean"
                f"{_if_guessed(chosen[name], others, judged, worth)}"
            )
    return chosen


def _if_guessed(chosen: Judged, plans: Sequence[Plan], judged: Sequence[Judged], worth: Worth) -> str:
    """What to add where a row of the others would read as cheaper."""
    from recommender.ranking.choice import is_guess_below

    alike = [item.option for item in _judged(plans, judged) if item.option.feasible is chosen.option.feasible]
    return (
        ", where a price that was never quoted counts at its p90"
        if is_guess_below(chosen.option, alike, worth)
        else ""
    )


def _judged(plans: Sequence[Plan], judged: Sequence[Judged]) -> list[Judged]:
    ids = {plan.id for plan in plans}
    return [item for item in judged if item.option.plan.id in ids]


_NOT_CALLED = (0.0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChange:
    """What one operator, or a wait, takes of the whole job on one machine before and after."""

    name: str
    phase: Phase | None
    """None for a wait."""
    base_s: float
    """Seconds of all iterations on each GPU."""
    head_s: float
    base_calls: int = 0
    """In one iteration; 0 where the version does not call it."""
    head_calls: int = 0

    @property
    def more_s(self) -> float:
        """Below 0 where it got faster."""
        return self.head_s - self.base_s


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffAnswer:
    """What a change of a script costs."""

    base: Trace
    head: Trace
    change: ScriptChange
    parts: tuple[PartChange, ...]
    """What takes more or less of the job on the machine compared, the largest change first; empty where there
    is no such machine."""
    warnings: tuple[Finding, ...]


def diff(before: str, after: str, job: RecommendRequest, config: Config, listener: Listener) -> DiffAnswer:
    """Rank the same places for both versions of a script, and say what the change does.

    Args:
        before: script, trace or ``REVISION:PATH``; so is ``after``.
        job: how to rank machines for either; the source of its trace does not count.

    Raises:
        InputError: the job, a name, a revision or a number cannot be meant.
        NoOfferError: there is nothing to choose from.
        PolicyViolationError: the policy removes every plan.
        AdvisorError: a script, prices or the database cannot be read.
    """
    from recommender.comparison import script_change

    with laid_out(before) as old, laid_out(after) as new:
        for version in (old, new):
            check(replace(job, trace=replace(job.trace, source=version.path)), listener)
        book = PriceBook(settings=config.pricing)
        places = places_of(job, config, book, listener)
        base, head = _traces((old, new), job.trace, config.tracing, listener)
    base_ranked, head_ranked = (ranked_on(places, trace, job, book) for trace in (base, head))
    change = script_change(base_ranked, head_ranked)
    return DiffAnswer(
        base=base,
        head=head,
        change=change,
        parts=part_changes(base, head, change),
        warnings=tuple(dict.fromkeys((*base_ranked.warnings, *head_ranked.warnings))),
    )


def _traces(
    versions: Sequence[ScriptOrTrace], asked: TraceRequest, tracing: TracingSettings, listener: Listener
) -> Iterator[Trace]:
    """Of each version; where one alone is a script, what is asked of the profiling is meant for that one."""
    saved = [holds_data(version.path) for version in versions]
    for version, is_saved in zip(versions, saved, strict=True):
        source, own = replace(asked, source=version.path), _from_anywhere(tracing)
        if is_saved and not all(saved):
            source, own = replace(source, arguments=(), world_size=None), replace(own, origins={})
        # A script of a revision must not read the files of another one by a relative path.
        with chdir(version.folder):
            trace = trace_of(source, own, listener)
        yield trace


def _from_anywhere(tracing: TracingSettings) -> TracingSettings:
    python = tracing.profile.python
    if python is None:
        return tracing
    return replace(tracing, profile=tracing.profile.model_copy(update={"python": python.absolute()}))


def check_threshold(answer: DiffAnswer, most_more: float | None) -> None:
    """Refuse a change that ends the job, or makes it dearer than allowed.

    Args:
        most_more: share by which a run may get dearer, such as 0.1; None for any.

    Raises:
        ThresholdExceededError: says by how much.
        NothingFeasibleError: no machine does the job after the change.
    """
    change = answer.change
    if change.head is None:
        raise NothingFeasibleError("after the change no machine does the job: see what removed each of them.")
    if most_more is not None and change.relative is not None and change.relative > most_more:
        grown, most = f"{change.relative:.1%}", f"{most_more:.1%}"
        raise ThresholdExceededError(
            f"the {change.measure} of a run grows by {grown}: at most {most} is allowed."
        )


def part_changes(base: Trace, head: Trace, change: ScriptChange) -> tuple[PartChange, ...]:
    """What each operator and wait takes of the job on the machine recommended before, fits it or not."""
    if change.base is None or change.same is None:
        return ()
    before, after = _parts(base, change.base), _parts(head, change.same)
    parts = []
    for name, phase in {**before, **after}:
        base_s, base_calls = before.get((name, phase), _NOT_CALLED)
        head_s, head_calls = after.get((name, phase), _NOT_CALLED)
        parts.append(
            PartChange(
                name=name,
                phase=phase,
                base_s=base_s,
                head_s=head_s,
                base_calls=base_calls,
                head_calls=head_calls,
            )
        )
    return tuple(sorted(parts, key=lambda part: -abs(part.more_s)))


def _parts(trace: Trace, option: Option) -> Mapping[tuple[str, Phase | None], tuple[float, int]]:
    """Seconds of all iterations and calls in one, by operator and phase; a wait has no phase and no calls."""
    from advisor.predict.methods import operator_times
    from advisor.predict.step_time import computing_s, waits_s

    times = operator_times(trace, load_gpus()[option.plan.gpu])
    waits = waits_s(option.estimate)
    # Where GPUs share the batch, each takes its part of what was timed for all of it.
    share = computing_s(option.estimate) / sum(c.time_s for c in times.values())
    parts: dict[tuple[str, Phase | None], tuple[float, int]] = {
        (called.name, called.phase): (calls.time_s * share * option.iterations, calls.count)
        for called, calls in times.items()
    }
    return parts | {(name, None): (wait_s * option.iterations, 0) for name, wait_s in waits.items() if wait_s}


def parse_share(argument: str, text: str) -> float:
    """``"10%"`` -> 0.1. Raises InputError: no percentage of 0 or more."""
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number) / 100
    except ValueError:
        share = -1.0
    if not percent or rest or not 0 <= share < float("inf"):
        raise InputError(f"{argument} {text!r} is no percentage: write one of 0 or more, such as 10%.")
    return share
