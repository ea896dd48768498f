"""``advisor queue`` and ``advisor spot``: what logs say."""

from datetime import time
from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.common import WholeLines, option
from advisor.cli.listening import TERMINAL
from advisor.cli.options import AS_TABLE, OutputOptions
from advisor.core.errors import InputError
from advisor.core.limits import MAX_MACHINES, MAX_SIZE
from advisor.core.units import whole_number
from advisor.report.printing import print_document

queue_app = typer.Typer(
    cls=WholeLines, help="How long jobs wait in a cluster's queue, from its job log.", no_args_is_help=True
)

LogArgument = Annotated[
    Path,
    typer.Argument(
        metavar="LOG",
        help="What sacct --parsable2 prints, CSV (submit, start, gpus, walltime, queue, user), SWF, or jobs"
        " of Kueue or Volcano as JSON; or one of the words slurm, kueue, volcano, which ask for them.",
    ),
]
ZoneOption = Annotated[
    str | None,
    option(
        "Of times in a log that name no zone, such as Europe/Berlin.",
        "--timezone",
        metavar="ZONE",
        show_default="that of this machine",
    ),
]


@queue_app.command("fit")
def fit_queue(
    log: LogArgument,
    out: Annotated[
        Path | None, option("Keep the quantiles: for wait_log of a cluster.", metavar="FILE")
    ] = None,
    timezone: ZoneOption = None,
    output: OutputOptions = AS_TABLE,
) -> None:
    """Show the waits by size, requested walltime and queue; the file holds no rows of the log."""
    from advisor.report.logs import queue_fit_document as fit_document
    from advisor.service.queue_waits import fit_waits

    print_document(fit_document(fit_waits(log, out, TERMINAL, timezone)), output.form)


@queue_app.command("check")
def check(log: LogArgument, timezone: ZoneOption = None, output: OutputOptions = AS_TABLE) -> None:
    """Foresee the last 30 % of the log, and show how often and how closely it was right."""
    from advisor.report.logs import check_document
    from advisor.service.queue_waits import check_waits

    print_document(check_document(check_waits(log, TERMINAL, timezone)), output.form)


@queue_app.command("show")
def show(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE_OR_LOG", help="What queue fit wrote, or a job log; or slurm, kueue or volcano."
        ),
    ],
    gpus: Annotated[
        int | None, option("GPUs the job asks for.", metavar="N", min=1, max=MAX_MACHINES)
    ] = None,
    walltime: Annotated[
        str | None, option("Run time it asks for: 12h, 1-12:00:00.", metavar="DURATION")
    ] = None,
    queue: Annotated[str | None, option("Queue or partition.", metavar="NAME")] = None,
    job: Annotated[
        str | None,
        option("Id of a job that waits in Slurm: shows its place, and the wait to come.", metavar="ID"),
    ] = None,
    waiting: Annotated[
        int | None,
        option(
            "Jobs that wait in that queue when it is submitted: squeue --states=PENDING. Known of a log that"
            " was written within the hour.",
            metavar="N",
            min=0,
            max=MAX_MACHINES,
        ),
    ] = None,
    waited: Annotated[
        str | None, option("How long the job has waited: shows the wait still to come.", metavar="DURATION")
    ] = None,
    timezone: ZoneOption = None,
    output: OutputOptions = AS_TABLE,
) -> None:
    """Show how long one kind of job waits, and which limits it meets; without --gpus or --job, all kinds."""
    from advisor.report.logs import queue_fit_document as fit_document
    from advisor.report.logs import wait_document
    from advisor.service.queue_waits import WaitRequest, expected_wait, fitted_waits

    form = output.form
    of_one = any(given is not None for given in (walltime, queue, waiting, waited))
    if job is not None and (gpus is not None or of_one):
        raise InputError("--job says what the job asks for: leave --gpus and the others out.")
    if gpus is None and job is None:
        if of_one:
            raise InputError(
                "--walltime, --queue, --waiting and --waited are of one job: give its --gpus N as well."
            )
        print_document(fit_document(fitted_waits(source, TERMINAL, timezone)), form)
        return
    request = WaitRequest(
        source=source,
        num_gpus=gpus,
        job=job,
        walltime_s=_seconds("--walltime", walltime),
        queue=queue,
        timezone=timezone,
        num_waiting=waiting,
        waited_s=_seconds("--waited", waited),
    )
    wait = expected_wait(request, TERMINAL)
    TERMINAL.warn(wait.warnings)
    print_document(wait_document(wait), form)


