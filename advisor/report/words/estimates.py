"""What is said of estimates: memory, input, their sources, and why an option is removed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from advisor.core.findings import Code
from advisor.core.units import HOUR_S, MIB, format_bytes, format_duration, format_usd
from advisor.report.words.table import Words

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


def batch_share(*, share: float, batch: float, exponent: float) -> str:
    """What was not profiled, and how its time follows."""
    takes = f"each GPU takes {share:.3g} of the samples that were profiled"
    if batch == 1:
        return f"{takes}, in as many passes less or more"
    follows = "takes as much longer" if batch > 1 else f"shrinks by the power {exponent:g} of the batch"
    return f"{takes}: batches of this size were not profiled, and their time {follows}"


def batch_variation(*, variation: float, waits: bool) -> str:
    """That one step does not stand for all."""
    late = ", and GPUs that draw theirs apart wait for the largest" if waits else ""
    return (
        f"what the batches of a step hold varies by {variation:.0%}, and so does its time{late}; memory is"
        " that of the recorded one, and a larger one needs more"
    )


def calibrated_rates(*, reached_share: Mapping[str, float]) -> str:
    """What a calibration makes of the learned rates, by family."""
    reached = ", ".join(f"{family} {share:.2f}" for family, share in sorted(reached_share.items()))
    return f"calibrated: of the learned rate this GPU reaches {reached}"


def constants(*, source: str, rates_by_constant: Mapping[str, Sequence[str]]) -> str:
    """Which constants come from where; no rates are named where it is all of them."""
    named = [f"{name} ({', '.join(rates)})" if rates else name for name, rates in rates_by_constant.items()]
    return f"roofline constants, {source}: {', '.join(named)}"


def constant_assumed(*, architecture: str | None) -> str:
    """For what it is assumed."""
    return f"assumed for {architecture or 'any GPU'}"


def constant_median(*, architecture: str | None, is_on_slot_power: bool, slot_power_w: float) -> str:
    """Of which GPUs it is the median."""
    whose = f"{architecture} GPUs" if architecture else "GPUs"
    return f"median of the measured {whose} {'up to' if is_on_slot_power else 'above'} {slot_power_w:g} W"


def custom_operators(*, names: Sequence[str]) -> str:
    """Operators that no catalog has."""
    return f"custom operators, only their bytes are known: {', '.join(names)}"


def supposed(*, split: str) -> str:
    """What the script does not do by itself."""
    return (
        f"supposes a script that divides its model ({split}): the one that was profiled does not, and its"
        " time is worked out, not profiled"
    )


def data_parallel(*, bucket_bytes: float, slowdown: float, spread: float) -> str:
    """How gradients are exchanged, and what else several GPUs cost."""
    return (
        f"data parallel: gradients are all-reduced in {bucket_bytes / MIB:g} MiB buckets as backward"
        f" completes them, kernels run {slowdown * 100:.0f} % slower meanwhile; passes of single GPUs vary by"
        f" {spread * 100:.0f} %, and all wait for the slowest"
    )


def sharded(*, num_ranks: int, hides: bool) -> str:
    """What of the exchange of ranks that share a model is hidden."""
    how = (
        "gathers and scatters hide behind computation, but for the first and the last"
        if hides
        else "the recorded collectives, none hidden behind computation"
    )
    return f"sharded over {num_ranks:,} ranks: {how}"


def other_world(*, num_ranks: int, num_gpus: int) -> str:
    """What a trace of another number of ranks leaves unknown."""
    return (
        f"{of_rank(num_ranks)}, so time and memory on {num_gpus} are unknown: the time is that of the"
        f" recorded rank. Profile with --world {num_gpus}"
    )


def kernel_floor(*, kernel_s: float, operator_s: float) -> str:
    """The least that anything takes."""
    kernel_us, operator_us = kernel_s * 1e6, operator_s * 1e6
    return f"each kernel takes {kernel_us:g} us or more, each forward operator {operator_us:g} us of the host"


def launching(*, launching_s: Mapping[str, float]) -> str:
    """How long the host takes to launch a step."""
    p10, p50, p90 = (format_duration(launching_s[name]) for name in ("p10", "p50", "p90"))
    return f"launching a step takes the host {p50} ({p10} .. {p90}), by a CPU that is not known"


def memory_by_part(*, fragmentation_p50: float, fragmentation_p90: float) -> str:
    """What the need of memory consists of."""
    return (
        f"memory: tracked peak + {fragmentation_p50:.0%} fragmentation ({fragmentation_p90:.0%} at worst)"
        " + workspaces + CUDA context"
    )


def power_limited(*, limit_w: float, tdp_w: float, slowdown: float) -> str:
    """What a lower limit costs."""
    return (
        f"each GPU may draw {limit_w:g} of {tdp_w:g} W: what its cores bind takes {slowdown - 1:.0%} longer,"
        " by what other boards lose"
    )


def not_learned(*, families: Sequence[str], partly: Sequence[str]) -> str:
    """Which families have no network, or not for all of their operators."""
    named = [f"some {family}" if family in partly else family for family in families]
    return f"by the roofline, not learned: {', '.join(named)}"


def recurrent_of_unknown_size(*, share_of_rate: float) -> str:
    """What such layers are taken for."""
    return (
        f"recurrent layers of unknown sizes: at {share_of_rate * 100:.0f} % of the rate of products, not"
        " measured"
    )


def corrected_by_receipts(*, num_runs: int, num_jobs: int, factor: float, band: float) -> str:
    """What one's own runs changed."""
    runs = "1 run" if num_runs == 1 else f"{num_runs:,} runs"
    jobs = "1 job" if num_jobs == 1 else f"{num_jobs:,} jobs"
    off = abs(factor - 1)
    moved = "by nothing" if off < 0.005 else f"{off:.0%} {'longer' if factor > 1 else 'shorter'}"
    return (
        f"{moved} after {runs} of {jobs} of yours on this GPU, its band {band:.0%} as wide (predict.receipts)"
    )


