"""``advisor recommend``: the main job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.common import (
    ArgumentsArgument,
    BackendOption,
    FakeDataOption,
    FormatOption,
    GpuOption,
    JsonOption,
    MarketOption,
    MaxAgeOption,
    OfflineOption,
    OriginGpuOption,
    ProviderOption,
    PythonOption,
    RegionOption,
    SamplesOption,
    SandboxOption,
    SourceArgument,
    TimeoutOption,
    WorldOption,
    chosen_format,
)
from advisor.report.rows import Format

if TYPE_CHECKING:
    from advisor.config import Config
    from advisor.settings import CloudSettings
    from advisor.types import GpuSpec, Job, Plan, Recommendation, Trace
    from recommender.extras import CloudTerms
    from recommender.policy import Policy, Spent
    from recommender.spot import SpotTerms

SEED = 0
RATE = "spot.preemptions_per_h"


def recommend(
    source: SourceArgument,
    arguments: ArgumentsArgument = None,
    epochs: Annotated[float | None, typer.Option(metavar="N", help="How many epochs to train.")] = None,
    iterations: Annotated[
        int | None, typer.Option(metavar="N", help="Or how many optimizer steps, on one GPU.")
    ] = None,
    iterations_per_epoch: Annotated[
        int | None, typer.Option(metavar="N", help="For data that does not know its length.")
    ] = None,
    budget: Annotated[float | None, typer.Option(metavar="USD", help="For the whole job.")] = None,
    deadline: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Until done, waiting included: 12h, 3d."),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(metavar="P", help="Probability with which budget and deadline must hold."),
    ] = 0.9,
    value_of_time: Annotated[
        float | None,
        typer.Option(metavar="USD_PER_H", help="What an hour until it is done is worth; decides the choice."),
    ] = None,
    risk: Annotated[
        bool, typer.Option("--risk", help="Keep on the frontier what is slower and dearer, but safer.")
    ] = False,
    gpu: GpuOption = None,
    local_gpu: Annotated[
        str | None,
        typer.Option(metavar="GPU", help="GPU of this machine; default: what nvidia-smi says."),
    ] = None,
    origin_gpu: OriginGpuOption = None,
    provider: ProviderOption = None,
    region: RegionOption = None,
    market: MarketOption = None,
    max_age: MaxAgeOption = None,
    offline: OfflineOption = None,
    dataset_gb: Annotated[
        float | None,
        typer.Option(metavar="GB", help="Data set to download at the start and to keep on a disk."),
    ] = None,
    result_gb: Annotated[
        float | None, typer.Option(metavar="GB", help="Result to bring home over the internet.")
    ] = None,
    policy: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Policy file to obey, beside no others. Repeatable."),
    ] = None,
    allow_vendor: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Also GPUs of this vendor (amd). Repeatable."),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Show one option line by line: its id or row number."),
    ] = None,
    what_if: Annotated[
        bool | None,
        typer.Option(
            "--what-if/--no-what-if",
            help="Also rows for the script in lower precision; by default one line on the best of them.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", help="Rows to show.", min=1)] = 15,
    all_: Annotated[bool, typer.Option("--all", help="Show every row.")] = False,
    plot: Annotated[
        bool, typer.Option("--plot", help="Draw time over cost in the terminal, instead of the table.")
    ] = False,
    record: Annotated[
        bool | None,
        typer.Option(
            "--record/--no-record",
            help="Keep what is recommended in the database, and print its id.",
            show_default=False,
        ),
    ] = None,
    project: Annotated[
        str, typer.Option(metavar="NAME", help="Whose budget it is, for --record.", show_default=False)
    ] = "",
    python: PythonOption = None,
    timeout: TimeoutOption = None,
    backend: BackendOption = None,
    fake_data: FakeDataOption = None,
    samples: SamplesOption = None,
    world: WorldOption = None,
    sandbox: SandboxOption = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Rank where to run a training script: this machine, your cluster, AWS and GCP.

    Exits with 4 if nothing meets memory, budget and deadline, with 3 if the policy removes everything.
    """
    from dataclasses import replace

    from advisor.cli.blas import load_numpy

    load_numpy()
    from advisor.cli.answer import show
    from advisor.cli.common import check_exists, load_trace, settings_with
    from advisor.cli.under_policy import policy_of, spent_of, with_objective
    from advisor.types import Job
    from recommender import check_job
    from recommender.what_if import best_what_if

    job = Job(
        epochs=epochs,
        iterations=iterations,
        iterations_per_epoch=iterations_per_epoch,
        budget_usd=budget,
        deadline_s=_deadline_s(deadline),
        confidence=confidence,
        value_of_time_usd_per_h=value_of_time,
        risk_counts=risk,
    )
    check_job(job)
    check_exists(source)
    config = settings_with(
        local__gpu=local_gpu,
        cloud__providers=provider,
        cloud__regions=region,
        cloud__markets=market,
        cloud__dataset_gb=dataset_gb,
        cloud__result_gb=result_gb,
        prices__max_age=max_age,
        prices__offline=offline,
        profile__python=python,
        profile__timeout=timeout,
        profile__backend=backend,
        profile__fake_data=fake_data,
        profile__samples=samples,
        profile__sandbox=sandbox,
        store__record=record,
        policy__files=policy,
    )
    rules = policy_of(config)
    spent = spent_of(config, rules, project)
    plans, warnings = _plans(config, gpu, {"nvidia", *map(str.lower, allow_vendor or ())}, rules)
    trace = load_trace(source, arguments, config, origin_gpu=origin_gpu, world=world)
    recommendation = _recommend(
        trace,
        plans,
        with_objective(job, rules),
        config,
        warnings,
        what_if=what_if,
        policy=rules,
        spent=spent,
    )
    shown_as = chosen_format(output, as_json)
    entry_id = _entry_id(config, recommendation)
    show(
        recommendation if what_if else replace(recommendation, what_ifs=()),
        trace,
        output=shown_as,
        explained=explain,
        top=None if all_ else top,
        what_if=best_what_if(recommendation),
        plot=plot,
        recorded_as=entry_id,
    )
    if entry_id is not None:
        _record(config, recommendation, trace, entry_id=entry_id, project=project, output=shown_as)


