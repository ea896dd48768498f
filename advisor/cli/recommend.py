"""``advisor recommend``: the main job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.common import chosen_format
from advisor.cli.delivering import Outlet, PreviewOption, ToOption, check_delivered, outlet
from advisor.cli.option_groups import OfferOptions, ScriptOptions, with_groups
from advisor.cli.recommend_options import DataOptions, JobOptions, ViewOptions
from advisor.cli.shared_options import (
    AllowVendorOption,
    ArgumentsArgument,
    FormatOption,
    GpusOption,
    JsonOption,
    LocalGpuOption,
    OriginGpuOption,
    PolicyOption,
    SourceArgument,
)
from advisor.report.printing import Format, check_page_path

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.delivery.posting import Delivery
    from advisor.report.document import Document
    from advisor.service.recommend.recommending import RecommendAnswer

RecordOption = Annotated[
    bool | None,
    typer.Option(
        "--record/--no-record",
        help="Keep what is recommended in the database, and print its id.",
        show_default=False,
    ),
]
ProjectOption = Annotated[
    str, typer.Option(metavar="NAME", help="Whose budget it is, for --record.", show_default=False)
]


@with_groups
def recommend(
    source: SourceArgument,
    arguments: ArgumentsArgument = None,
    *,
    job: JobOptions,
    gpu: GpusOption = None,
    local_gpu: LocalGpuOption = None,
    origin_gpu: OriginGpuOption = None,
    offers: OfferOptions,
    data_set: DataOptions,
    policy: PolicyOption = None,
    allow_vendor: AllowVendorOption = None,
    view: ViewOptions,
    record: RecordOption = None,
    project: ProjectOption = "",
    to: ToOption = None,
    preview: PreviewOption = False,
    script: ScriptOptions,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Rank where to run a training script: this machine, your cluster, AWS and GCP.

    Exits with 4 if nothing meets memory, budget and deadline, with 3 if the policy removes everything.
    """
    from advisor.cli.common import settings_with
    from advisor.cli.listening import TERMINAL
    from advisor.service.recommend.question import RecommendRequest
    from advisor.service.recommend.recommending import check
    from advisor.service.recommend.recommending import recommend as recommended
    from advisor.service.traces import TraceRequest

    view.check()
    request = RecommendRequest(
        trace=TraceRequest(
            source=source, arguments=tuple(arguments or ()), origin_gpu=origin_gpu, world_size=script.world
        ),
        job=job.job(),
        gpus=tuple(gpu or ()),
        vendors=("nvidia", *(allow_vendor or ())),
        policies=tuple(policy or ()),
        project=project,
        what_if=view.changes,
        patch=view.patch,
        num_nodes=offers.nodes,
    )
    check(request, TERMINAL)
    if view.html is not None:
        check_page_path(view.html)
    config = settings_with(
        local__gpu=local_gpu,
        store__record=record,
        **offers.settings(),
        **data_set.settings(),
        **script.settings(),
    )
    out = outlet("recommend", to, preview=preview)
    out.check(config)
    answer = recommended(request, config, TERMINAL)
    output = chosen_format(output, as_json)
    deliveries = _show(answer, view, out, config, output)
    # Shown first: a database that is down takes nothing away from the answer.
    if answer.entry_id is not None:
        _keep(answer, config, project, output)
    check_delivered(deliveries)


def _show(
    answer: RecommendAnswer, view: ViewOptions, out: Outlet, config: Config, output: Format
) -> list[Delivery]:
    from advisor.cli.answer import show
    from advisor.report.recommendation import subject_of
    from advisor.report.words import sentences

    subject = subject_of(answer.recommendation)
    warnings = sentences(answer.recommendation.warnings)
    asked = f"top {view.num_rows}"
    deliveries: list[Delivery] = []

    def hand_out(document: Document) -> None:
        sent = out.hand_out(document, output, config, subject=subject, warnings=warnings, asked=asked)
        deliveries.extend(sent)

    show(answer, view, output, hand_out)
    return deliveries


def _keep(answer: RecommendAnswer, config: Config, project: str, output: Format) -> None:
    from advisor.cli.listening import note
    from advisor.report.plain import print_lines
    from advisor.service.recommend.ledger_entries import keep_recommendation

    keep_recommendation(answer, config, project, arguments=sys.argv[1:])
    (print_lines if output is Format.TABLE else note)(f"Recorded as {answer.entry_id}.")
