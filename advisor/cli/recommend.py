"""``advisor recommend``: the main job."""

from __future__ import annotations

import sys
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
    LoaderOption,
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
from advisor.cli.delivering import Outlet, PreviewOption, ToOption, check_delivered, outlet
from advisor.core.limits import MAX_ROWS
from advisor.core.values import Scaling
from advisor.report.printing import Format, check_page_path

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.delivery.posting import Delivery
    from advisor.service.recommending import RecommendAnswer


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
        typer.Option(
            metavar="USD_PER_H",
            help="What an hour until it is done is worth; default: 2.",
        ),
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
        typer.Option(metavar="GB", help="Data set, copied to the machine unless it lies there."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="Where it lies: s3://BUCKET@REGION, gs://..., REGION or local."),
    ] = None,
    scaling: Annotated[
        Scaling | None,
        typer.Option(
            case_sensitive=False,
            help="What the script holds when GPUs are added: the batch of one (weak) or of all (strong).",
            show_default=False,
        ),
    ] = None,
    result_gb: Annotated[
        float | None, typer.Option(metavar="GB", help="Result to bring home over the internet.")
    ] = None,
    loader_s_per_sample: LoaderOption = None,
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
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answer to this page, too, with a chart to point at."),
    ] = None,
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
    to: ToOption = None,
    preview: PreviewOption = False,
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
    from advisor.cli.common import script_settings, settings_with
    from advisor.cli.listening import TERMINAL
    from advisor.cli.times import deadline_s
    from advisor.core.values import Job
    from advisor.service.recommending import RecommendRequest, check
    from advisor.service.recommending import recommend as recommended
    from advisor.service.traces import TraceRequest

    request = RecommendRequest(
        trace=TraceRequest(
            source=source, arguments=tuple(arguments or ()), origin_gpu=origin_gpu, world_size=world
        ),
        job=Job(
            epochs=epochs,
            iterations=iterations,
            iterations_per_epoch=iterations_per_epoch,
            budget_usd=budget,
            deadline_s=deadline_s("--deadline", deadline),
            confidence=confidence,
            value_of_time_usd_per_h=value_of_time,
            risk_counts=risk,
        ),
        gpus=tuple(gpu or ()),
        vendors=("nvidia", *(allow_vendor or ())),
        policies=tuple(policy or ()),
        project=project,
        what_if=what_if,
    )
    check(request, TERMINAL)
    if html is not None:
        check_page_path(html)
    config = settings_with(
        local__gpu=local_gpu,
        cloud__providers=provider,
        cloud__regions=region,
        cloud__markets=market,
        cloud__dataset_gb=dataset_gb,
        cloud__data=data,
        profile__scaling=scaling,
        cloud__result_gb=result_gb,
        input__loader_s_per_sample=loader_s_per_sample,
        prices__max_age=max_age,
        prices__offline=offline,
        store__record=record,
        **script_settings(python, timeout, backend, fake_data, samples, sandbox),
    )
    out = outlet("recommend", to, preview=preview)
    out.check(config)
    answer = recommended(request, config, TERMINAL)
    _show(
        answer,
        config,
        project,
        out,
        output=chosen_format(output, as_json),
        explained=explain,
        top=None if all_ else top,
        plot=plot,
        page=html,
    )


def _show(
    answer: RecommendAnswer,
    config: Config,
    project: str,
    out: Outlet,
    *,
    output: Format,
    explained: str | None,
    top: int | None,
    plot: bool,
    page: Path | None,
) -> None:
    """Show it, then record it: a database that is down takes nothing away from the answer."""
    from advisor.cli.answer import show
    from advisor.cli.listening import note
    from advisor.report.recommendation import subject_of
    from advisor.report.words import sentences
    from advisor.service.advised import keep_recommendation

    subject = subject_of(answer.recommendation, answer.trace)
    warnings = sentences(answer.recommendation.warnings)
    deliveries: list[Delivery] = []
    show(
        answer.recommendation,
        answer.trace,
        hand_out=lambda document: deliveries.extend(
            out.hand_out(document, output, config, subject=subject, warnings=warnings, asked=f"top {top}")
        ),
        output=output,
        what_if=answer.best_what_if,
        explained=explained,
        top=top,
        plot=plot,
        page=page,
        recorded_as=answer.entry_id,
    )
    if answer.entry_id is not None:
        keep_recommendation(answer, config, project, arguments=sys.argv[1:])
        (print if output is Format.TABLE else note)(f"Recorded as {answer.entry_id}.")
    check_delivered(deliveries)
