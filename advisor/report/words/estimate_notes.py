"""What is said of estimates: memory, input, their sources, and why an option is removed."""

import math
from collections.abc import Mapping
from typing import Any

from advisor.core.findings import about_estimates, about_options
from advisor.core.units import HOUR_S, format_bytes, format_duration, format_usd
from advisor.report.words.sentences import in_names

_CHANGES = {
    "accumulation": "smaller batches with accumulation",
    "autocast": "autocast to 16 bits",
    "bf16-weights": "weights and optimizer state in bf16",
    "8-bit-optimizer": "an 8-bit optimizer",
    "lora": "fine-tuning adapters alone (LoRA)",
    "qlora": "fine-tuning adapters beside weights of 4 bits (QLoRA)",
    "checkpointing": "activation checkpointing",
    "zero-1": "sharding the optimizer (ZeRO-1)",
    "zero-2": "sharding optimizer and gradients (ZeRO-2)",
    "zero-3": "sharding the model (FSDP, ZeRO-3)",
    "hybrid": "sharding the model within each node (hybrid FSDP)",
}


def remedy_text(remedy: Mapping[str, Any]) -> str:
    """A change after which it fits, what it then needs, and what that costs in time."""
    changes = " and ".join(_CHANGES[change] for change in remedy["changes"])
    return f"{changes} ({format_bytes(remedy['needed_bytes'])}, {remedy['slower']:.2f} times as long)"


@in_names.register
def _(it: about_options.RemovedBySharding) -> str:
    return f"{of_rank(it.num_ranks)}: profile with --world {it.num_gpus} for {it.num_gpus}"


def of_rank(num_ranks: int) -> str:
    """Whose trace it is, of a script that divides its model."""
    if num_ranks == 1:
        return "the script divides its model, and was profiled alone"
    return f"the trace is of one of {num_ranks:,} ranks that share the model"


@in_names.register
def _(it: about_options.RemovedByMemory) -> str:
    fix = _what_would_fit(it.fitting_share, it.batch_size, it.fitting_batch_size)
    need, has = format_bytes(it.needed_bytes), format_bytes(it.available_bytes)
    cheapest = "".join(f"; the least slow change: {remedy_text(one)}" for one in it.remedies[:1])
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


@in_names.register
def _(it: about_options.RemovedByQuota) -> str:
    return (
        f"over the quota: it has {it.num_vcpus} {it.unit}, and {it.most_vcpus} are allowed for"
        f" {' '.join(it.instance_types)} in {it.region}; ask {it.provider} for more"
    )


@in_names.register
def _(it: about_options.RemovedBySpot) -> str:
    every = "without checkpoints"
    if it.checkpoint_interval_h is not None:
        every = f"with a checkpoint every {format_duration(it.checkpoint_interval_h * HOUR_S)}"
    better = ""
    if it.best is not None:
        interval, hours = format_duration(it.best["checkpoint_interval_h"] * HOUR_S), it.best["training_h"]
        better = f"; with one every {interval}: {_hours(hours)} and {format_usd(it.best['cost_usd'])}"
    return (
        f"refused: {_hours(it.training_h)} of training and {format_usd(it.cost_usd)} are expected {every},"
        f" against {_hours(it.on_demand_h)} on demand{better}"
    )


def _hours(hours: float) -> str:
    return f"{hours:,.1f} h" if math.isfinite(hours) else "more than a century"


@in_names.register
def _(it: about_options.RemovedByAttention) -> str:
    allowed = " or ".join(it.backends) if it.backends else "no kernel"
    return (
        f"the script allows attention by {allowed} alone, which cannot run it on {it.gpu} ({it.dtype}, heads"
        f" of {it.head_size}): PyTorch would raise an error; allow math or another kernel (sdpa_kernel)"
    )


@in_names.register
def _(it: about_estimates.BatchNotProfiled) -> str:
    takes = f"each GPU takes {it.share:.3g} of the samples that were profiled"
    if it.batch == 1:
        return f"{takes}, in as many passes less or more"
    follows = "takes as much longer" if it.batch > 1 else f"shrinks by the power {it.exponent:g} of the batch"
    return f"{takes}: batches of this size were not profiled, and their time {follows}"


