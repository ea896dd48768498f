"""The main job: where to run a training script, with the settings' prices, machines, rules and history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.values import Job, Recommendation, Scaling, Trace
from advisor.service.feeding import with_input
from advisor.service.traces import TraceRequest, check_exists, trace_of

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.service.listening import Listener
    from recommender.ranking.best_change import WhatIf


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendRequest:
    """What to recommend a machine for.

    Attributes:
        trace: the script.
        gpus: GPUs or families with counts, such as ``A100:8`` or ``H100:1..8``; none for any.
        vendors: whose GPUs count.
        policies: files of rules to obey, besides those of the settings.
        project: whose budget it is, for monthly limits and the ledger.
        what_if: also options of a changed script: all (True), the best alone (None), or none (False).
    """

    trace: TraceRequest
    job: Job
    gpus: tuple[str, ...] = ()
    vendors: tuple[str, ...] = ("nvidia",)
    policies: tuple[Path, ...] = ()
    project: str = ""
    what_if: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendAnswer:
    """What to take, and what that rests on.

    Attributes:
        recommendation: with what-ifs only where all of them were asked for.
        best_what_if: the change of the script that helps most, if any was looked for and helps.
        entry_id: under which `keep_recommendation` is to keep it; None where it is not to be kept.
    """

    recommendation: Recommendation
    trace: Trace
    best_what_if: WhatIf | None
    entry_id: str | None


def check(request: RecommendRequest, listener: Listener) -> None:
    """Refuse what cannot be meant, before settings and prices are read.

    Raises:
        InputError: the job is not well formed, or there is no such script.
    """
    from advisor.service.blas import load_numpy

    load_numpy()
    from recommender.engine import check_job

    check_job(request.job, listener.name_of)
    check_exists(request.trace.source)


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
    from advisor.service.data_sets import data_set_of
    from advisor.service.past_runs import past_runs
    from advisor.service.plans import plans_of, spot_terms
    from advisor.service.ranked import recommendation_of
    from advisor.service.under_policy import policy_of, spent_of, with_objective
    from recommender.ranking.best_change import best_what_if

    rules = policy_of(config, request.policies)
    data, doubts = data_set_of(config, listener)
    spent = spent_of(config, rules, request.project, listener)
    spot = spot_terms(config)
    plans, warnings = plans_of(
        config, listener, gpus=request.gpus, vendors=request.vendors, policy=rules, spot=spot, data=data
    )
    trace = with_input(trace_of(request.trace, config, listener), config.settings.input, listener)
    scaling = config.settings.profile.scaling
    job = replace(
        with_objective(request.job, rules, config),
        data=data,
        scaling=None if scaling is None else Scaling(scaling),
    )
    past = past_runs(config, listener)
    ranked = recommendation_of(
        trace, plans, job, config, spot=spot, what_if=request.what_if, policy=rules, spent=spent,
        corrections=past.corrections,
    )  # fmt: skip
    drifts = past.drifts_on({plan.gpu for plan in plans})
    shown = replace(ranked, warnings=(*ranked.warnings, *doubts, *warnings, *drifts))
    return RecommendAnswer(
        recommendation=shown if request.what_if else replace(shown, what_ifs=()),
        trace=trace,
        best_what_if=best_what_if(ranked),
        entry_id=_entry_id(config, ranked),
    )


def _entry_id(config: Config, recommendation: Recommendation) -> str | None:
    if not config.settings.store.record or recommendation.recommended is None:
        return None
    from advisor.store.ledger import new_id

    return new_id()
