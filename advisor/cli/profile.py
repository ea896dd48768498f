"""``advisor profile``: script -> trace file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.common import chosen_format
from advisor.cli.completion import gpu_names
from advisor.cli.option_groups import ScriptOptions, with_groups
from advisor.cli.shared_options import (
    ArgumentsArgument,
    FormatOption,
    JsonOption,
    OriginGpuOption,
)
from advisor.report.printing import Format, print_document


@with_groups
def profile(
    script: Annotated[
        Path | None, typer.Argument(help="The training script, as it is.", metavar="SCRIPT")
    ] = None,
    arguments: ArgumentsArgument = None,
    *,
    out: Annotated[
        Path | None, typer.Option(help="Where to write the trace; default: SCRIPT.trace.json.gz.")
    ] = None,
    from_kineto: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead: a profile that torch.profiler exported."),
    ] = None,
    origin_gpu: OriginGpuOption = None,
    as_: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="GPU",
            help="The GPU the script is told it has; A100-SXM-80GB by default.",
            autocompletion=gpu_names,
        ),
    ] = None,
    how: ScriptOptions,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Run a script until one steady iteration is known, with or without a GPU, and write it to a file."""
    from advisor.cli.common import settings_with
    from advisor.cli.listening import TERMINAL, warn
    from advisor.core.errors import InputError
    from advisor.formats.trace_files import write_trace
    from advisor.report.trace import trace_document
    from advisor.report.words import in_names, sentences
    from advisor.service.traces import TraceRequest, profile_script, read_export

    config = settings_with(**how.settings())
    source = from_kineto or script
    if source is None or (from_kineto and script):
        raise InputError("give either a script or --from-kineto FILE.")
    if from_kineto and how.world is not None:
        raise InputError("--world is for scripts: what --from-kineto reads was recorded in its own world.")
    path = out or Path(f"{source.name.partition('.')[0]}.trace.json.gz")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} for the trace: make it first.")
    if from_kineto is None:
        request = TraceRequest(
            source=source, arguments=tuple(arguments or ()), pretended_gpu=as_, world_size=how.world
        )
        trace = profile_script(request, config.settings.profile, TERMINAL)
    else:
        trace = read_export(from_kineto, origin_gpu, TERMINAL)
    write_trace(trace, path, words=in_names)
    warn(sentences(trace.warnings))
    print_document(trace_document(trace, path), chosen_format(output, as_json))
