"""Time per iteration and memory of a script on GPUs of the catalog."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import InputError
from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import TimeOfUnsupportedGpu
from advisor.core.gpus import load_gpus, parse_gpu_request
from advisor.core.values import WHOLE, Confirmation, IterationEstimate, Layout, Split, Trace
from advisor.edits.patch import batch_options, read_script
from advisor.formats.user_files import read_text
from advisor.service.listening import Listener
from advisor.service.recommend.past_runs import past_runs
from advisor.service.traces import TraceRequest, check_exists, holds_data, trace_of

if TYPE_CHECKING:
    from advisor.config.layers import Config, TracingSettings
    from advisor.config.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictRequest:
    """What to predict, and where."""

    trace: TraceRequest
    gpus: tuple[str, ...] = ()
    """GPUs or families with counts, such as ``A100:8``; none for all of NVIDIA's in the catalog."""
    split: Split = WHOLE
    confirm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictAnswer:
    """Estimates, the fastest first, the trace they rest on, what makes some doubtful, a batch confirmed."""

    trace: Trace
    estimates: tuple[IterationEstimate, ...]
    doubts: tuple[Finding, ...]
    confirmed: Confirmation | None = None


def check(request: PredictRequest) -> None:
    """Refuse what cannot be meant, before settings are read and a script is started.

    Raises:
        InputError: there is no such script, or a number of GPUs cannot be read.
        UnknownGpuError: a name that no GPU and no family has.
    """
    for text in request.gpus:
        parse_gpu_request(text)
    check_exists(request.trace.source)


def predict(request: PredictRequest, config: Config, listener: Listener) -> PredictAnswer:
    """Estimate one iteration on each GPU and number of them.

    Raises:
        InputError: more GPUs than any machine has, or as `trace_of`.
        UnknownGpuError: a name that no GPU and no family has.
        ProfileError: the script yields no iteration.
    """
    from advisor.predict.iteration import predict_counts
    from recommender.outcome.reasons import why_unsupported

    check(request)
    catalog = load_gpus()
    wanted = layouts_of(request.gpus, _own_sizes(config.settings), listener)
    if not wanted:
        wanted = {name: {ONE: None} for name, spec in catalog.items() if spec.vendor == "NVIDIA"}
    if request.confirm:
        check_confirmable(request.trace, sum(map(len, wanted.values())), listener)
    trace = _trace(request, config, listener)
    _say_alone(trace, wanted, listener)
    past = past_runs(config.settings.predict, config.settings.store, listener)

    def of(profiled: Trace) -> list[IterationEstimate]:
        return [
            estimate
            for name, layouts in wanted.items()
            for estimate in predict_counts(
                profiled,
                catalog[name],
                list(layouts),
                correction=past.corrections.get(name),
                split=request.split,
            )
        ]

    estimates = of(trace)
    estimates.sort(key=lambda e: (e.iteration_s.p50, e.gpu, e.num_gpus))
    why_not = {name: why for name in wanted if (why := why_unsupported(catalog[name])) is not None}
    # Times of hardware that no software of today runs on are only of historical interest.
    unsupported = (TimeOfUnsupportedGpu(gpu=name, why=why) for name, why in why_not.items())
    doubts = (*unsupported, *past.drifts_on(wanted))
    confirmed = None
    if request.confirm:
        confirmed = confirmation_of(
            request.trace, trace, estimates[0], lambda again: of(again)[0], config.tracing, listener
        )
    return PredictAnswer(trace=trace, estimates=tuple(estimates), doubts=doubts, confirmed=confirmed)


def _trace(request: PredictRequest, config: Config, listener: Listener) -> Trace:
    """A script takes minutes, so counts are checked before; a saved trace knows its own world."""
    is_script = not holds_data(request.trace.source)
    if is_script:
        _check_counts(_own_sizes(config.settings), request.gpus, request.trace.world_size)
    trace = trace_of(request.trace, config.tracing, listener)
    if not is_script:
        _check_counts(_own_sizes(config.settings), request.gpus, trace.world_size)
    return trace


def _say_alone(trace: Trace, wanted: Mapping[str, Mapping[Layout, None]], listener: Listener) -> None:
    """That a script of several processes is predicted on one GPU, which would hold all of it."""
    if (world := trace.world_size or 1) > 1 and all(set(layouts) == {ONE} for layouts in wanted.values()):
        named = f"{next(iter(wanted))}:{world}"
        listener.note(
            f"profiled as one of {world:,} processes, predicted on one GPU alone ({named} means all)"
        )


def _check_counts(own_sizes: Sequence[int], texts: Sequence[str], world: int | None) -> None:
    """Refuse more GPUs than any machine has, one's own included, unless whole nodes make them.

    Fewer may be one's own machine, whatever clouds rent. ``world`` is what the trace was recorded in.

    Raises InputError: names the largest machine.
    """
    counted = [request for request in map(parse_gpu_request, texts) if request.counts]
    most = most_in_one(own_sizes) if counted else 0
    for request in counted:
        count = request.counts[-1]
        layouts = [layout_of(gpu.name, count, request.num_nodes) for gpu in request.gpus]
        if count not in (world, *range(most + 1)) and all(layout.num_nodes == 1 for layout in layouts):
            raise InputError(
                f"no machine has as many GPUs as {request.text!r} asks for, nor do whole nodes: write numbers"
                f" from 1 to {most}, or nodes as {request.gpus[0].name}:8x4 does, or set a larger machine of"
                " your own (local.num_gpus, clusters)."
            )


