"""``advisor queue``: how long jobs wait for the organisation's own cluster, from its job log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.common import FormatOption, JsonOption, chosen_format, note, warn
from advisor.cli.help_lines import WholeLines
from advisor.cli.progress import progress
from advisor.core.limits import MAX_MACHINES
from advisor.report.printing import Format, print_document

if TYPE_CHECKING:
    from recommender.queue.job_log import JobLog

app = typer.Typer(
    cls=WholeLines, help="How long jobs wait in a cluster's queue, from its job log.", no_args_is_help=True
)

LogArgument = Annotated[
    Path,
    typer.Argument(
        metavar="LOG",
        help="What sacct --parsable2 prints, CSV (submit, start, gpus, walltime, queue) or SWF.",
    ),
]


@app.command("fit")
def fit(
    log: LogArgument,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the quantiles: for wait_log of a cluster.")
    ] = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Show the waits by size, requested walltime and queue; the file holds no rows of the log."""
    from advisor.report.queue import fit_document
    from recommender.queue.fitted import fit as fit_log
    from recommender.queue.wait_files import write_fit

    with progress(f"reading {log.name}"):
        found = fit_log(_read(log))
    if out is not None:
        write_fit(out, found)
        note(f"wrote {str(out)!r}")
    print_document(fit_document(found), chosen_format(output, as_json))


@app.command("check")
def check(log: LogArgument, output: FormatOption = Format.TABLE, as_json: JsonOption = False) -> None:
    """Foresee the last 30 % of the log, job by job, and show how often and how closely it was right."""
    from advisor.report.queue import check_document
    from recommender.queue.foresight import check as check_log

    with progress(f"reading {log.name}"):
        found = check_log(_read(log))
    print_document(check_document(found), chosen_format(output, as_json))


@app.command("show")
def show(
    source: Annotated[
        Path, typer.Argument(metavar="FILE_OR_LOG", help="What queue fit wrote, or a job log.")
    ],
    gpus: Annotated[
        float | None, typer.Option(metavar="N", help="GPUs the job asks for.", min=0, max=MAX_MACHINES)
    ] = None,
    walltime: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Run time it asks for: 12h, 1-12:00:00.")
    ] = None,
    queue: Annotated[str | None, typer.Option(metavar="NAME", help="Queue or partition.")] = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Show how long one kind of job waits; without --gpus, all kinds."""
    from advisor.core.arguments import check_number
    from advisor.core.errors import InputError
    from advisor.report.queue import fit_document, wait_document
    from advisor.report.words import sentences
    from recommender.queue.fitted import warnings_of
    from recommender.queue.wait_files import load_fit

    if gpus is None and (walltime is not None or queue is not None):
        raise InputError("--walltime and --queue narrow down a job: give its --gpus N as well.")
    if gpus is not None:
        check_number("--gpus", gpus, least=0, most=MAX_MACHINES)  # typer lets nan through
    asked_s = _walltime_s(walltime)
    with progress(f"reading {source.name}"):
        found = load_fit(source)
    if gpus is None:
        print_document(fit_document(found), chosen_format(output, as_json))
        return
    alike = found.of(size=gpus, walltime_s=asked_s, queue=queue)
    warnings = warnings_of(found, alike, gpus)
    warn(sentences(warnings))
    print_document(wait_document(alike, found.size_unit, warnings), chosen_format(output, as_json))


def _read(path: Path) -> JobLog:
    from recommender.queue.job_log import read_job_log

    log = read_job_log(path)
    for reason, count in log.left_out.items():
        note(f"{count:,} jobs left out: {reason}")
    return log


def _walltime_s(text: str | None) -> float | None:
    from advisor.core.errors import InputError
    from recommender.queue.job_log_fields import parse_walltime_s

    try:
        return None if text is None else parse_walltime_s(text)
    except ValueError as error:
        raise InputError(f"--walltime: {error}.") from error
