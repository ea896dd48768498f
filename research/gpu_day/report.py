"""Predictions beside what a day measured."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.core.errors import AdvisorError
from advisor.core.gpus import resolve_gpu
from advisor.core.values import GpuSpec, MemoryUse, Op, Precision, Trace
from advisor.formats.recording_files import Measurement, Recording, read_recording
from advisor.formats.trace_files import SCHEMA_VERSION, read_trace, write_trace
from advisor.operators.convolution import is_channels_last
from advisor.operators.registry import family_of
from advisor.predict.constants import constants_for
from advisor.predict.iteration import predict
from advisor.predict.knowledge import shipped
from advisor.predict.methods import op_times
from advisor.profile import pretend, profile_callable

from .lines import recording_of
from .results import Chain, Results, Sustained, TimedStep, Watched, read_day
from .steps import Step, build, run

Profile = Callable[[Step], Trace]
# What was concluded of a day, beside its file.
FINDINGS = "findings.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A step with what is predicted for it."""

    timed: TimedStep
    predicted_s: float
    is_inside: bool
    phases_s: Mapping[str, float]
    peak_bytes: int | None

    @property
    def error(self) -> float:
        """Relative, above 0 where the prediction is too slow."""
        return self.predicted_s / self.timed.wall_s - 1


def report(folders: Sequence[Path], traces: Path | None = None) -> str:
    """Markdown of one day, or of several with one board; a folder's ``findings.md`` follows the first table.

    Raises:
        ValueError: a folder holds no day, or a damaged one.
        UnknownGpuError: the board is not in the catalog.
    """
    results = read_day(*folders)
    gpu = resolve_gpu(results.device)
    judged, failed = judge(results.steps, gpu, lambda step: profiled(step, gpu, traces))
    kernels = [read_recording(path) for path in map(recording_of, folders) if path]
    texts = [
        path.read_text(encoding="utf-8") for path in (each / FINDINGS for each in folders) if path.exists()
    ]
    return page(results, gpu, judged, kernels, failed, findings="\n".join(texts))


def profiled(step: Step, gpu: GpuSpec, traces: Path | None = None) -> Trace:
    """The step's profile on a GPU that is not there; kept in a folder if there is one.

    Raises:
        ProfileError: it cannot be profiled here.
    """
    # cuDNN's choice of algorithms is no part of a profile.
    plain = replace(step, benchmark=False)
    kept = traces / (plain.name.replace("/", "-") + ".trace.json.gz") if traces else None
    if kept is not None and kept.exists():
        return read_trace(kept)
    trace = profile_callable(
        run, setup=lambda: build(plain, "cuda"), batch_size=step.batch, gpu=pretend(gpu.name)
    )
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_trace(trace, kept)
    return trace


def judge(steps: Sequence[TimedStep], gpu: GpuSpec, profile: Profile) -> tuple[list[Judged], dict[str, str]]:
    """Each step with its prediction, and those that cannot be profiled here with the reason."""
    judged, failed = [], {}
    for timed in steps:
        try:
            trace = profile(timed.step)
            estimate = predict(trace, gpu).iteration_s
        except AdvisorError as error:
            failed[timed.step.name] = str(error).partition("\n")[0]
            continue
        judged.append(
            Judged(
                timed=timed,
                predicted_s=estimate.p50,
                is_inside=estimate.p10 <= timed.wall_s <= estimate.p90,
                phases_s=_phases(trace, gpu),
                peak_bytes=trace.memory.peak_bytes,
            )
        )
    return judged, failed


def _phases(trace: Trace, gpu: GpuSpec) -> Mapping[str, float]:
    """Seconds of the GPU alone by phase."""
    knowledge = shipped()
    seconds: Counter[str] = Counter()
    for time in op_times(trace, gpu, constants_for(gpu, knowledge), knowledge):
        seconds[time.op.phase.value] += time.time_s  # type: ignore[assignment]
    return {phase: float(value) for phase, value in seconds.items()}


