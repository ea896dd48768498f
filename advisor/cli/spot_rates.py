"""``advisor spot``: how often spot machines go away, from one's own log of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.common import chosen_format
from advisor.cli.help_lines import WholeLines
from advisor.cli.shared_options import FormatOption, JsonOption
from advisor.report.printing import Format, print_document

app = typer.Typer(
    cls=WholeLines, help="How often spot machines go away, from a log of them.", no_args_is_help=True
)


@app.callback()
def _group() -> None:
    """With one command only, typer would make it the group itself."""


@app.command("fit")
def fit(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="CSV with columns time and event, and machine and zone where they differ. Events: up, down, "
            "requested, started, preempted, ended.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep what it tells: for the setting spot.history.")
    ] = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Show the rates of each machine, corrected by its class; the file holds no rows of the log."""
    from advisor.cli.listening import TERMINAL
    from advisor.report.spot_rates import fit_document
    from advisor.service.spot_history import fit_spot

    print_document(fit_document(fit_spot(log, out, TERMINAL)), chosen_format(output, as_json))
