"""``advisor compare``: two plans for one job, line by line."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli.common import chosen_format
from advisor.cli.option_groups import OfferOptions, ScriptOptions, with_groups
from advisor.cli.recommend_options import DataOptions, JobOptions
from advisor.cli.shared_options import (
    AllowVendorOption,
    ArgumentsArgument,
    FormatOption,
    JsonOption,
    LocalGpuOption,
    OriginGpuOption,
    PolicyOption,
    SourceArgument,
)
from advisor.report.printing import Format, print_document

_PLAN = "an id of a recommendation, or words: p4d.24xlarge, 'g6.12xlarge spot', L4:4, local."


@with_groups
def compare(
    source: SourceArgument,
    a: Annotated[str, typer.Argument(metavar="A", help=f"A plan: {_PLAN}")],
    b: Annotated[str, typer.Argument(metavar="B", help="The plan beside it, named in the same way.")],
    arguments: ArgumentsArgument = None,
    *,
    job: JobOptions,
    local_gpu: LocalGpuOption = None,
    origin_gpu: OriginGpuOption = None,
    offers: OfferOptions,
    data_set: DataOptions,
    policy: PolicyOption = None,
    allow_vendor: AllowVendorOption = None,
    script: ScriptOptions,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Show two plans for a job line by line, and say what decides between them.

    Exits with 4 if neither does the job.
    """
    from advisor.cli.common import settings_with
    from advisor.cli.listening import TERMINAL, warn
    from advisor.report.comparison import comparison_document
    from advisor.report.words import sentences
    from advisor.service.recommend.comparing import CompareRequest, check_feasible
    from advisor.service.recommend.comparing import compare as compared
    from advisor.service.recommend.question import RecommendRequest
    from advisor.service.traces import TraceRequest

    trace = TraceRequest(
        source=source, arguments=tuple(arguments or ()), origin_gpu=origin_gpu, world_size=script.world
    )
    asked = RecommendRequest(
        trace=trace,
        job=job.job(),
        vendors=("nvidia", *(allow_vendor or ())),
        policies=tuple(policy or ()),
        num_nodes=offers.nodes,
        what_if=(),
    )
    config = settings_with(
        local__gpu=local_gpu, **offers.settings(), **data_set.settings(), **script.settings()
    )
    answer = compared(CompareRequest(a=a, b=b, job=asked), config, TERMINAL)
    warn(sentences(answer.warnings))
    print_document(comparison_document(answer), chosen_format(output, as_json))
    check_feasible(answer)