def page(
    results: Results,
    gpu: GpuSpec,
    judged: Sequence[Judged],
    kernels: Sequence[Recording],
    failed: Mapping[str, str],
    *,
    findings: str = "",
) -> str:
    """Markdown."""
    parts = [
        [f"# A day with the {results.device}", "", "Written by `python -m research.gpu_day report`.", ""],
        _summary(judged),
        findings.splitlines(),
        _steps(judged),
        _kernels(kernels, gpu),
        _chains(results.chains),
        _sustained(results.sustained),
        _reasons("Not measured", results.skipped),
        _reasons("Not predicted", failed),
    ]
    return "\n".join(line for part in parts for line in part).rstrip() + "\n"


def _summary(judged: Sequence[Judged]) -> Iterator[str]:
    if not judged:
        return
    yield from ("## Steps: error by kind", "", "| steps | mean | median | worst | bias | inside p10..p90 |")
    yield "|---|---|---|---|---|---|"
    kinds: dict[str, list[Judged]] = {"all": list(judged)}
    for one in judged:
        step = one.timed.step
        for kind in (step.precision, step.layout, f"cuDNN's benchmark {'on' if step.benchmark else 'off'}"):
            kinds.setdefault(kind, []).append(one)
    for kind, own in kinds.items():
        errors = [one.error for one in own]
        sizes = list(map(abs, errors))
        inside = sum(one.is_inside for one in own)
        yield (
            f"| {kind} | {statistics.mean(sizes):.1%} | {statistics.median(sizes):.1%} | {max(sizes):.0%} "
            f"| {statistics.mean(errors):+.1%} | {inside} of {len(own)} |"
        )
    yield ""