def _entry_id(config: Config, recommendation: Recommendation) -> str | None:
    if not config.settings.store.record or recommendation.recommended is None:
        return None
    from advisor.store.ledger import new_id

    return new_id()


def _record(
    config: Config,
    recommendation: Recommendation,
    trace: Trace,
    *,
    entry_id: str,
    project: str,
    output: Format,
) -> None:
    """After it was shown: a database that is down takes nothing away from the answer."""
    from advisor.cli.common import note
    from advisor.cli.ledger import keep_recommendation

    keep_recommendation(config, recommendation, trace, entry_id=entry_id, project=project)
    (print if output is Format.TABLE else note)(f"Recorded as {entry_id}.")


def _deadline_s(text: str | None) -> float | None:
    from advisor.errors import InputError
    from advisor.units import parse_duration_s

    if text is not None and text.lstrip().startswith("-"):
        raise InputError(f"--deadline {text!r} lies in the past: give the time from now on, such as 12h.")
    try:
        return None if text is None else parse_duration_s(text)
    except ValueError as error:
        raise InputError(f"--deadline: {error}.") from error


def _plans(
    config: Config, gpu: list[str] | None, vendors: set[str], policy: Policy | None
) -> tuple[list[Plan], tuple[str, ...]]:
    from advisor.cli.offers import is_wanted, wanted_counts
    from advisor.cli.own_machines import own_machines
    from advisor.errors import InputError
    from advisor.gpus import load_gpus
    from recommender.candidates import plans_of_machine

    def allowed(spec: GpuSpec) -> bool:
        return spec.vendor.lower() in vendors

    wanted = wanted_counts(gpu or ())
    rented, warnings = _rented(config, wanted, policy)
    own = [
        plan
        for machine in own_machines(config.settings)
        for plan in plans_of_machine(machine, asked=wanted.get(machine.gpu, ()))
        if is_wanted(wanted, plan.gpu, plan.num_gpus)
    ]
    gpus = load_gpus()
    foreign = sorted({name for name in (*wanted, *(plan.gpu for plan in own)) if not allowed(gpus[name])})
    if foreign:
        raise InputError(
            f"{', '.join(foreign)} runs other software than the CUDA this script was profiled for:"
            " --allow-vendor amd takes it in all the same."
        )
    return [plan for plan in (*own, *rented) if allowed(gpus[plan.gpu])], warnings