@in_names.register
def _(it: about_estimates.CalibratedRates) -> str:
    reached = ", ".join(f"{family} {share:.2f}" for family, share in sorted(it.reached_share.items()))
    return f"calibrated: of the learned rate this GPU reaches {reached}"


@in_names.register
def _(it: about_estimates.RooflineConstants) -> str:
    named = [
        f"{name} ({', '.join(rates)})" if rates else name for name, rates in it.rates_by_constant.items()
    ]
    return f"roofline constants, {in_names(it.source)}: {', '.join(named)}"


@in_names.register
def _(it: about_estimates.OtherWorld) -> str:
    return (
        f"{of_rank(it.num_ranks)}, so time and memory on {it.num_gpus} are unknown: the time is that of the"
        f" recorded rank. Profile with --world {it.num_gpus}"
    )


@in_names.register
def _(it: about_estimates.PowerLimited) -> str:
    draws = f"each GPU may draw {it.limit_w:g} of {it.tdp_w:g} W"
    if it.slowdown is None:
        return f"{draws}, which is not counted: this GPU was calibrated, under a limit that is not known"
    return f"{draws}: what its cores bind takes {it.slowdown - 1:.0%} longer, by what other boards lose"


@in_names.register
def _(it: about_estimates.NotLearned) -> str:
    named = [f"some {family}" if family in it.partly else family for family in it.families]
    return f"by the roofline, not learned: {', '.join(named)}"


@in_names.register
def _(it: about_estimates.CorrectedByReceipts) -> str:
    runs = "1 run" if it.num_runs == 1 else f"{it.num_runs:,} runs"
    jobs = "1 job" if it.num_jobs == 1 else f"{it.num_jobs:,} jobs"
    off = abs(it.factor - 1)
    moved = "by nothing" if off < 0.005 else f"{off:.0%} {'longer' if it.factor > 1 else 'shorter'}"
    return (
        f"{moved} after {runs} of {jobs} of yours on this GPU, its band {it.band:.0%} as wide"
        " (predict.receipts)"
    )


@in_names.register
def _(it: about_estimates.Drift) -> str:
    took = f"{abs(it.ratio - 1):.0%} {'longer' if it.ratio > 1 else 'shorter'}"
    return (
        f"the last {it.num_runs} runs on {it.gpu} took {took} than predicted (median), {it.num_outside} of"
        " them outside their intervals: look for a change of the machines or of the software"
    )


@in_names.register
def _(it: about_options.InputBound) -> str:
    if it.by == "main-process":
        then = "" if it.gpu_s is None else f", then takes {format_duration(it.gpu_s)}"
        return (
            f"{'input-bound: ' if it.is_bound else ''}loading takes {format_duration(it.loading_s)} per"
            f" iteration in the main process (on the machine that profiled) and the GPU waits{then}: workers"
            " of a DataLoader would overlap them"
        )
    rate = "" if it.samples_per_s is None else f" ({it.samples_per_s:,.0f} samples/s)"
    beside = "" if it.gpu_s is None else f", the GPU {format_duration(it.gpu_s)}"
    return (
        f"{'' if it.is_bound else 'nearly '}input-bound: loading takes {format_duration(it.loading_s)} per"
        f" iteration{rate} with {_loaders(it.num_workers, it.vcpus_per_gpu)}, {format_duration(it.cpu_s)} of"
        f" CPU{beside}{'' if it.is_bound else ': on slower vCPUs the GPU waits'}"
    )


def _loaders(num_workers: int | None, vcpus_per_gpu: float | None) -> str:
    """Whatever is fewer."""
    has_few = vcpus_per_gpu is not None and (num_workers is None or vcpus_per_gpu < num_workers)
    number, word = (vcpus_per_gpu, "vCPU") if has_few else (num_workers, "worker")
    return f"{number or 0:g} {word}{'' if number == 1 else 's'} for each GPU"


@in_names.register
def _(it: about_options.InputAssumed) -> str:
    p10, p50, p90 = (format_duration(it.cpu_s_per_sample[name]) for name in ("p10", "p50", "p90"))
    sized = {"image": "an image of its size", "tokens": "a sequence of its length"}
    return (
        f"how long loading takes was not measured: {sized.get(it.kind, 'a sample of its size')} is assumed"
        f" to take {p50} of a vCPU ({p10} .. {p90}); --loader-s-per-sample replaces it"
    )
