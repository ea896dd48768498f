"""Two plans for one job side by side, named as people name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from advisor.core.errors import InputError, NothingFeasibleError
from advisor.core.findings import Finding
from advisor.core.values import Plan, Trace
from advisor.service.listening import Listener
from advisor.service.prices.book import PriceBook
from advisor.service.recommend.pipeline import judged_of
from advisor.service.recommend.recommending import RecommendRequest, check, places_of
from advisor.service.traces import trace_of

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from recommender.comparison import PlanComparison
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