def what_if_not_feasible(*, gpu: str, removed_by: Sequence[str]) -> str:
    """What stands against a change on the machine."""
    return f"then not feasible on {gpu}: {', '.join(removed_by)}"


def drift(*, gpu: str, num_runs: int, num_outside: int, ratio: float) -> str:
    """That predictions for a GPU no longer hold."""
    took = f"{abs(ratio - 1):.0%} {'longer' if ratio > 1 else 'shorter'}"
    return (
        f"the last {num_runs} runs on {gpu} took {took} than predicted (median), {num_outside} of them"
        " outside their intervals: look for a change of the machines or of the software"
    )


ESTIMATES: Words = {
    Code.CORRECTED_BY_RECEIPTS: corrected_by_receipts,
    Code.DRIFT: drift,
    Code.ATTENTION_UNFUSED: (
        "no fused kernel runs the script's attention on {gpu} ({dtype}, heads of {head_size}), so PyTorch"
        " keeps the matrix of scores: time and memory are of a fused kernel, and too low"
    ),
    Code.BATCH_SHARE: batch_share,
    Code.BATCH_VARIATION: batch_variation,
    Code.CALIBRATED_RATES: calibrated_rates,
    Code.CALIBRATION_OUTDATED: (
        "calibrated with networks of another version, so not corrected: run advisor calibrate again"
    ),
    Code.CONSTANT_ASSUMED: constant_assumed,
    Code.CONSTANT_CALIBRATED: "{source}",
    Code.CONSTANT_MEASURED: "fitted to measurements on this GPU",
    Code.CONSTANT_MEDIAN: constant_median,
    Code.CONSTANT_OF_HALF_RATE: "as of two GeForce boards, whose tensor cores add in FP32 at half rate, too",
    Code.CONSTANTS: constants,
    Code.CUSTOM_OPERATORS: custom_operators,
    Code.DATA_PARALLEL: data_parallel,
    Code.EMULATED_RATE: "{rate} is emulated at the fp32 rate",
    Code.FP16_ON_CUDA_CORES: "fp16 without tensor cores",
    Code.GRADIENTS_UNKNOWN: (
        "data parallel: the size of the gradients is unknown and their exchange not counted; record with"
        " record_shapes=True"
    ),
    Code.HOST_BOUND: "bound by the host: larger batches or CUDA graphs help more than a faster GPU",
    Code.HOST_HIDDEN: "not bound by the host: launching hides behind kernels for the most part",
    Code.KERNEL_FLOOR: kernel_floor,
    Code.LAUNCHING: launching,
    Code.LEARNED_ELSEWHERE: (
        "not measured: learned from the boards nearest in power limit and generation, with a wider interval"
    ),
    Code.LEARNED_RATES: "learned from, or fitted to, published kernels of P4 to GB200 (docs/accuracy)",
    Code.LOADING_NOT_COUNTED: (
        "loading takes less than 1 ms per iteration, too little to time, and is not counted: an iteration as"
        " short as this one may wait for it"
    ),
    Code.MEMORY_BY_PART: memory_by_part,
    Code.MEMORY_NOT_COUNTED: (
        "memory: the profile does not show how much the script needs, so nothing was excluded"
    ),
    Code.NOT_LEARNED: not_learned,
    Code.SUPPOSED: supposed,
    Code.OTHER_WORLD: other_world,
    Code.POWER_LIMITED: power_limited,
    Code.POWER_LIMIT_CALIBRATED: (
        "each GPU may draw {limit_w:g} of {tdp_w:g} W, which is not counted: this GPU was calibrated, under a"
        " limit that is not known"
    ),
    Code.RECURRENT_OF_UNKNOWN_SIZE: recurrent_of_unknown_size,
    Code.RECURRENT_STEPWISE: "recurrent layers: modelled step by step, not measured",
    Code.SHARDED: sharded,
    Code.STATE_SHARED: (
        "ZeRO-1 or 2: each of {num_gpus} GPUs updates its part of the weights and sends it to the others;"
        " nothing of that hides"
    ),
    Code.STEP_COMPILED: (
        "compiled (torch.compile, mode {mode}): operators were recorded in eager mode, and chains of what"
        " streams through memory are counted as one kernel each"
    ),
    Code.TIME_OF_UNSUPPORTED_GPU: "{gpu}: {why}; its time is what the hardware could do",
    Code.WAVE_RESOURCES_UNKNOWN: (
        "wave scaling: registers or shared memory of some kernels are unknown, so they are taken not to limit"
        " occupancy"
    ),
    Code.WHAT_IF_FED_FASTER: "what if: the input pipeline was changed on paper, the script was not run so",
    Code.WHAT_IF_AUTOCAST: (
        "what if: the forward pass and the loss under autocast to {dtype}; casts and what is kept for the"
        " backward pass follow from the operators; not profiled so"
    ),
    Code.WHAT_IF_REWRITTEN: "what if: {change}, written into the trace by its rules; not profiled so",
    Code.WHAT_IF_ALREADY: "the script does so already",
    Code.WHAT_IF_BATCH_NOT_SEEN: (
        "the shapes of its operators do not show the {batch_size:,} samples of a step: it may take several"
        " batches, as with two optimizers"
    ),
    Code.WHAT_IF_BATCH_UNKNOWN: "how many samples a step takes is unknown",
    Code.WHAT_IF_BF16_INSTEAD: "bf16 is as fast on {gpu} and needs no gradient scaler",
    Code.WHAT_IF_COPIED: "the plan copies the data to the machine's own disks already",
    Code.WHAT_IF_GRAPH_BREAKS: (
        "values decide a shape {num_breaks:,} times an iteration, where the graph breaks: what it saves"
        " is unknown"
    ),
    Code.WHAT_IF_NO_MACHINE: "no machine is recommended for the script as it is",
    Code.WHAT_IF_NO_RATE: "{gpu} has no tensor cores for {rate}",
    Code.WHAT_IF_NOT_COPIED: "the machine's own disks do not hold the data, or a copy there saves no time",
    Code.WHAT_IF_NOT_FEASIBLE: what_if_not_feasible,
    Code.WHAT_IF_NOT_FED: "the GPU does not wait for its input, or nothing is known of it",
    Code.WHAT_IF_NOTHING: "the script has no {lacking}",
    Code.WHAT_IF_PARAMETERS_UNKNOWN: "which tensors its optimizer trains is unknown",
    Code.WHAT_IF_TF32: "what if: products in TF32 instead of FP32; not profiled so",
}


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
