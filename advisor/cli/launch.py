"""``advisor launch``: start what `recommend --emit` wrote."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.common import option, settings_with
from advisor.cli.listening import TERMINAL
from advisor.core.errors import InputError
from advisor.report.plain import print_aside, print_lines, print_text

if TYPE_CHECKING:
    from advisor.config.settings import Settings
    from advisor.service.recommend.recommending import RecommendAnswer
    from advisor.service.traces import TraceRequest


def launch(
    file: Annotated[Path, typer.Argument(help="What `recommend --emit KIND` wrote.", metavar="FILE")],
    yes: Annotated[bool, option("Start it without asking.", "--yes", "-y")] = False,
    dry_run: Annotated[bool, option("Show what would be started, and start nothing.", "--dry-run")] = False,
) -> None:
    """Start a job file that `advisor recommend --emit` wrote, by the tool that it is for.

    Shows the file and the command, asks, and keeps a receipt of a job that it sees to its end.
    """
    from advisor.report.printing import Format, text_of
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


def print_job_file(
    answer: RecommendAnswer, kind: str, wanted: str | None, trace: TraceRequest, settings: Settings
) -> None:
    """The file that starts the recommended option, or the one that was named.

    Raises InputError: there is no such option, nothing is recommended, or this kind cannot start it.
    """
    from advisor.cli.answer import find
    from advisor.core.findings.about_estimates import StartOnNodes, StartWithTorchrun
    from advisor.report.words import sentences
    from advisor.service.job_files import job_file
    from advisor.service.launching import handoff_of

    ranked = answer.recommendation
    option = ranked.chosen if wanted is None else find(ranked, wanted)
    if option is None:
        raise InputError("nothing is recommended, so nothing can be started.")
    handoff = handoff_of(answer, option, trace, settings.profile, settings.spot)
    # How to start it is what the file itself says.
    work = [one for one in option.script_changes if not isinstance(one, StartOnNodes | StartWithTorchrun)]
    whole = replace(handoff, to_do=tuple(sentences(work)))
    print_text(job_file(whole, kind).rstrip())
