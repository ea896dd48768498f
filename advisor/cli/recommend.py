"""``advisor recommend``: the main job."""

from __future__ import annotations

from collections.abc import Sequence
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
from advisor.cli.completion import gpu_names, vendor_names
from advisor.core.limits import MAX_PLANNED_S, MAX_ROWS
from advisor.report.rows import Format

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.core.values import Job, Recommendation, Trace


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
        typer.Option(
            metavar="GPU",
            help="GPU of this machine; default: what nvidia-smi says.",
            autocompletion=gpu_names,
        ),
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
        typer.Option(metavar="FILE", help="Policy file to obey, besides those of the settings. Repeatable."),
    ] = None,
    allow_vendor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also GPUs of this vendor (amd). Repeatable.",
            autocompletion=vendor_names,
        ),
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
    top: Annotated[int, typer.Option(metavar="N", help="Rows to show.", min=1, max=MAX_ROWS)] = 15,
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
    from advisor.service.blas import load_numpy

    load_numpy()
    from advisor.cli.common import check_exists, settings_with
    from advisor.core.values import Job
    from recommender.engine import check_job

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
    )
    recommendation, trace = _answer(
        config,
        job,
        source,
        arguments,
        origin_gpu=origin_gpu,
        world=world,
        gpu=gpu,
        vendors=("nvidia", *(allow_vendor or ())),
        policies=policy or (),
        project=project,
        what_if=what_if,
    )
    _tell(
        config,
        recommendation,
        trace,
        output=chosen_format(output, as_json),
        explained=explain,
        top=None if all_ else top,
        plot=plot,
        with_what_ifs=bool(what_if),
        project=project,
    )


def _answer(
    config: Config,
    job: Job,
    source: Path,
    arguments: list[str] | None,
    *,
    origin_gpu: str | None,
    world: int | None,
    gpu: list[str] | None,
    vendors: Sequence[str],
    policies: Sequence[Path],
    project: str,
    what_if: bool | None,
) -> tuple[Recommendation, Trace]:
    """Rules and prices before the script is profiled, which takes longest: what is wrong is told at once."""
    from dataclasses import replace

    from advisor.cli.common import load_trace
    from advisor.service.plans import plans_of
    from advisor.service.ranked import recommendation_of
    from advisor.service.under_policy import policy_of, spent_of, with_objective

    rules = policy_of(config, policies)
    spent = spent_of(config, rules, project)
    plans, warnings = plans_of(config, gpu, vendors, rules)
    trace = load_trace(source, arguments, config, origin_gpu=origin_gpu, world=world)
    job = with_objective(job, rules)
    found = recommendation_of(trace, plans, job, config, what_if=what_if, policy=rules, spent=spent)
    return replace(found, warnings=(*found.warnings, *warnings)), trace


def _tell(
    config: Config,
    recommendation: Recommendation,
    trace: Trace,
    *,
    output: Format,
    explained: str | None,
    top: int | None,
    plot: bool,
    with_what_ifs: bool,
    project: str,
) -> None:
    """Show it, and then record it where that is wanted."""
    from dataclasses import replace

    from advisor.cli.answer import show
    from recommender.ranking.what_if import best_what_if

    entry_id = _entry_id(config, recommendation)
    show(
        recommendation if with_what_ifs else replace(recommendation, what_ifs=()),
        trace,
        output=output,
        explained=explained,
        top=top,
        what_if=best_what_if(recommendation),
        plot=plot,
        recorded_as=entry_id,
    )
    if entry_id is not None:
        _record(config, recommendation, trace, entry_id=entry_id, project=project, output=output)


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
    from advisor.service.ledger import keep_recommendation

    keep_recommendation(config, recommendation, trace, entry_id=entry_id, project=project)
    (print if output is Format.TABLE else note)(f"Recorded as {entry_id}.")


def _deadline_s(text: str | None) -> float | None:
    from advisor.core.errors import InputError
    from advisor.core.units import exact_duration, parse_duration_s

    if text is not None and text.lstrip().startswith("-"):
        raise InputError(f"--deadline {text!r} lies in the past: give the time from now on, such as 12h.")
    try:
        seconds = None if text is None else parse_duration_s(text)
    except ValueError as error:
        raise InputError(f"--deadline: {error}.") from error
    if seconds is not None and seconds > MAX_PLANNED_S:
        raise InputError(f"--deadline must be at most {exact_duration(MAX_PLANNED_S)}, got {text!r}.")
    return seconds
