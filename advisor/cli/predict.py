"""``advisor predict``: time per iteration and memory on GPUs of the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
from advisor.report.rows import Format

if TYPE_CHECKING:
    from advisor.types import GpuSpec


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
    from advisor.cli.common import load_trace, settings_with, warn
    from advisor.cli.offers import wanted_counts
    from advisor.gpus import load_gpus
    from advisor.predict import predict_counts
    from advisor.report.estimates import print_estimates

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
    trace = load_trace(source, arguments, config, origin_gpu=origin_gpu, world=world)
    estimates = [
        estimate
        for name, counts in wanted.items()
        for estimate in predict_counts(trace, catalog[name], sorted(counts or {1}))
    ]
    estimates.sort(key=lambda e: (e.iteration_s.p50, e.gpu, e.num_gpus))
    trace = replace(trace, warnings=(*trace.warnings, *_unsupported(catalog[name] for name in wanted)))
    warn(trace.warnings)
    print_estimates(trace, estimates, chosen_format(output, as_json))


def _unsupported(gpus: Iterable[GpuSpec]) -> Iterator[str]:
    """Times of hardware that no software of today runs on are only of historical interest: say so."""
    from recommender.software import why_unsupported

    for gpu in gpus:
        if (why := why_unsupported(gpu)) is not None:
            yield f"{gpu.name}: {why}; its time is what the hardware could do"
