"""``advisor catalog build``: live prices as a dated snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.common import chosen_format
from advisor.cli.help_lines import WholeLines
from advisor.cli.shared_options import FormatOption, JsonOption
from advisor.report.printing import Format, print_document

app = typer.Typer(cls=WholeLines, help="Dated snapshots of prices.")


@app.callback()
def _catalog() -> None:
    pass


@app.command("build")
def build(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the snapshot goes.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace a snapshot although the new one looks wrong beside it.")
    ] = False,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Write the live prices that were pulled last as a snapshot, for machines without a network.

    It is checked against the snapshot in the folder before it takes its place.
    """
    from advisor.cli.common import settings_with
    from advisor.cli.listening import TERMINAL
    from advisor.report.prices import built_document
    from advisor.service.prices.live import write_snapshot

    built = write_snapshot(out, settings_with(), TERMINAL, is_forced=force)
    print_document(built_document(built), chosen_format(output, as_json))
