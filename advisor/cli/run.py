"""``advisor run`` and ``launch``: run a command or start a job file, list and record what ran."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.common import (
    Click,
    WholeLines,
    duration_s,
    group,
    moment,
    moment_or_duration_s,
    option,
    settings_with,
)
from advisor.cli.listening import TERMINAL
from advisor.cli.options import AS_TABLE, OutputOptions, asked, given, gpu_names, provider_names
from advisor.core.errors import InputError
from advisor.core.values import Market, RunStatus
from advisor.receipt.guard import Canary
from advisor.report.plain import print_aside, print_lines, print_text
from advisor.report.printing import Format, print_document, text_of

if TYPE_CHECKING:
    from advisor.service.bookkeeping import RunRequest
    from advisor.service.watching import WatchRequest


ProjectOption = Annotated[
    str | None,
    option("Project whose budget it counts against; default: none.", metavar="NAME", show_default=False),
]


PlanOption = Annotated[
    str | None, option("Id of an option, such as aws/g5.xlarge/use1-az1/spot.", metavar="ID")
]
NoteOption = Annotated[str, option("Anything worth remembering.", metavar="TEXT")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RanOptions:
    """A run that has ended: where it ran, how long, and what it cost."""

    started_at: str | None = asked(
        "When it started, such as 2026-11-01T09:30+01:00; else UTC.", "--start", metavar="TIME"
    )
    duration_s: str | None = asked("How long it ran, such as 7h30m.", "--duration", metavar="DURATION")
    cost_usd: float | None = asked(
        "What was or will be billed, before tax; left out, it is unknown.", "--cost", metavar="USD"
    )
    status: RunStatus | None = asked(
        "How it ended: finished (default), failed, interrupted, lost.", metavar="STATUS", case_sensitive=False
    )
    recommendation: str | None = asked(
        "An id that `recommend --record` printed; gives plan, script and project.", metavar="ID"
    )
    plan: PlanOption = None
    provider: str | None = asked(
        "A cloud, a cluster of the settings, or local.", metavar="NAME", autocompletion=provider_names
    )
    gpu: str | None = asked("One GPU, such as L4:8.", metavar="GPU[:COUNT]", autocompletion=gpu_names)
    market: Market | None = asked("On what terms it was rented.", metavar="MARKET", case_sensitive=False)
    script: str | None = asked("What ran.", metavar="NAME")
    project: ProjectOption = None
    note: NoteOption = ""
    run_id: str | None = asked("An id of yours, so that repeating changes nothing.", "--id", metavar="ID")

    def request(self) -> RunRequest:
        """The run to enter. Raises InputError: it is not given when it started or how long it took."""
        from advisor.service.bookkeeping import RunRequest

        if self.started_at is None or self.duration_s is None:
            raise InputError("when did it run, and how long? Give --start and --duration, or --receipt FILE.")
        return RunRequest(
            **given(
                self,
                started_at=moment("--start", self.started_at),
                duration_s=duration_s("--duration", self.duration_s),
            )
        )


class _RunGroup(WholeLines):
    """Takes ``run [OPTIONS] -- COMMAND`` for ``run command [OPTIONS] -- COMMAND``."""

    def parse_args(self, ctx: Click, args: list[str]) -> list[str]:
        """What stands before the dashes is the command's options, unless it names another subcommand."""
        if "--" in args and args[0] not in self.commands:
            args = ["command", *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Click, args: list[str]) -> Click:
        """The subcommand; what is none is likely a command without its dashes."""
        if args[0] not in self.commands:
            raise InputError(
                f"{args[0]!r} is none of {', '.join(self.commands)}. To run a command write --:"
                f" advisor run -- {shlex.join(args)}"
            )
        return super().resolve_command(ctx, args)