def _steps(judged: Sequence[Judged]) -> Iterator[str]:
    if not judged:
        return
    yield from (
        "## Steps",
        "",
        "Times in ms; phases are forward, backward and optimizer; `out` of p10..p90.",
        "",
    )
    yield (
        "| step | measured | predicted | error | phases | predicted, GPU alone | peak GB | predicted "
        "| clock, power |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for one in judged:
        timed = one.timed
        yield (
            f"| {timed.step.name} | {_ms(timed.wall_s)} | {_ms(one.predicted_s)} "
            f"| {one.error:+.0%}{'' if one.is_inside else ' out'} | {_three(timed.phases_s)} "
            f"| {_three(one.phases_s)} | {_gb(timed.peak_bytes)} | {_gb(one.peak_bytes)} "
            f"| {_said(timed.watched)} |"
        )
    yield ""


def _kernels(recordings: Sequence[Recording], gpu: GpuSpec) -> Iterator[str]:
    """Errors of kernels alone, by family and dtype."""
    if not recordings:
        return
    by_kind: dict[str, dict[str, list[float]]] = {}
    for kind, operator, ratio in _ratios(recordings, gpu):
        by_kind.setdefault(kind, {}).setdefault(operator, []).append(ratio)
    yield from ("## Kernels: predicted over measured", "")
    yield "| kernels | number | p10 | median | p90 | mean error | operator furthest off (its median) |"
    yield "|---|---|---|---|---|---|---|"
    for kind, by_operator in sorted(by_kind.items()):
        ratios = [ratio for own in by_operator.values() for ratio in own]
        low, middle, high = _quantiles(ratios)
        error = statistics.mean(abs(ratio - 1) for ratio in ratios)
        medians = {name: statistics.median(own) for name, own in by_operator.items()}
        worst = max(medians, key=lambda name: abs(math.log(medians[name])))
        yield (
            f"| {kind} | {len(ratios)} | {low:.2f} | {middle:.2f} | {high:.2f} | {error:.0%} "
            f"| {worst} ({medians[worst]:.2f}) |"
        )
    num_skipped = sum(len(recording.skipped) for recording in recordings)
    yield from ("", f"{num_skipped} cases could not be measured.", "")


def _ratios(recordings: Sequence[Recording], gpu: GpuSpec) -> Iterator[tuple[str, str, float]]:
    """Family and dtype, operator, predicted over measured seconds: of each kernel."""
    knowledge = shipped()
    constants = constants_for(gpu, knowledge)
    by_precision: dict[Precision, list[Measurement]] = {}
    for kernel in (kernel for recording in recordings for kernel in recording.measurements):
        by_precision.setdefault(kernel.precision, []).append(kernel)
    for precision, kernels in by_precision.items():
        ops = tuple(replace(kernel.op, measured_s=None) for kernel in kernels)
        times = op_times(_trace_of(ops, precision), gpu, constants, knowledge)
        for kernel, time in zip(kernels, times, strict=True):
            dtype = kernel.op.inputs[0].dtype if kernel.op.inputs else ""
            kind = f"{_family(kernel.op)} {'TF32' if precision.tf32_matmul else dtype}"
            yield kind, kernel.op.name.removeprefix("aten::"), time.time_s / kernel.time_s


def _family(op: Op) -> str:
    """Convolutions by what they are."""
    word = family_of(op).word
    if word != "convolution":
        return word
    groups = op.attributes.get("groups", 1)
    grouped = "grouped " if isinstance(groups, int) and groups > 1 else ""
    layout = "channels_last" if is_channels_last(op.inputs[0]) else "contiguous"
    return f"{grouped}convolution {len(op.inputs[0].shape) - 2}-D {layout}"


def _trace_of(ops: tuple[Op, ...], precision: Precision) -> Trace:
    return Trace(
        schema_version=SCHEMA_VERSION, script="kernels", arguments=(), backend="fake", origin_gpu=None,
        versions={}, precision=precision, batch_size=None, samples_per_epoch=None, iterations_per_epoch=None,
        accumulation=1, ops=ops, iteration_s=None, data_loading_s=None, num_workers=None,
        collectives=(), warnings=(),
        memory=MemoryUse(
            parameter_bytes=None, gradient_bytes=None, optimizer_bytes=None, activation_bytes=None,
            peak_bytes=None,
        ),
    )  # fmt: skip


def _chains(chains: Sequence[Chain]) -> Iterator[str]:
    if chains:
        yield from (
            "## Host",
            "",
            "Microseconds of a call, its kernel included, in a loop of such calls.",
            "",
        )
        by_kind: dict[str, list[str]] = {}
        for one in chains:
            kind, _, name = one.name.rpartition("/")
            by_kind.setdefault(kind or "other", []).append(f"{name} {1e6 * one.call_s:.1f}")
        yield from (f"- {kind}: {', '.join(each)}" for kind, each in by_kind.items())
        yield ""


def _sustained(runs: Sequence[Sustained]) -> Iterator[str]:
    if runs:
        yield from (
            "## Sustained",
            "",
            "| work | s | ms at first | ms at last | slower | at first | at last |",
        )
        yield "|---|---|---|---|---|---|---|"
        for one in runs:
            yield (
                f"| {one.name} | {one.lasted_s:.0f} | {_ms(one.first_s)} | {_ms(one.last_s)} "
                f"| {one.last_s / one.first_s - 1:+.1%} | {_said(one.first)} | {_said(one.last)} |"
            )
        yield ""


def _reasons(title: str, reasons: Mapping[str, str]) -> Iterator[str]:
    if reasons:
        yield from (f"## {title}", "")
        yield from (f"- {name}: {reason}" for name, reason in reasons.items())
        yield ""


def _quantiles(values: Sequence[float]) -> tuple[float, float, float]:
    import numpy as np

    low, middle, high = np.quantile(values, [0.1, 0.5, 0.9]).tolist()
    return low, middle, high


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None or math.isnan(seconds) else f"{1e3 * seconds:.4g}"


def _gb(num_bytes: int | None) -> str:
    return "-" if num_bytes is None else f"{num_bytes / 1e9:.1f}"


def _three(phases_s: Mapping[str, float]) -> str:
    return ", ".join(_ms(phases_s.get(name)) for name in ("forward", "backward", "optimizer"))


def _said(seen: Watched) -> str:
    if seen.sm_hz is None:
        return "-"
    watts = "" if seen.power_w is None else f", {seen.power_w:.0f} W"
    return f"{seen.sm_hz / 1e6:.0f} MHz{watts}" + (f", reasons {seen.reasons:#x}" if seen.reasons else "")
