"""The main job: where to run a training script, with the settings' prices, machines, rules and history."""

from __future__ import annotations

import os
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.changes import ALL, CHANGE_NAMES
from advisor.core.errors import AdvisorError, InputError, NoOfferError, StoreError, did_you_mean
from advisor.core.findings.about_estimates import NotPatched
from advisor.core.findings.about_options import Unknown
from advisor.core.gpus import load_gpus
from advisor.core.values import Job, Market, Plan, PricePoint, Recommendation, Scaling, Split, Trace
from advisor.service.listening import Listener
from advisor.service.prices.book import PriceBook
from advisor.service.prices.live import now
from advisor.service.recommend import pipeline, policy_in_force
from advisor.service.recommend.own_machines import own_machines
from advisor.service.recommend.past_runs import past_runs
from advisor.service.recommend.plan_sources import checkpoints_of, data_set_of, plans_of, rates_of, spot_terms
from advisor.service.traces import TraceRequest, check_exists, holds_data, steps_on_cpu, trace_of
from advisor.store.database import existing_store

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.config.settings import StoreSettings
    from advisor.edits.patch import Patch
    from advisor.pricing.spot_odds import Interruptions
    from recommender.outcome.spot import SpotTerms
    from recommender.ranking.what_ifs import WhatIfGain


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendRequest:
    """What to recommend a machine for."""

    trace: TraceRequest
    """The script."""
    job: Job
    gpus: tuple[str, ...] = ()
    """GPUs or families with counts of all nodes, such as ``A100:8`` or ``H100:1..8``; none for any."""
    vendors: tuple[str, ...] = ("nvidia",)
    """Whose GPUs count."""
    policies: tuple[Path, ...] = ()
    """Files of rules to obey, besides those of the settings."""
    project: str = ""
    """Whose budget it is, for monthly limits and the ledger."""
    what_if: tuple[str, ...] | None = None
    """Names of changes of the script, ``all`` for every one; None for the best of one line."""
    patch: bool = False
    """Also write these changes into the script."""
    everywhere: bool = False
    """Also at places that are never the cheapest for a machine, for who names a place."""
    num_nodes: int | None = None
    """Machines that train together; None for one, or as many as the settings allow."""

    @property
    def changes(self) -> tuple[str, ...] | None:
        """The changes of the script to judge, each once; None for the best of one line."""
        if self.what_if is None:
            return None
        return CHANGE_NAMES if ALL in self.what_if else tuple(dict.fromkeys(self.what_if))


def check_patchable(request: RecommendRequest, listener: Listener) -> None:
    """Refuse what cannot be patched, before anything is profiled.

    Raises InputError: no changes were named, or the source is no script.
    """
    patch, source = listener.name_of("patch"), request.trace.source
    if not request.what_if:
        raise InputError(f"{patch} needs {listener.name_of('what_if')}: which changes?")
    if isinstance(source, Trace) or holds_data(source):
        raise InputError(f"{patch} changes a script, and a saved trace is none: give the script itself.")


def script_patch(request: RecommendRequest, ranked: Recommendation) -> Patch:
    """The diff of the changes that were named; of all, those that save time with odds of 9 in 10.

    Raises InputError: the script cannot be read or parsed.
    """
    source = request.trace.source
    if isinstance(source, Trace):
        raise InputError("a trace is no script: it cannot be patched.")
    helpful = {gain.change for gain in ranked.gains if gain.saved_share and gain.saved_share.p10 > 0}
    names = [gain.change for gain in ranked.gains]
    from advisor.edits.patch import patch_of

    wanted = [name for name in names if ALL not in (request.what_if or ()) or name in helpful]
    patch = patch_of(_text(source), str(source), wanted)
    left = {
        gain.change: gain.why_not or NotPatched(why="not-helpful")
        for gain in ranked.gains
        if gain.change not in wanted
    }
    return replace(patch, refused={**patch.refused, **left})


