"""``advisor profile``: script -> trace file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.common import (
    ArgumentsArgument,
    FormatOption,
    JsonOption,
    PythonOption,
    TimeoutOption,
    chosen_format,
)
from advisor.report.rows import Format


def profile(
    script: Annotated[Path, typer.Argument(help="The training script, as it is.")],
    arguments: ArgumentsArgument = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write the trace; default: SCRIPT.trace.json.gz.")
    ] = None,
    python: PythonOption = None,
    timeout: TimeoutOption = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Run a script without a GPU until one steady iteration is known, and write it to a file."""
    from advisor.cli.common import profile_script, settings_with, warn
    from advisor.errors import InputError
    from advisor.report.trace import print_trace
    from advisor.trace_io import write_trace

    config = settings_with(profile__python=python, profile__timeout=timeout)
    path = out or Path(f"{script.stem}.trace.json.gz")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} for the trace: make it first.")
    trace = profile_script(script, arguments, config)
    write_trace(trace, path)
    warn(trace.warnings)
    print_trace(trace, path, chosen_format(output, as_json))
