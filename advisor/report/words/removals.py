"""Why an option is removed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from advisor.core.findings import Code
from advisor.core.units import HOUR_S, format_bytes, format_duration, format_usd
from advisor.report.remedies import remedy_text
from advisor.report.words.table import Words


def sharding(*, num_ranks: int, num_gpus: int) -> str:
    """The trace is of another number of ranks; how to profile as many."""
    return f"{of_rank(num_ranks)}: profile with --world {num_gpus} for {num_gpus}"


def of_rank(num_ranks: int) -> str:
    """Whose trace it is, of a script that divides its model."""
    if num_ranks == 1:
        return "the script divides its model, and was profiled alone"
    return f"the trace is of one of {num_ranks:,} ranks that share the model"


def memory(
    *,
    needed_bytes: float,
    available_bytes: float,
    fitting_share: float | None,
    batch_size: int | None,
    fitting_batch_size: int | None,
    remedies: Sequence[Mapping[str, Any]],
) -> str:
    """What lacks, what would fit, and the change that costs the least time."""
    fix = _what_would_fit(fitting_share, batch_size, fitting_batch_size)
    need, has = format_bytes(needed_bytes), format_bytes(available_bytes)
    cheapest = "".join(f"; the least slow change: {remedy_text(one)}" for one in remedies[:1])
    return f"does not fit: needs {need}, the GPU has {has}; {fix}{cheapest}"


def _what_would_fit(share: float | None, batch_size: int | None, fitting: int | None) -> str:
    if share is None:
        return "profile the script to learn what would fit"
    if not share:
        return "weights, gradients and optimizer state alone do not fit"
    if batch_size is None or fitting is None:
        return f"a batch of about {share:.0%} of this one would fit"
    if fitting < 1:
        return "not even a batch of one fits"
    return f"a batch of {fitting} instead of {batch_size} would fit"


def quota(
    *, num_vcpus: int, most_vcpus: int, instance_types: Sequence[str], region: str, provider: str
) -> str:
    """What the account may start, against what the machine has."""
    return (
        f"over the quota: it has {num_vcpus} vCPU, and {most_vcpus} are allowed for"
        f" {' '.join(instance_types)} in {region}; ask {provider} for more"
    )


def spot(
    *,
    training_h: float,
    cost_usd: float,
    checkpoint_interval_h: float | None,
    on_demand_h: float,
    best: Mapping[str, float] | None,
) -> str:
    """What preemptions make of it, and what the best checkpoint interval would."""
    every = "without checkpoints"
    if checkpoint_interval_h is not None:
        every = f"with a checkpoint every {format_duration(checkpoint_interval_h * HOUR_S)}"
    better = ""
    if best is not None:
        interval, hours = format_duration(best["checkpoint_interval_h"] * HOUR_S), best["training_h"]
        better = f"; with one every {interval}: {_hours(hours)} and {format_usd(best['cost_usd'])}"
    return (
        f"refused: {_hours(training_h)} of training and {format_usd(cost_usd)} are expected {every}, against"
        f" {_hours(on_demand_h)} on demand{better}"
    )


def _hours(hours: float) -> str:
    return f"{hours:,.1f} h" if math.isfinite(hours) else "more than a century"


def budget(*, cost_usd: float, budget_usd: float, p: float) -> str:
    """What it costs, and the odds that it costs no more than allowed."""
    return (
        f"over budget: {format_usd(cost_usd)} in the median, within {format_usd(budget_usd)} with p {p:.2f}"
    )


def attention(*, gpu: str, backends: Sequence[str], dtype: str, head_size: int) -> str:
    """Which kernels are allowed, and which call none of them takes there."""
    allowed = " or ".join(backends) if backends else "no kernel"
    return (
        f"the script allows attention by {allowed} alone, which cannot run it on {gpu} ({dtype}, heads of"
        f" {head_size}): PyTorch would raise an error; allow math or another kernel (sdpa_kernel)"
    )


def deadline(*, time_s: float, deadline_s: float, p: float) -> str:
    """How long it takes, and the odds that it is done in time."""
    median, limit = format_duration(time_s), format_duration(deadline_s)
    return f"too late: {median} in the median, within {limit} with p {p:.2f}"


REMOVALS: Words = {
    Code.MEMORY: memory,
    Code.SHARDING: sharding,
    Code.SOFTWARE: (
        "no PyTorch 2 build for CUDA 12 or later runs on compute capability {compute_capability}"
    ),
    Code.ATTENTION: attention,
    Code.QUOTA: quota,
    Code.SPOT: spot,
    Code.BUDGET: budget,
    Code.DEADLINE: deadline,
    Code.POLICY: "{rule} ({file}): {detail}",
}
