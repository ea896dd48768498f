"""``advisor diff``: the price tag of a change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.common import chosen_format
from advisor.cli.option_groups import OfferOptions, ScriptOptions, with_groups
from advisor.cli.shared_options import (
    ArgumentsArgument,
    FormatOption,
    GpusOption,
    IterationsOption,
    IterationsPerEpochOption,
    JsonOption,
    PolicyOption,
)
from advisor.report.printing import Format, print_document


@with_groups
def diff(
    base: Annotated[
        str,
        typer.Argument(metavar="BASE", help="Script, trace or REVISION:PATH before, such as main:train.py."),
    ],
    head: Annotated[str, typer.Argument(metavar="HEAD", help="The same after, such as train.py.")],
    arguments: ArgumentsArgument = None,
    *,
    epochs: Annotated[float | None, typer.Option(metavar="N", help="How many epochs a run trains.")] = None,
    iterations: IterationsOption = None,
    iterations_per_epoch: IterationsPerEpochOption = None,
    fail_above: Annotated[
        str | None,
        typer.Option(metavar="PERCENT", help="Exit with 5 if a run gets dearer by more than this: 10%."),
    ] = None,
    gpu: GpusOption = None,
    offers: OfferOptions,
    policy: PolicyOption = None,
    script: ScriptOptions,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Say what a change of a script costs: dollars a run, memory, and which operators did it.

    Exits with 4 if nothing does the job after the change, with 5 above --fail-above.
    """
    from advisor.cli.common import settings_with
    from advisor.cli.listening import TERMINAL, warn
    from advisor.core.values import Job
    from advisor.report.diff import diff_document
    from advisor.report.words import sentences
    from advisor.service.recommend.diffing import DiffRequest, check_threshold, parse_share
    from advisor.service.recommend.diffing import diff as compared
    from advisor.service.recommend.question import RecommendRequest
    from advisor.service.traces import TraceRequest

    most_more = None if fail_above is None else parse_share("--fail-above", fail_above)
    job = RecommendRequest(
        trace=TraceRequest(source=Path(head), arguments=tuple(arguments or ()), world_size=script.world),
        job=Job(epochs=epochs, iterations=iterations, iterations_per_epoch=iterations_per_epoch),
        gpus=tuple(gpu or ()),
        policies=tuple(policy or ()),
        what_if=(),
        num_nodes=offers.nodes,
    )
    config = settings_with(**offers.settings(), **script.settings())
    answer = compared(DiffRequest(base=base, head=head, job=job), config, TERMINAL)
    profiled = dict.fromkeys((*answer.base.warnings, *answer.head.warnings))
    warn(sentences((*profiled, *answer.warnings)))
    print_document(diff_document(answer), chosen_format(output, as_json))
    check_threshold(answer, most_more)