def check_confirmable(request: TraceRequest, num_gpus: int, listener: Listener) -> None:
    """Refuse what cannot be profiled again.

    Raises InputError: there is no script, or more than one GPU is asked about.
    """
    name = listener.name_of("confirm")
    if holds_data(request.source):
        raise InputError(f"{name} profiles the script again, and {str(request.source)!r} is a saved trace.")
    if num_gpus != 1:
        raise InputError(f"{name} is for one GPU, whose largest batch it profiles: name one, such as L4.")


def confirmation_of(
    request: TraceRequest,
    trace: Trace,
    estimate: IterationEstimate,
    predicted: Callable[[Trace], IterationEstimate],
    tracing: TracingSettings,
    listener: Listener,
) -> Confirmation:
    """What the script needs with the largest batch that is likely to fit.

    Args:
        predicted: the estimate of another trace there.

    Raises:
        InputError: nothing fits, or the script does not take its batch as an argument.
        ProfileError: the script yields no iteration with that batch.
    """
    from advisor.predict.largest_batch import arguments_of_largest

    largest, options = estimate.largest_batch, _batch_options(request.source)
    arguments = None if largest is None else arguments_of_largest(trace, largest, options)
    if arguments is None:
        raise InputError(
            f"{listener.name_of('confirm')}: the batch of {trace.script!r} cannot be set: no argument or"
            " option has its size and a name with 'batch', or not even a batch of one fits. Name the batch"
            " among the arguments of the script."
        )
    again = trace_of(replace(request, arguments=tuple(arguments)), tracing, listener)
    return Confirmation(arguments=tuple(arguments), batch_size=again.batch_size, estimate=predicted(again))


ONE = Layout(gpus_per_node=1)


def layouts_of(
    texts: Sequence[str], own_sizes: Sequence[int], listener: Listener
) -> dict[str, dict[Layout, None]]:
    """GPU name -> layouts to predict, of texts such as ``A100:1..8``, ``A100:16`` or ``H100:8x4``.

    What a machine of one's own has (``own_sizes``) is one node, whatever clouds rent. Of a family those count
    that do it.

    Raises:
        UnknownGpuError: a name that no GPU and no family has.
        InputError: a number that cannot be read.
    """
    layouts: dict[str, dict[Layout, None]] = {}
    most_own, most = max(own_sizes), most_in_one(own_sizes)
    for request in map(parse_gpu_request, texts):
        if len(request.gpus) > 1:
            listener.note(f"{request.text!r} means {', '.join(spec.name for spec in request.gpus)}")
        for spec in request.gpus:
            of_gpu = layouts.setdefault(spec.name, {})
            for count in request.counts or (1,):
                num_nodes = request.num_nodes or (1 if count <= most_own else None)
                layout = layout_of(spec.name, count, num_nodes)
                if len(request.gpus) == 1 or layout.gpus_per_node <= most:
                    of_gpu[layout] = None
    return {gpu: of_gpu for gpu, of_gpu in layouts.items() if of_gpu}


def most_in_one(own_sizes: Sequence[int]) -> int:
    """GPUs of the largest machine, rented or of one's own."""
    from advisor.pricing.instance_types import load_instances

    return max(*own_sizes, *(machine.num_gpus for machine in load_instances().values()))


def _own_sizes(settings: Settings) -> list[int]:
    return [settings.local.num_gpus, *(cluster.num_gpus for cluster in settings.clusters)]


def layout_of(gpu: str, num_gpus: int, num_nodes: int | None = None) -> Layout:
    """So many GPUs: in one machine, or where none has as many, in whole ones of the largest.

    Args:
        num_nodes: how many there shall be; None for as few as will do.
    """
    from advisor.pricing.instance_types import load_instances
    from advisor.pricing.node_counts import fabric_of

    machines = [machine for machine in load_instances().values() if machine.gpu == gpu]
    if num_nodes is None:
        largest = max([machine.num_gpus for machine in machines], default=num_gpus)
        num_nodes = num_gpus // largest if num_gpus > largest and num_gpus % largest == 0 else 1
    gpus_per_node = num_gpus // num_nodes
    fabrics = [
        fabric_of(machine.provider, machine.instance_type, load_gpus()[gpu])
        for machine in machines
        if machine.num_gpus == gpus_per_node
    ]
    # Of machines alike the slowest network counts, and of networks an unknown one last.
    slowest = min(fabrics, key=lambda fabric: fabric.network_bytes_per_s or math.inf, default=None)
    fabric = slowest if num_nodes > 1 else None
    return Layout(gpus_per_node=gpus_per_node, num_nodes=num_nodes, fabric=fabric)


def _batch_options(source: object) -> dict[str, int]:
    """What the script's text says of the options that are its batch; none where it cannot be read."""
    try:
        return batch_options(read_script(read_text(Path(str(source)), kind="script"), str(source)))
    except InputError:
        return {}
