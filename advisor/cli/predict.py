"""``advisor predict``: time per iteration and memory on GPUs of the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.cli.common import (
    ArgumentsArgument,
    BackendOption,
    FakeDataOption,
    FormatOption,
    GpuOption,
    JsonOption,
    OriginGpuOption,
    PythonOption,
    SamplesOption,
    SandboxOption,
    SourceArgument,
    TimeoutOption,
    WorldOption,
    chosen_format,
)
from advisor.report.printing import Format, print_document

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.core.values import GpuSpec


def predict(
    source: SourceArgument,
    arguments: ArgumentsArgument = None,
    gpu: GpuOption = None,
    origin_gpu: OriginGpuOption = None,
    python: PythonOption = None,
    timeout: TimeoutOption = None,
    backend: BackendOption = None,
    fake_data: FakeDataOption = None,
    samples: SamplesOption = None,
    world: WorldOption = None,
    sandbox: SandboxOption = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Predict time per iteration and memory of a script on GPUs; all of the catalog by default."""
    from advisor.cli.common import check_exists, holds_data, load_trace, settings_with, warn
    from advisor.core.gpus import load_gpus
    from advisor.predict.iteration import predict_counts
    from advisor.report.estimates import estimates_document
    from advisor.service.offers import wanted_counts

    catalog = load_gpus()
    wanted = wanted_counts(gpu or ())
    if not wanted:
        wanted = {name: set() for name, spec in catalog.items() if spec.vendor == "NVIDIA"}
    config = settings_with(
        profile__python=python,
        profile__timeout=timeout,
        profile__backend=backend,
        profile__fake_data=fake_data,
        profile__samples=samples,
        profile__sandbox=sandbox,
    )
    check_exists(source)
    # A script takes minutes; what is wrong is told before. A saved trace knows its own world.
    is_script = not holds_data(source)
    if is_script:
        _check_counts(config, gpu or (), world)
    trace = load_trace(source, arguments, config, origin_gpu=origin_gpu, world=world)
    if not is_script:
        _check_counts(config, gpu or (), trace.world_size)
    estimates = [
        estimate
        for name, counts in wanted.items()
        for estimate in predict_counts(trace, catalog[name], sorted(counts or {1}))
    ]
    estimates.sort(key=lambda e: (e.iteration_s.p50, e.gpu, e.num_gpus))
    trace = replace(trace, warnings=(*trace.warnings, *_unsupported(catalog[name] for name in wanted)))
    warn(trace.warnings)
    print_document(estimates_document(trace, estimates), chosen_format(output, as_json))


def _check_counts(config: Config, texts: Sequence[str], world: int | None) -> None:
    """Refuse more GPUs than any machine has, one's own included: an estimate is of one machine.

    Fewer may be one's own machine, whatever clouds rent. ``world`` is what the trace was recorded in.

    Raises:
        InputError: names the largest machine.
    """
    from advisor.core.errors import InputError
    from advisor.core.gpus import parse_gpu_request

    counted = [request for request in map(parse_gpu_request, texts) if request.counts]
    most = _largest_machine(config) if counted else 0
    for request in counted:
        if request.counts[-1] > most and request.counts[-1] != world:
            raise InputError(
                f"no machine has as many GPUs as {request.text!r} asks for: write numbers from 1 to {most},"
                " or set a larger machine of your own (local.num_gpus, clusters)."
            )


def _largest_machine(config: Config) -> int:
    from advisor.pricing.catalog.instance_types import load_instances

    settings = config.settings
    own = (settings.local.num_gpus, *(cluster.num_gpus for cluster in settings.clusters))
    rented = (machine.num_gpus for machine in load_instances().values())
    return max(*own, *rented)


def _unsupported(gpus: Iterable[GpuSpec]) -> Iterator[str]:
    """Times of hardware that no software of today runs on are only of historical interest: say so."""
    from advisor.report.words import sentence
    from recommender.plans.software import why_unsupported

    for gpu in gpus:
        if (why := why_unsupported(gpu)) is not None:
            yield f"{gpu.name}: {sentence(why)}; its time is what the hardware could do"
