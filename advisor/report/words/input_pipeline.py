"""How the loading of data goes together with the GPU."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.core.findings import Code
from advisor.core.units import format_duration, format_usd
from advisor.report.words.table import Words


def input_bound(
    *,
    loading_s: float,
    samples_per_s: float | None,
    num_workers: int | None,
    vcpus_per_gpu: float | None,
    cpu_s: float,
    gpu_s: float | None,
) -> str:
    """The GPU waits for the workers."""
    rate = "" if samples_per_s is None else f" ({samples_per_s:,.0f} samples/s)"
    beside = "" if gpu_s is None else f", the GPU {format_duration(gpu_s)}"
    return (
        f"input-bound: loading takes {format_duration(loading_s)} per iteration{rate} with"
        f" {_loaders(num_workers, vcpus_per_gpu)}, {format_duration(cpu_s)} of CPU{beside}"
    )


def input_nearly_bound(
    *,
    loading_s: float,
    samples_per_s: float | None,
    num_workers: int | None,
    vcpus_per_gpu: float | None,
    cpu_s: float,
    gpu_s: float | None,
) -> str:
    """The GPU may wait for the workers."""
    bound = input_bound(
        loading_s=loading_s,
        samples_per_s=samples_per_s,
        num_workers=num_workers,
        vcpus_per_gpu=vcpus_per_gpu,
        cpu_s=cpu_s,
        gpu_s=gpu_s,
    )
    return f"nearly {bound}: on slower vCPUs the GPU waits"


def _loaders(num_workers: int | None, vcpus_per_gpu: float | None) -> str:
    """Whatever is fewer."""
    has_few = vcpus_per_gpu is not None and (num_workers is None or vcpus_per_gpu < num_workers)
    number, word = (vcpus_per_gpu, "vCPU") if has_few else (num_workers, "worker")
    return f"{number or 0:g} {word}{'' if number == 1 else 's'} for each GPU"


def input_in_turn(*, loading_s: float, gpu_s: float | None) -> str:
    """The main process loads, then computes."""
    then = "" if gpu_s is None else f", then takes {format_duration(gpu_s)}"
    return (
        f"loading takes {format_duration(loading_s)} per iteration in the main process (on the machine that"
        f" profiled) and the GPU waits{then}: workers of a DataLoader would overlap them"
    )


def input_bound_alone(*, loading_s: float, gpu_s: float | None) -> str:
    """The main process loads, which takes longer than to compute."""
    return f"input-bound: {input_in_turn(loading_s=loading_s, gpu_s=gpu_s)}"


def input_assumed(*, kind: str, cpu_s_per_sample: Mapping[str, float]) -> str:
    """Nobody measured the loading."""
    p10, p50, p90 = (format_duration(cpu_s_per_sample[name]) for name in ("p10", "p50", "p90"))
    return (
        f"how long loading takes was not measured: {_sample(kind)} is assumed to take {p50} of a vCPU"
        f" ({p10} .. {p90}); --loader-s-per-sample replaces it"
    )


def _sample(kind: str) -> str:
    sized = {"image": "an image of its size", "tokens": "a sequence of its length"}
    return sized.get(kind, "a sample of its size")


def more_vcpus(
    *,
    instance_type: str,
    vcpus_per_gpu: float,
    time_s: float,
    cost_usd: float,
    instead_of_time_s: float,
    instead_of_cost_usd: float,
) -> str:
    """The same GPUs with more vCPUs."""
    return (
        f"what if more vCPUs: {instance_type} has {vcpus_per_gpu:g} for each of the same GPUs,"
        f" {format_duration(time_s)} for {format_usd(cost_usd)} instead of"
        f" {format_duration(instead_of_time_s)} for {format_usd(instead_of_cost_usd)}"
    )


INPUT: Words = {
    Code.MORE_VCPUS: more_vcpus,
    Code.INPUT_ASSUMED: input_assumed,
    Code.INPUT_BOUND: input_bound,
    Code.INPUT_BOUND_ALONE: input_bound_alone,
    Code.INPUT_IN_TURN: input_in_turn,
    Code.INPUT_NEARLY_BOUND: input_nearly_bound,
}