def _rented(
    config: Config, wanted: Mapping[str, set[int]], policy: Policy | None
) -> tuple[list[Plan], tuple[str, ...]]:
    """What clouds offer, live prices pulled anew where they are due."""
    from advisor.cli.offers import query_offers
    from advisor.cli.under_policy import cheapest_by_verdict
    from advisor.gpus import load_gpus
    from advisor.pricing.storage import load_rates
    from recommender.candidates import plans_of_offers, with_known_gpu

    cloud = config.settings.cloud
    found = query_offers(config, wanted, max_gpus=cloud.max_gpus, may_refresh=True)
    offers, unknown = with_known_gpu(found.offers, load_gpus())
    plans = plans_of_offers(offers, terms=_cloud_terms(cloud), catalog=load_rates())
    return cheapest_by_verdict(plans, policy, _spot_terms(config)), (*found.warnings, *unknown)


def _cloud_terms(cloud: CloudSettings) -> CloudTerms:
    from recommender.extras import CloudTerms

    return CloudTerms(
        startup_s=cloud.startup,
        boot_disk_gib=cloud.boot_disk_gb,
        dataset_gib=cloud.dataset_gb,
        result_gib=cloud.result_gb,
        download_bits_per_s=cloud.download_gbit_per_s * 1e9,
    )


def _recommend(
    trace: Trace,
    plans: list[Plan],
    job: Job,
    config: Config,
    warnings: tuple[str, ...],
    *,
    what_if: bool | None,
    policy: Policy | None,
    spent: Spent | None,
) -> Recommendation:
    from dataclasses import replace

    import numpy as np

    from advisor.cli.shifts import with_later_starts
    from advisor.gpus import load_gpus
    from advisor.pricing.interruptions import load_interruptions
    from recommender import recommend as rank
    from recommender.estimates import estimates_for
    from recommender.what_if import with_what_ifs

    gpus, spot = load_gpus(), _spot_terms(config)
    interruptions = None if RATE in config.origins else load_interruptions()
    answer = rank(
        trace,
        estimates_for(trace, plans, gpus),
        gpus,
        plans,
        job,
        rng=np.random.default_rng(SEED),
        spot=spot,
        interruptions=interruptions,
        policy=policy,
        spent=spent,
    )
    answer = with_later_starts(answer, config)
    if what_if is not False:
        answer = with_what_ifs(
            answer,
            trace,
            gpus,
            rng=np.random.default_rng(SEED),
            spot=spot,
            interruptions=interruptions,
            best_only=what_if is None,
        )
    return replace(answer, warnings=(*answer.warnings, *warnings))


def _spot_terms(config: Config) -> SpotTerms:
    from advisor.units import HOUR_S
    from recommender.spot import SpotTerms

    spot = config.settings.spot
    interval_s = spot.checkpoint_interval
    return SpotTerms(
        preemptions_per_h=spot.preemptions_per_h,
        checkpoint_interval_h=None if interval_s is None else interval_s / HOUR_S,
        checkpoint_h=spot.checkpoint / HOUR_S,
        restart_h=spot.restart / HOUR_S,
        reacquire_h=spot.reacquire / HOUR_S,
        rate_source="configured" if RATE in config.origins else "assumed",
    )
