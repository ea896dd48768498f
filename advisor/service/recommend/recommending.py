"""The main job: where to run a training script, with the settings' prices, machines, rules and history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from advisor.core.errors import NoOfferError
from advisor.core.findings import Finding
from advisor.core.findings.about_options import Unknown
from advisor.core.gpus import load_gpus
from advisor.core.values import Recommendation, Scaling, Split, Trace
from advisor.service.listening import Silence
from advisor.service.recommend.cpu_steps import with_cpu
from advisor.service.recommend.input_settings import with_input
from advisor.service.recommend.question import RecommendRequest, what_if_names
from advisor.service.recommend.script_patch import check_patchable, script_patch
from advisor.service.traces import check_exists, trace_of

if TYPE_CHECKING:
    from advisor.config.layers import Config, PricingSettings
    from advisor.config.settings import StoreSettings
    from advisor.core.values import Plan
    from advisor.edits.patch import Patch
    from advisor.pricing.spot import Interruptions
    from advisor.service.listening import Listener
    from advisor.service.recommend.pipeline import Places
    from recommender.outcome.spot import SpotTerms
    from recommender.ranking.variants import WhatIf


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendAnswer:
    """What to take, and what that rests on.

    Attributes:
        recommendation: with what-ifs only where some were asked for.
        best_what_if: the change of the script that helps most, if any was looked for and helps.
        entry_id: under which `keep_recommendation` is to keep it; None where it is not to be kept.
        patch: the changes that were asked for, in the script; None where no patch was.
    """

    recommendation: Recommendation
    best_what_if: WhatIf | None
    entry_id: str | None
    patch: Patch | None = None


def check(request: RecommendRequest, listener: Listener) -> None:
    """Refuse what cannot be meant, before settings and prices are read.

    Raises:
        InputError: the job is not well formed, or there is no such script.
    """
    from advisor.service.blas import load_numpy

    load_numpy()
    from recommender.engine import check_job

    check_job(request.job, listener.name_of)
    what_if_names(request, listener)
    check_exists(request.trace.source)
    if request.patch:
        check_patchable(request, listener)


def recommend(request: RecommendRequest, config: Config, listener: Listener) -> RecommendAnswer:
    """Rank what could be used or rented.

    Rules and prices come before the script is profiled, which takes longest: what is wrong shows at once.

    Raises:
        InputError: the job, a name or a number cannot be meant.
        NoOfferError: there is nothing to choose from.
        PolicyViolationError: the policy removes every plan.
        AdvisorError: the script, prices or the database cannot be read.
    """
    check(request, listener)
    from recommender.ranking.variants import best_what_if

    places, warnings = places_of(request, config, listener)
    trace = with_input(trace_of(request.trace, config.tracing, listener), config.settings.input, listener)
    places = with_cpu(places, trace, request, config, listener)
    ranked = ranked_on(places, warnings, trace, request, config.pricing)
    return RecommendAnswer(
        recommendation=ranked if request.what_if else replace(ranked, what_ifs=()),
        best_what_if=best_what_if(ranked),
        entry_id=_entry_id(config.settings.store, ranked),
        patch=script_patch(request, ranked) if request.patch else None,
    )


def places_of(
    request: RecommendRequest, config: Config, listener: Listener
) -> tuple[Places, tuple[Finding, ...]]:
    """What could be used or rented for the job, whatever the script does, and warnings about it.

    Raises:
        InputError: a name or a number cannot be meant.
        NoOfferError: there is nothing to choose from.
        AdvisorError: rules, prices or the database cannot be read.
    """
    from advisor.service.recommend.data_sets import data_set_of
    from advisor.service.recommend.past_runs import past_runs
    from advisor.service.recommend.pipeline import Places
    from advisor.service.recommend.plan_sources import checkpoints_of, plans_of, spot_terms
    from advisor.service.recommend.rules import policy_of, spent_of, with_objective
    from recommender import Conditions

    rules = policy_of(config.settings.policy, request.policies)
    data, doubts = data_set_of(config.pricing, listener)
    spent = spent_of(config.settings.store, rules, request.project, listener)
    spot = spot_terms(config.settings.spot)
    plans, warnings = plans_of(
        config,
        listener,
        gpus=request.gpus,
        vendors=request.vendors,
        policy=rules,
        spot=spot,
        data=data,
        everywhere=request.everywhere,
        num_nodes=request.num_nodes,
    )
    scaling = config.settings.profile.scaling
    job = replace(
        with_objective(request.job, rules, config.settings.choice),
        data=data,
        scaling=None if scaling is None else Scaling(scaling),
        checkpoints=checkpoints_of(config),
    )
    plans = that_suit(plans, job.split)
    past = past_runs(config.settings.predict, config.settings.store, listener)
    drifts = past.drifts_on({plan.gpu for plan in plans})
    conditions = Conditions(spot=spot, interruptions=_interruptions(spot), spent=spent)
    places = Places(
        plans=tuple(plans),
        gpus=load_gpus(),
        job=job,
        conditions=conditions,
        policy=rules,
        corrections=past.corrections,
    )
    return places, (*_that_matter(doubts, plans), *warnings, *drifts)


def _interruptions(spot: SpotTerms) -> Mapping[tuple[str, str], Interruptions] | None:
    """Published rates of preemption; none where the settings give the rate."""
    from advisor.pricing.spot import load_interruptions
    from recommender.outcome.spot import RATE

    return load_interruptions() if RATE in spot.assumed else None


def _that_matter(doubts: Sequence[Finding], plans: Sequence[Plan]) -> Iterator[Finding]:
    """Data is copied to rented machines alone, so without one its size is no matter."""
    is_rented = any(plan.offer is not None for plan in plans)
    return (
        doubt
        for doubt in doubts
        if is_rented or not (isinstance(doubt, Unknown) and doubt.what == "data-size")
    )


def that_suit(plans: Sequence[Plan], split: Split) -> list[Plan]:
    """Those whose GPUs hold whole copies of a model that is divided so.

    Raises:
        NoOfferError: there is none.
    """
    suited = [plan for plan in plans if split.suits(plan.layout)]
    if plans and not suited:
        raise NoOfferError(
            f"{split.name} divides none of these machines into copies of the model: ask for a multiple of"
            f" {split.gpus_per_copy} GPUs, in nodes of a multiple of {split.tensor}."
        )
    return suited


def ranked_on(
    places: Places,
    warnings: Sequence[Finding],
    trace: Trace,
    request: RecommendRequest,
    pricing: PricingSettings,
) -> Recommendation:
    """The places ranked for one script, with what changes of it would bring.

    Raises:
        InputError: the length of the job is unknown.
        NoOfferError: there is no place.
        PolicyViolationError: the policy removes every place.
    """
    from advisor.service.recommend.later_starts import with_later_starts
    from advisor.service.recommend.pipeline import recommendation_of, with_batch_held, with_variants

    names = what_if_names(request, Silence())
    ranked = with_later_starts(recommendation_of(trace, places), pricing)
    ranked = with_batch_held(ranked, trace, places)
    if names != ():
        ranked = with_variants(ranked, trace, places, names)
    return replace(ranked, warnings=(*ranked.warnings, *warnings))


def _entry_id(settings: StoreSettings, recommendation: Recommendation) -> str | None:
    if not settings.record or recommendation.recommended is None:
        return None
    from advisor.store.ledger import new_id

    return new_id()