app = group(
    "Run a command and keep a receipt (`advisor run -- python train.py`); list and record what ran.",
    _RunGroup,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """What ends a run early, and what its rent is counted by."""

    max_usd: float | None = asked(
        "Stop it in order when its rent comes to so much; warn at 80 %.", "--max-cost", metavar="USD"
    )
    max_time: str | None = asked(
        "Stop it in order after so long, such as 20h; warn at 80 %.", metavar="DURATION"
    )
    num_nodes: int | None = asked(
        "Machines whose rent counts; default: Slurm's number, else one.",
        "--nodes",
        metavar="N",
        min=1,
        max=4096,
    )
    canary: Canary | None = asked(
        "Compare the first steps with --recommendation; if slower than its p90: go-on, ask or stop.",
        metavar="WHAT",
        case_sensitive=False,
    )

    def request(self) -> WatchRequest:
        """What to watch. Raises InputError: --max-time is no duration."""
        from advisor.service.watching import WatchRequest

        max_s = None if self.max_time is None else duration_s("--max-time", self.max_time)
        return WatchRequest(max_usd=self.max_usd, max_s=max_s, canary=self.canary, num_nodes=self.num_nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What is known of a run before it starts."""

    recommendation: str | None = asked(
        "What it follows: an id that `recommend --record` printed, or last.", metavar="ID"
    )
    plan: PlanOption = None
    project: ProjectOption = None
    cost_usd: float | None = asked(
        "What it costs before tax; default: the machine's price x time.", "--cost", metavar="USD"
    )
    usd_per_h: float | None = asked(
        "The machine's price; default: of the price list.", "--usd-per-hour", metavar="USD"
    )
    note: NoteOption = ""
    receipt: Path | None = asked("Write the receipt there as well, as JSON.", metavar="FILE")


@app.command("command")
def command(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND", help="The program and what it gets.")
    ] = None,
    *,
    known: RunOptions,
    metadata: Annotated[
        bool | None,
        option("Ask AWS or GCP which machine this is.", "--metadata/--no-metadata", show_default=False),
    ] = None,
    watch: WatchOptions,
) -> None:
    """Run a command as it is and keep a receipt of it; `advisor run -- COMMAND` is short for this.

    Its output, signals and exit code pass through. The receipt goes to standard error and to the database:
    time, cost, optimizer steps of PyTorch, and whether the prediction of --recommendation held.

    Before a limit it gets SIGUSR1 to save a checkpoint (if it listens), then SIGTERM, and is killed at last.
    """
    from advisor.report.runs import receipt_document
    from advisor.service.receipts import CommandRequest, run_and_keep

    request = CommandRequest(command=tuple(words or ()), watch=watch.request(), **given(known))
    kept = run_and_keep(request, settings_with(run__metadata=metadata), TERMINAL)
    print_aside(text_of(receipt_document(kept), Format.TABLE))
    raise typer.Exit(kept.exit_code)


@app.command("record")
def record(
    *,
    ran: RanOptions,
    receipt: Annotated[
        Path | None, option("Instead of all that: a receipt that `advisor run` wrote.", metavar="FILE")
    ] = None,
    output: OutputOptions = AS_TABLE,
) -> None:
    """Enter a run that has ended: where it ran, how long, and what it cost.

    --recommendation, --plan, or --provider, --gpu and --market say where; the latter win.
    """
    from advisor.report.runs import recorded_document
    from advisor.service.bookkeeping import keep_receipt, keep_run

    config = settings_with()
    if receipt is not None:
        run, is_new = keep_receipt(receipt, config.settings.store, TERMINAL)
    else:
        run, is_new = keep_run(ran.request(), config, TERMINAL)
    print_document(recorded_document(run, is_new=is_new), output.form)


@app.command("list")
def list_(
    since: Annotated[str | None, option("A date, or how far back: 2026-11-01, 30d.", metavar="TIME")] = None,
    project: ProjectOption = None,
    output: OutputOptions = AS_TABLE,
) -> None:
    """Show recorded runs in order of time, and what they cost together."""
    from advisor.report.runs import runs_document
    from advisor.service.bookkeeping import recorded_runs

    start = None if since is None else moment_or_duration_s("--since", since)
    found = recorded_runs(start, project, settings_with().settings.store, TERMINAL)
    document = runs_document(found.runs, num_left_out=found.num_left_out)
    print_document(document, output.form)


def launch(
    file: Annotated[Path, typer.Argument(help="What `recommend --emit KIND` wrote.", metavar="FILE")],
    yes: Annotated[bool, option("Start it without asking.", "--yes", "-y")] = False,
    dry_run: Annotated[bool, option("Show what would be started, and start nothing.", "--dry-run")] = False,
) -> None:
    """Start a job file that `advisor recommend --emit` wrote, by the tool that it is for.

    Shows the file and the command, asks, and keeps a receipt of a job that it sees to its end.
    """
    from advisor.report.runs import receipt_document
    from advisor.service.launching import launch_of, receipt_request, start
    from advisor.service.receipts import run_and_keep

    wanted = launch_of(file)
    config = settings_with()
    if not dry_run:
        wanted.check(config.settings.policy)
    # All of it, whatever its length: it is what a yes agrees to.
    print_text(wanted.text.rstrip())
    print_lines(f"$ {shlex.join(wanted.command)}")
    if dry_run:
        return
    if not yes and not typer.confirm("Start it?", default=False):
        raise typer.Exit(1)
    request = receipt_request(wanted)
    if request is None:
        raise typer.Exit(start(wanted))
    kept = run_and_keep(request, config, TERMINAL)
    print_aside(text_of(receipt_document(kept), Format.TABLE))
    raise typer.Exit(kept.exit_code)
