"""Time per iteration and memory of a script on GPUs of the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.core.errors import InputError
from advisor.core.findings import Finding
from advisor.core.findings.estimates import TimeOfUnsupportedGpu
from advisor.core.values import WHOLE, Confirmation, GpuSpec, IterationEstimate, Split, Trace
from advisor.service.confirming import check_confirmable, confirmation_of
from advisor.service.recommend.input_settings import with_input
from advisor.service.traces import TraceRequest, check_exists, holds_data, trace_of

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.service.listening import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictRequest:
    """What to predict, and where.

    Attributes:
        trace: the script.
        gpus: GPUs or families with counts, such as ``A100:8``; none for all of NVIDIA's in the catalog.
        split: how the script is supposed to divide its model.
        confirm: profile the script again with the largest batch that fits.
    """

    trace: TraceRequest
    gpus: tuple[str, ...] = ()
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
    from advisor.core.gpus import parse_gpu_request

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
    from advisor.core.gpus import load_gpus
    from advisor.predict.iteration import predict_counts
    from advisor.service.predicted_layouts import ONE, layouts_of
    from advisor.service.recommend.past_runs import past_runs

    check(request)
    catalog = load_gpus()
    wanted = layouts_of(request.gpus, config.settings, listener)
    if not wanted:
        wanted = {name: {ONE: None} for name, spec in catalog.items() if spec.vendor == "NVIDIA"}
    if request.confirm:
        check_confirmable(request.trace, sum(map(len, wanted.values())), listener)
    trace = _trace(request, config, listener)
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
    doubts = (*_unsupported(catalog[name] for name in wanted), *past.drifts_on(wanted))
    confirmed = None
    if request.confirm:
        confirmed = confirmation_of(
            request.trace, trace, estimates[0], lambda again: of(again)[0], config, listener
        )
    return PredictAnswer(trace=trace, estimates=tuple(estimates), doubts=doubts, confirmed=confirmed)


def _trace(request: PredictRequest, config: Config, listener: Listener) -> Trace:
    """A script takes minutes, so counts are checked before; a saved trace knows its own world."""
    is_script = not holds_data(request.trace.source)
    if is_script:
        _check_counts(config, request.gpus, request.trace.world_size)
    trace = trace_of(request.trace, config, listener)
    if not is_script:
        _check_counts(config, request.gpus, trace.world_size)
    return with_input(trace, config.settings.input, listener)


def _check_counts(config: Config, texts: Sequence[str], world: int | None) -> None:
    """Refuse more GPUs than any machine has, one's own included, unless whole nodes make them.

    Fewer may be one's own machine, whatever clouds rent. ``world`` is what the trace was recorded in.

    Raises:
        InputError: names the largest machine.
    """
    from advisor.core.gpus import parse_gpu_request
    from advisor.service.predicted_layouts import layout_of, most_in_one

    counted = [request for request in map(parse_gpu_request, texts) if request.counts]
    most = most_in_one(config.settings) if counted else 0
    for request in counted:
        count = request.counts[-1]
        layouts = [layout_of(gpu.name, count, request.num_nodes) for gpu in request.gpus]
        if count not in (world, *range(most + 1)) and all(layout.num_nodes == 1 for layout in layouts):
            raise InputError(
                f"no machine has as many GPUs as {request.text!r} asks for, nor do whole nodes: write numbers"
                f" from 1 to {most}, or nodes as {request.gpus[0].name}:8x4 does, or set a larger machine of"
                " your own (local.num_gpus, clusters)."
            )


def _unsupported(gpus: Iterable[GpuSpec]) -> Iterator[Finding]:
    """Times of hardware that no software of today runs on are only of historical interest: say so."""
    from recommender.outcome.reasons import why_unsupported

    for gpu in gpus:
        if (why := why_unsupported(gpu)) is not None:
            yield TimeOfUnsupportedGpu(gpu=gpu.name, why=why)
