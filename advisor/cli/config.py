"""``advisor init`` and ``advisor config show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.common import chosen_format
from advisor.cli.help_lines import WholeLines
from advisor.cli.shared_options import FormatOption, JsonOption
from advisor.report.printing import Format, print_document

app = typer.Typer(
    cls=WholeLines, help="Settings and where each comes from.", no_args_is_help=True, rich_markup_mode=None
)


def init(
    project: Annotated[
        bool, typer.Option("--project", help="Write .advisor.yaml here instead of the user's file.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a first settings file, every line commented out and explained."""
    from advisor.config.layers import PROJECT_FILE, user_file
    from advisor.core.errors import InputError
    from advisor.core.files import write_atomically
    from advisor.report.plain import print_lines
    from advisor.report.settings import template

    path = Path(PROJECT_FILE) if project else user_file()
    if path.exists() and not force:
        raise InputError(f"{str(path)!r} is already there: edit it, or overwrite it with --force.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, template().encode(), private=True)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}.") from error
    print_lines(f"wrote {path}: uncomment what you want to change")


@app.command("show")
def show(output: FormatOption = Format.TABLE, as_json: JsonOption = False) -> None:
    """Print every setting, its value and the layer that set it."""
    from advisor.cli.common import settings_with
    from advisor.report.settings import settings_document

    print_document(settings_document(settings_with()), chosen_format(output, as_json))
