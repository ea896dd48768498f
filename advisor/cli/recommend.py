"""``advisor recommend``, ``predict``, ``profile``, ``compare`` and ``diff``: commands that take a script."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli import options
from advisor.cli.common import option, settings_with
from advisor.cli.listening import TERMINAL
from advisor.cli.recipe import RecipeOption, SizeOptions, Subject
from advisor.cli.sending import Outlet, PreviewOption, ToOption, check_delivered, outlet
from advisor.core.changes import parse_split
from advisor.core.errors import InputError
from advisor.core.files import check_can_be_file
from advisor.core.values import Job
from advisor.report.plain import print_lines
from advisor.report.printing import Format, print_document

if TYPE_CHECKING:
    from advisor.cli.launch_lines import LaunchLine
    from advisor.delivery.posting import Delivery
    from advisor.report.document import Document
    from advisor.service.recommend.recommending import RecommendAnswer
    from advisor.service.traces import TraceRequest


RecordOption = Annotated[
    bool | None,
    option(
        "Keep what is recommended in the database, and print its id.",
        "--record/--no-record",
        show_default=False,
    ),
]
ProjectOption = Annotated[
    str, option("Project whose budget it counts against, for --record.", metavar="NAME", show_default=False)
]


def recommend(
    source: Annotated[
        Path | None, typer.Argument(help="A training script or a saved trace.", metavar="SCRIPT_OR_TRACE")
    ] = None,
    arguments: options.ArgumentsArgument = None,
    *,
    recipe: RecipeOption = None,
    sizes: SizeOptions,
    job: options.JobOptions,
    gpu: options.GpusOption = None,
    local_gpu: options.LocalGpuOption = None,
    origin_gpu: options.OriginGpuOption = None,
    offers: options.OfferOptions,
    data_set: options.DataOptions,
    policy: options.PolicyOption = None,
    allow_vendor: options.AllowVendorOption = None,
    view: options.ViewOptions,
    record: RecordOption = None,
    project: ProjectOption = "",
    to: ToOption = None,
    preview: PreviewOption = False,
    script: options.ScriptOptions,
    output: options.OutputOptions = options.AS_TABLE,
) -> None:
    """Rank where to run a training script: this machine, your cluster, AWS and GCP.

    Exits with 4 if nothing meets memory, budget and deadline, with 3 if the policy removes everything.
    """
    from advisor.service.recommend.ledger_entries import keep_recommendation
    from advisor.service.recommend.recommending import RecommendRequest, check
    from advisor.service.recommend.recommending import recommend as recommended

    form = output.form
    view.check(form)
    subject = Subject(source=source, recipe=recipe, sizes=sizes)
    with (
        subject.script(samples=script.samples, offline=offers.offline) as path,
        script_request(
            path, arguments, world_size=subject.world(script.world), origin_gpu=origin_gpu
        ) as trace,
    ):
        request = RecommendRequest(
            trace=trace,
            job=subject.job(job.job()),
            gpus=tuple(gpu or ()),
            vendors=("nvidia", *(allow_vendor or ())),
            policies=tuple(policy or ()),
            project=project,
            what_if=view.changes,
            patch=view.patch,
            num_nodes=offers.nodes,
        )
        check(request, TERMINAL)
        if view.emit is not None:
            from advisor.service.launching import script_to_start

            script_to_start(trace.source)
        if view.html is not None:
            check_can_be_file(view.html, "the page")
        flags = {**offers.settings(), **data_set.settings(), **script.settings()}
        config = settings_with(local__gpu=local_gpu, store__record=record, **subject.settings(flags))
        out = outlet("recommend", to, config.settings, preview=preview)
        answer = recommended(request, config, TERMINAL)
    asked_of = recipe or str((source or Path()).resolve())
    if view.explain is not None:
        from advisor.cli.answer import meant_by

        view = replace(view, explain=meant_by(view.explain, asked_of, answer.recommendation))
    deliveries: list[Delivery] = []
    try:
        if view.emit is not None:
            from advisor.cli.answer import print_job_file

            print_job_file(answer, view.emit, view.explain, request.trace, config.settings)
        else:
            deliveries = _show(answer, view, out, form, asked_of=asked_of)
    finally:
        # Shown first: a database that is down takes nothing away from the answer. An answer that cannot be
        # shown as asked is kept, too.
        if answer.entry_id is not None:
            keep_recommendation(answer, config.settings.store, project, arguments=sys.argv[1:])
            is_table = form is Format.TABLE and view.emit is None
            (print_lines if is_table else TERMINAL.note)(f"Recorded as {answer.entry_id}.")
    check_delivered(deliveries)


def _show(
    answer: RecommendAnswer, view: options.ViewOptions, out: Outlet, output: Format, *, asked_of: str
) -> list[Delivery]:
    from advisor.cli.answer import remember_rows, show
    from advisor.report.recommendation import subject_of
    from advisor.report.words import sentences

    subject = subject_of(answer.recommendation)
    warnings = sentences(answer.recommendation.warnings)
    asked = f"top {view.num_rows}"
    deliveries: list[Delivery] = []

    def hand_out(document: Document) -> None:
        sent = out.hand_out(document, output, subject=subject, warnings=warnings, asked=asked)
        deliveries.extend(sent)

    if view.explain is None and output not in (Format.JSON, Format.CSV) and not out.channels:
        remember_rows(asked_of, answer.recommendation, view)
    show(answer, view, hand_out)
    return deliveries


ConfirmOption = Annotated[
    bool, option("Profile the script again with the largest batch that fits; for one GPU.", "--confirm")
]


def predict(
    source: options.SourceArgument,
    arguments: options.ArgumentsArgument = None,
    *,
    gpu: options.GpusOption = None,
    origin_gpu: options.OriginGpuOption = None,
    loader_s_per_sample: options.LoaderOption = None,
    suppose: options.SupposeOption = None,
    confirm: ConfirmOption = False,
    script: options.ScriptOptions,
    output: options.OutputOptions = options.AS_TABLE,
) -> None:
    """Predict time per iteration and memory of a script on GPUs; all of the catalog by default."""
    from advisor.report.estimates import estimates_document
    from advisor.service.predicting import PredictRequest, check
    from advisor.service.predicting import predict as predicted

    split = parse_split(suppose or (), "--suppose")
    with script_request(source, arguments, world_size=script.world, origin_gpu=origin_gpu) as trace:
        request = PredictRequest(trace=trace, gpus=tuple(gpu or ()), split=split, confirm=confirm)
        check(request)
        config = settings_with(input__loader_s_per_sample=loader_s_per_sample, **script.settings())
        answer = predicted(request, config, TERMINAL)
    TERMINAL.warn((*answer.trace.warnings, *answer.doubts))
    document = estimates_document(answer.trace, answer.estimates, answer.doubts, answer.confirmed)
    print_document(document, output.form)


def profile(
    script: Annotated[
        Path | None, typer.Argument(help="The training script, as it is.", metavar="SCRIPT")
    ] = None,
    arguments: options.ArgumentsArgument = None,
    *,
    out: Annotated[Path | None, option("Where to write the trace; default: SCRIPT.trace.json.gz.")] = None,
    from_kineto: Annotated[
        Path | None, option("Instead: a profile that torch.profiler exported.", metavar="FILE")
    ] = None,
    origin_gpu: options.OriginGpuOption = None,
    as_: Annotated[
        str | None,
        option(
            "The GPU that the script sees; A100-SXM-80GB by default.",
            "--as",
            metavar="GPU",
            autocompletion=options.gpu_names,
        ),
    ] = None,
    how: options.ScriptOptions,
    output: options.OutputOptions = options.AS_TABLE,
) -> None:
    """Run a script until one steady iteration is known, with or without a GPU, and write it to a file."""
    from advisor.formats.trace_files import write_trace
    from advisor.report.estimates import trace_document
    from advisor.report.words import in_names
    from advisor.service.traces import profile_script, read_export

    config = settings_with(**how.settings())
    source = from_kineto or script
    if source is None or (from_kineto and script):
        raise InputError("give either a script or --from-kineto FILE.")
    if from_kineto and how.world is not None:
        raise InputError("--world is for scripts: what --from-kineto reads was recorded in its own world.")
    with script_request(source, arguments, world_size=how.world, pretended_gpu=as_) as request:
        path = out or Path(f"{Path(str(request.source)).name.partition('.')[0]}.trace.json.gz")
        check_can_be_file(path, "the trace")
        if from_kineto is None:
            trace = profile_script(request, config.settings.profile, TERMINAL)
        else:
            trace = read_export(from_kineto, origin_gpu, TERMINAL)
    write_trace(trace, path, words=in_names)
    TERMINAL.warn(trace.warnings)
    print_document(trace_document(trace, path), output.form)


_PLAN = "an id of a recommendation, or words: p4d.24xlarge, 'g6.12xlarge spot', L4:4, local."


def compare(
    source: options.SourceArgument,
    a: Annotated[str, typer.Argument(metavar="A", help=f"A plan: {_PLAN}")],
    b: Annotated[str, typer.Argument(metavar="B", help="The plan beside it, named in the same way.")],
    arguments: options.ArgumentsArgument = None,
    *,
    job: options.JobOptions,
    local_gpu: options.LocalGpuOption = None,
    origin_gpu: options.OriginGpuOption = None,
    offers: options.OfferOptions,
    data_set: options.DataOptions,
    policy: options.PolicyOption = None,
    allow_vendor: options.AllowVendorOption = None,
    script: options.ScriptOptions,
    output: options.OutputOptions = options.AS_TABLE,
) -> None:
    """Show two plans for a job line by line, and say what decides between them.

    Exits with 4 if neither does the job.
    """
    from advisor.report.plan_comparison import comparison_document
    from advisor.service.recommend.comparing import check_feasible
    from advisor.service.recommend.comparing import compare as compared
    from advisor.service.recommend.recommending import RecommendRequest
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
    answer = compared(a, b, asked, config, TERMINAL)
    TERMINAL.warn(answer.warnings)
    print_document(comparison_document(answer), output.form)
    check_feasible(answer)


def diff(
    base: Annotated[
        str,
        typer.Argument(metavar="BASE", help="Script, trace or REVISION:PATH before, such as main:train.py."),
    ],
    head: Annotated[str, typer.Argument(metavar="HEAD", help="The same after, such as train.py.")],
    arguments: options.ArgumentsArgument = None,
    *,
    epochs: Annotated[float | None, option("How many epochs a run trains.", metavar="N")] = None,
    iterations: options.IterationsOption = None,
    iterations_per_epoch: options.IterationsPerEpochOption = None,
    fail_above: Annotated[
        str | None, option("Exit with 5 if a run gets dearer by more than this: 10%.", metavar="PERCENT")
    ] = None,
    gpu: options.GpusOption = None,
    offers: options.OfferOptions,
    policy: options.PolicyOption = None,
    script: options.ScriptOptions,
    output: options.OutputOptions = options.AS_TABLE,
) -> None:
    """Say what a change of a script costs: dollars a run, memory, and which operators did it.

    Exits with 4 if nothing does the job after the change, with 5 above --fail-above.
    """
    from advisor.report.plan_comparison import diff_document
    from advisor.service.recommend.comparing import check_threshold, parse_share
    from advisor.service.recommend.comparing import diff as compared
    from advisor.service.recommend.recommending import RecommendRequest
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
    answer = compared(base, head, job, config, TERMINAL)
    profiled = dict.fromkeys((*answer.base.warnings, *answer.head.warnings))
    TERMINAL.warn((*profiled, *answer.warnings))
    print_document(diff_document(answer), output.form)
    check_threshold(answer, most_more)


@contextmanager
def script_request(
    source: Path,
    arguments: Sequence[str] | None,
    *,
    world_size: int | None,
    origin_gpu: str | None = None,
    pretended_gpu: str | None = None,
) -> Iterator[TraceRequest]:
    """What to profile, as long as it is needed: of a notebook, the code in a temporary file.

    Args:
        source: script, trace, notebook, or the first word of a command (torchrun, python, run.sh).
        arguments: of the script, or the other words of the command.
        world_size: processes to profile as; if None, those that the command starts.

    Raises InputError: no script is in the command, or the notebook cannot be read.
    """
    from advisor.cli.launch_lines import LaunchLine, is_launch_line
    from advisor.service.traces import TraceRequest

    line = LaunchLine(script=source, arguments=tuple(arguments or ()))
    if is_launch_line(str(source)):
        line = _read(line, world_size)
    with _python_file(line) as (script, variables):
        yield TraceRequest(
            source=script,
            arguments=line.arguments,
            origin_gpu=origin_gpu,
            pretended_gpu=pretended_gpu,
            world_size=world_size or line.world_size,
            python=Path(line.python) if line.python else None,
            variables=variables,
        )


def _read(typed: LaunchLine, world_size: int | None) -> LaunchLine:
    from advisor.cli.launch_lines import read_launch_line

    line = read_launch_line((str(typed.script), *typed.arguments))
    words, num_processes = " ".join((str(line.script), *line.arguments)), world_size or line.world_size
    TERMINAL.note(f"profiling {words}" + (f" as one of {num_processes} processes" if num_processes else ""))
    return line


@contextmanager
def _python_file(line: LaunchLine) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """The script and its variables; a notebook's code imports from the notebook's folder."""
    if line.script.suffix != ".ipynb":
        yield line.script, line.variables
        return
    from advisor.cli.launch_lines import notebook_script

    folders = str(line.script.parent.resolve()), os.environ.get("PYTHONPATH")
    with notebook_script(line.script) as script:
        yield script, {**line.variables, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
