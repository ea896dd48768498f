"""``advisor predict``: time per iteration and memory on GPUs of the catalog."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli.common import chosen_format
from advisor.cli.option_groups import ScriptOptions, with_groups
from advisor.cli.shared_options import (
    ArgumentsArgument,
    FormatOption,
    GpusOption,
    JsonOption,
    LoaderOption,
    OriginGpuOption,
    SourceArgument,
    SupposeOption,
)
from advisor.report.printing import Format, print_document

ConfirmOption = Annotated[
    bool,
    typer.Option("--confirm", help="Profile the script again with the largest batch that fits; for one GPU."),
]


@with_groups
def predict(
    source: SourceArgument,
    arguments: ArgumentsArgument = None,
    *,
    gpu: GpusOption = None,
    origin_gpu: OriginGpuOption = None,
    loader_s_per_sample: LoaderOption = None,
    suppose: SupposeOption = None,
    confirm: ConfirmOption = False,
    script: ScriptOptions,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Predict time per iteration and memory of a script on GPUs; all of the catalog by default."""
    from advisor.cli.common import settings_with
    from advisor.cli.listening import TERMINAL, warn
    from advisor.core.changes import parse_split
    from advisor.report.estimates import estimates_document
    from advisor.report.words import sentences
    from advisor.service.predicting import PredictRequest, check
    from advisor.service.predicting import predict as predicted
    from advisor.service.traces import TraceRequest

    trace = TraceRequest(
        source=source, arguments=tuple(arguments or ()), origin_gpu=origin_gpu, world_size=script.world
    )
    request = PredictRequest(
        trace=trace, gpus=tuple(gpu or ()), split=parse_split(suppose or (), "--suppose"), confirm=confirm
    )
    check(request)
    config = settings_with(
        input__loader_s_per_sample=loader_s_per_sample,
        **script.settings(),
    )
    answer = predicted(request, config, TERMINAL)
    warn(sentences((*answer.trace.warnings, *answer.doubts)))
    document = estimates_document(answer.trace, answer.estimates, answer.doubts, answer.confirmed)
    print_document(document, chosen_format(output, as_json))
