"""``advisor run record / list``: what really ran, and what it cost."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli.common import FormatOption, JsonOption, chosen_format
from advisor.cli.completion import gpu_names, provider_names
from advisor.cli.help_lines import WholeLines
from advisor.core.values import Market, RunStatus
from advisor.report.printing import Format, print_document

app = typer.Typer(
    cls=WholeLines,
    help="What really ran, and what it cost: the ledger beside the recommendations.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
ProjectOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Whose budget it is; default: none.", show_default=False)
]


@app.command("record")
def record(
    start: Annotated[
        str, typer.Option(metavar="TIME", help="When it started, such as 2026-11-01T09:30+01:00; else UTC.")
    ],
    duration: Annotated[str, typer.Option(metavar="DURATION", help="How long it ran, such as 7h30m.")],
    cost: Annotated[
        float | None,
        typer.Option(metavar="USD", help="What was or will be billed, before tax; left out, it is unknown."),
    ] = None,
    status: Annotated[
        RunStatus | None,
        typer.Option(
            metavar="STATUS",
            help="How it ended: finished (default), failed, interrupted, lost.",
            case_sensitive=False,
        ),
    ] = None,
    recommendation: Annotated[
        str | None,
        typer.Option(metavar="ID", help="What `recommend --record` printed; tells plan, script and project."),
    ] = None,
    plan: Annotated[
        str | None, typer.Option(metavar="ID", help="Id of an option, such as aws/g5.xlarge/use1-az1/spot.")
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A cloud, a cluster of the settings, or local.",
            autocompletion=provider_names,
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(metavar="GPU[:COUNT]", help="One GPU, such as L4:8.", autocompletion=gpu_names),
    ] = None,
    market: Annotated[
        Market | None,
        typer.Option(metavar="MARKET", help="On what terms it was rented.", case_sensitive=False),
    ] = None,
    script: Annotated[str | None, typer.Option(metavar="NAME", help="What ran.")] = None,
    project: ProjectOption = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="Anything worth remembering.")] = "",
    run_id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="An id of yours, so that repeating changes nothing."),
    ] = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Enter a run that has ended: where it ran, how long, and what it cost.

    Where is told by --recommendation, by --plan, or by --provider, --gpu and --market; the latter win.
    """
    from advisor.cli.common import settings_with
    from advisor.cli.listening import TERMINAL
    from advisor.cli.times import duration_s, moment
    from advisor.report.runs import recorded_document
    from advisor.service.ledger import RunRequest, keep_run

    request = RunRequest(
        started_at=moment("--start", start),
        duration_s=duration_s("--duration", duration),
        cost_usd=cost,
        status=status,
        recommendation=recommendation,
        plan=plan,
        provider=provider,
        gpu=gpu,
        market=market,
        script=script,
        project=project,
        note=note,
        run_id=run_id,
    )
    run, is_new = keep_run(request, settings_with(), TERMINAL)
    print_document(recorded_document(run, is_new=is_new), chosen_format(output, as_json))


@app.command("list")
def list_(
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="A date, or how far back: 2026-11-01, 30d.")
    ] = None,
    project: ProjectOption = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Show recorded runs in order of time, and what they cost together."""
    from advisor.cli.common import settings_with
    from advisor.cli.listening import TERMINAL
    from advisor.cli.times import moment_or_duration_s
    from advisor.report.runs import runs_document
    from advisor.service.ledger import RunsRequest, recorded_runs

    request = RunsRequest(
        since=None if since is None else moment_or_duration_s("--since", since), project=project
    )
    runs = recorded_runs(request, settings_with(), TERMINAL)
    print_document(runs_document(runs), chosen_format(output, as_json))