@queue_app.command("simulate")
def simulate(
    log: LogArgument,
    slurm_conf: Annotated[
        Path | None, option("Partitions and priorities of the cluster: its slurm.conf.", metavar="FILE")
    ] = None,
    capacity: Annotated[
        int | None,
        option(
            "Units of the log (GPUs, nodes or cores), without a slurm.conf.", metavar="N", min=1, max=MAX_SIZE
        ),
    ] = None,
    add: Annotated[
        list[str] | None, option("What if a partition had more: gpu=8, or 8.", metavar="[PARTITION=]N")
    ] = None,
    backfill: Annotated[
        str | None, option("What if jobs started by this rule.", metavar="none|easy|conservative")
    ] = None,
    size: Annotated[
        int | None,
        option("One more job, of so many units: shows when it starts.", metavar="N", min=1, max=MAX_SIZE),
    ] = None,
    walltime: Annotated[
        str | None, option("The shortest run time that it may ask for: 12h.", metavar="DURATION")
    ] = None,
    queue: Annotated[str | None, option("Its partition.", metavar="NAME")] = None,
    submit_at: Annotated[
        str | None, option("What if it were submitted at this time of day.", metavar="HH:MM")
    ] = None,
    timezone: ZoneOption = None,
    output: OutputOptions = AS_TABLE,
) -> None:
    """Simulate the jobs of a log on the cluster as it is, and with a change."""
    from advisor.report.logs import what_if_document
    from advisor.service.queue_what_ifs import WhatIfRequest, queue_what_if

    if size is None and any(given is not None for given in (walltime, queue, submit_at)):
        raise InputError("--walltime, --queue and --submit-at are of one job: give its --size N as well.")
    if backfill not in (None, "none", "easy", "conservative"):
        raise InputError(f"--backfill {backfill[:40]}: it must be none, easy or conservative.")
    request = WhatIfRequest(
        log=log,
        slurm_conf=slurm_conf,
        capacity=capacity,
        added=dict(_added(text) for text in add or ()),
        backfill=backfill,
        size=size,
        walltime_s=_seconds("--walltime", walltime),
        partition=queue,
        submit_at=_time_of_day(submit_at),
        timezone=timezone,
    )
    print_document(what_if_document(queue_what_if(request, TERMINAL)), output.form)


def _added(text: str) -> tuple[str, int]:
    name, _, count = text.rpartition("=")
    added = whole_number(count.removeprefix("-"))
    if added is None or added > MAX_SIZE:
        raise InputError(f"--add {text[:40]}: write how many, such as gpu=8 or 8; -8 takes them away.")
    return name, int(count)


def _time_of_day(text: str | None) -> time | None:
    try:
        return None if text is None else time.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"--submit-at {text!r} is no time of day such as 22:00.") from error


def _seconds(flag: str, text: str | None) -> float | None:
    from advisor.site_files.job_logs import parse_walltime_s

    try:
        return None if text is None else parse_walltime_s(text)
    except ValueError as error:
        raise InputError(f"{flag}: {error}.") from error


spot_app = typer.Typer(
    cls=WholeLines, help="How often spot machines go away, from a log of them.", no_args_is_help=True
)


@spot_app.callback()
def _group() -> None:
    """With one command only, typer would make it the group itself."""


@spot_app.command("fit")
def fit_spot(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="CSV with columns time and event, and machine and zone where they differ. Events: up, down, "
            "requested, started, preempted, ended.",
        ),
    ],
    out: Annotated[
        Path | None, option("Write the rates here, for the setting spot.history.", metavar="FILE")
    ] = None,
    output: OutputOptions = AS_TABLE,
) -> None:
    """Show the rates of each machine, corrected by its class; the file holds no rows of the log."""
    from advisor.report.logs import spot_fit_document as fit_document
    from advisor.service.queue_waits import fit_spot

    print_document(fit_document(fit_spot(log, out, TERMINAL)), output.form)