def _text(script: Path) -> str:
    try:
        # In the encoding that the script itself names, its line ends kept.
        with script.open("rb") as raw:
            encoding, _ = tokenize.detect_encoding(raw.readline)
        return script.read_bytes().decode(encoding)
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise InputError(f"{str(script)!r} cannot be read, so it cannot be patched: {error}.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendAnswer:
    """What to take, and what that rests on."""

    recommendation: Recommendation
    """With what-ifs only where some were asked for."""
    best_what_if: WhatIfGain | None
    """The change of the script that helps most, if any was looked for and helps."""
    entry_id: str | None
    """Under which `keep_recommendation` is to keep it; None where it is not to be kept."""
    patch: Patch | None = None
    """The changes that were asked for, in the script; None where no patch was."""


def check(request: RecommendRequest, listener: Listener) -> None:
    """Refuse what cannot be meant, before settings and prices are read.

    Raises InputError: the job is not well formed, or there is no such script.
    """
    check_exists(request.trace.source)
    pipeline.load_numpy()
    from recommender.engine import check_job

    check_job(request.job, listener.name_of)
    for name in request.what_if or ():
        if name not in (ALL, *CHANGE_NAMES):
            raise InputError(
                f"{listener.name_of('what_if')} must be {ALL} or some of {', '.join(CHANGE_NAMES)}, got"
                f" {name!r}.{did_you_mean(name, (ALL, *CHANGE_NAMES))}"
            )
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
    from recommender.ranking.what_ifs import best_what_if

    book = PriceBook(settings=config.pricing)
    places = places_of(request, config, book, listener)
    trace = trace_of(request.trace, config.tracing, listener)
    places = with_cpu(places, trace, request, config, listener)
    ranked = ranked_on(places, trace, request, book)
    entry_id = None
    if config.settings.store.record and ranked.recommended is not None:
        from advisor.store.ledger import new_id

        entry_id = new_id()
    return RecommendAnswer(
        recommendation=ranked if request.what_if else replace(ranked, what_ifs=()),
        best_what_if=best_what_if(ranked),
        entry_id=entry_id,
        patch=script_patch(request, ranked) if request.patch else None,
    )


def places_of(
    request: RecommendRequest, config: Config, book: PriceBook, listener: Listener
) -> pipeline.Places:
    """What could be used or rented for the job, whatever the script does, with warnings about it.

    Raises:
        InputError: a name or a number cannot be meant.
        NoOfferError: there is nothing to choose from.
        AdvisorError: rules, prices or the database cannot be read.
    """
    from recommender import Conditions

    settings = config.settings
    data, doubts = data_set_of(book.settings, listener)
    site = policy_in_force.Site(
        policy=policy_in_force.policy_of(settings.policy, request.policies),
        spot=spot_terms(settings.spot),
        machines=own_machines(settings, listener, config.origins.get("clusters")),
        rates=rates_of(settings.rates),
        data=data,
        report=settings.report,
        database=settings.store,
    )
    policy_in_force.check_project_of(request.project, site, listener)
    conditions = Conditions(
        spot=site.spot,
        interruptions=_interruptions(site.spot),
        spent=policy_in_force.spent_of(site, request.project, listener),
    )
    past = past_runs(settings.predict, site.database, listener)
    plans, warnings = plans_of(
        site,
        book,
        listener,
        gpus=request.gpus,
        vendors=request.vendors,
        everywhere=request.everywhere,
        num_nodes=request.num_nodes,
    )
    plans = that_suit(plans, request.job.split)
    # Data is copied to rented machines alone, so without one its size is no matter.
    is_rented = any(plan.offer is not None for plan in plans)
    matter = (one for one in doubts if is_rented or one != Unknown(what="data-size"))
    return pipeline.Places(
        plans=tuple(plans),
        gpus=load_gpus(),
        job=_job(request.job, site, config),
        conditions=conditions,
        policy=site.policy,
        corrections=past.corrections,
        warnings=(*matter, *warnings, *past.drifts_on({plan.gpu for plan in plans})),
    )


def _job(job: Job, site: policy_in_force.Site, config: Config) -> Job:
    scaling = config.settings.profile.scaling
    return replace(
        policy_in_force.with_objective(job, site.policy, config.settings.choice),
        data=site.data,
        scaling=None if scaling is None else Scaling(scaling),
        checkpoints=checkpoints_of(config),
    )


def _interruptions(spot: SpotTerms) -> Mapping[tuple[str, str], Interruptions] | None:
    from advisor.pricing.spot_odds import load_interruptions
    from recommender.outcome.spot import RATE

    return load_interruptions() if RATE in spot.assumed else None


def that_suit(plans: Sequence[Plan], split: Split) -> list[Plan]:
    """Those whose GPUs hold whole copies of a model that is divided so.

    Raises NoOfferError: there is none.
    """
    suited = [plan for plan in plans if split.suits(plan.layout)]
    if plans and not suited:
        raise NoOfferError(
            f"{split.name} divides none of these machines into copies of the model: ask for a multiple of"
            f" {split.gpus_per_copy} GPUs, in nodes of a multiple of {split.tensor}."
        )
    return suited


def ranked_on(
    places: pipeline.Places, trace: Trace, request: RecommendRequest, book: PriceBook
) -> Recommendation:
    """The places ranked for one script, with what changes of it would bring.

    Raises:
        InputError: the length of the job is unknown.
        NoOfferError: there is no place.
        PolicyViolationError: the policy removes every place.
    """
    ranked = with_later_starts(pipeline.recommendation_of(trace, places), book)
    ranked = pipeline.with_batch_held(ranked, trace, places)
    if request.changes != ():
        ranked = pipeline.with_variants(ranked, trace, places, request.changes)
    return replace(ranked, warnings=(*ranked.warnings, *places.warnings))


HISTORY = timedelta(days=60)


def with_later_starts(recommendation: Recommendation, book: PriceBook) -> Recommendation:
    """The recommendation with a reason where past days say so, for spot plans of the frontier and its ties.

    Without a database that can be read it stays as it is: reading prices warned of that.
    """
    from advisor.pricing.price_history import series_of
    from recommender.ranking.later_starts import with_shifts

    shown = {*recommendation.frontier, recommendation.recommended}
    offers = {
        option.plan.id: option.plan.offer
        for option in recommendation.options
        if option.plan.offer is not None
        and option.plan.offer.market is Market.SPOT
        and (option.plan.id in shown or option.tie_with is not None)
    }
    if not offers:
        return recommendation
    try:
        sources = tuple(source.name for source in book.sources.sources)
        points = _points(
            book.settings.store, sources, sorted({offer.instance_type for offer in offers.values()})
        )
    except StoreError:
        return recommendation
    by_place: dict[tuple[str, str, str, str | None], tuple[PricePoint, ...]] = {}
    for one in sorted(series_of(points), key=lambda one: sources.index(one.source)):
        # Prices of two sources are no history: the first that knows the place has the word.
        by_place.setdefault((one.provider, one.instance_type, one.region, one.zone), one.points)
    history = {
        plan_id: by_place.get((offer.provider, offer.instance_type, offer.region, offer.zone), ())
        for plan_id, offer in offers.items()
    }
    return with_shifts(recommendation, history, now())


def _points(
    settings: StoreSettings, sources: tuple[str, ...], instance_types: list[str]
) -> tuple[PricePoint, ...]:
    from advisor.pricing.price_checks import possible_points
    from advisor.pricing.price_history import seen_from

    start = now() - HISTORY
    with existing_store(settings.url) as store:
        if store is None:
            return ()
        from advisor.store.pulls import price_points

        points = price_points(
            store, sources=sources, instance_types=instance_types, markets=(Market.SPOT,), since=start
        )
    return seen_from(tuple(possible_points(points)), start)


# At 100 GFLOP/s, which a few cores reach, such a step takes 5 s: of larger ones too few end in time.
MOST_FLOPS = 5e11
# Others work here, too.
MOST_OF_MEMORY = 0.5


def with_cpu(
    places: pipeline.Places, trace: Trace, request: RecommendRequest, config: Config, listener: Listener
) -> pipeline.Places:
    """The places with this CPU among them, where the script runs on it within seconds.

    Raises InputError: the length of the job is unknown, which shows before the script is timed.
    """
    source = request.trace.source
    if not config.settings.local.cpu or request.gpus or not isinstance(source, Path) or holds_data(source):
        return places
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    peak_bytes = trace.memory.peak_bytes or memory_bytes
    is_alone = trace.world_size is None and not trace.is_sharded
    if not (is_alone and trace.flops <= MOST_FLOPS and peak_bytes <= MOST_OF_MEMORY * memory_bytes):
        return places
    from advisor.workloads.cpu import CPU, CpuSteps
    from advisor.workloads.step_counts import length_of

    length_of(trace, places.job).whole(1)
    try:
        times_s = steps_on_cpu(request.trace, config.settings.profile, listener)
    except AdvisorError:
        return places  # it wants a GPU, or takes too long
    steps = CpuSteps(
        cpu=_name(), times_s=times_s, memory_bytes=memory_bytes, num_vcpus=len(os.sched_getaffinity(0))
    )
    return replace(
        places, plans=(*places.plans, steps.plan), gpus={**places.gpus, CPU: steps.spec}, cpu=steps
    )


def _name() -> str:
    import platform

    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
