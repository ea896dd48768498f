"""How the loading of data goes together with the GPU."""

from __future__ import annotations

from advisor.core.findings import Code
from advisor.core.units import format_duration
from advisor.report.words.table import Words


def input_bound(*, loading_s: float, num_workers: int, cpu_s: float, gpu_s: float | None) -> str:
    """The GPU waits for the workers."""
    takes = _with_workers(loading_s, num_workers, cpu_s, gpu_s)
    return f"input-bound: {takes}: a faster GPU will not help, more workers will"


def input_nearly_bound(*, loading_s: float, num_workers: int, cpu_s: float, gpu_s: float | None) -> str:
    """The GPU may wait for the workers."""
    takes = _with_workers(loading_s, num_workers, cpu_s, gpu_s)
    return f"nearly input-bound: {takes}: on a slower CPU the GPU waits"


def _with_workers(loading_s: float, num_workers: int, cpu_s: float, gpu_s: float | None) -> str:
    workers = f"{num_workers} worker" + ("s" if num_workers > 1 else "")
    beside = "" if gpu_s is None else f", the GPU {format_duration(gpu_s)}"
    loading, work = format_duration(loading_s), format_duration(cpu_s)
    return (
        f"loading takes {loading} per iteration with {workers} ({work} of CPU work on the machine that"
        f" profiled){beside}"
    )


def input_in_turn(*, loading_s: float, gpu_s: float | None) -> str:
    """The main process loads, then computes."""
    then = "" if gpu_s is None else f", then takes {format_duration(gpu_s)}"
    return (
        f"loading takes {format_duration(loading_s)} per iteration in the main process (on the machine that"
        f" profiled) and the GPU waits{then}: num_workers in the DataLoader would overlap them"
    )


def input_bound_alone(*, loading_s: float, gpu_s: float | None) -> str:
    """The main process loads, which takes longer than to compute."""
    return f"input-bound: {input_in_turn(loading_s=loading_s, gpu_s=gpu_s)}"


def input_rate(*, samples_per_s: float) -> str:
    """What loading must reach."""
    return f"the input pipeline must deliver {samples_per_s:,.0f} samples/s"


def too_few_cpus(*, num_workers: int, num_vcpus: int, loading_s: float) -> str:
    """The workers of all GPUs share too few cores."""
    return (
        f"{num_workers} loading workers share {num_vcpus} vCPUs: loading takes"
        f" {format_duration(loading_s)} per iteration there, longer than the time shown"
    )


INPUT: Words = {
    Code.INPUT_BOUND: input_bound,
    Code.INPUT_BOUND_ALONE: input_bound_alone,
    Code.INPUT_IN_TURN: input_in_turn,
    Code.INPUT_NEARLY_BOUND: input_nearly_bound,
    Code.INPUT_RATE: input_rate,
    Code.TOO_FEW_CPUS: too_few_cpus,
}
