"""What is said of scripts and estimates: warnings of traces, memory, input, and what to change."""

import math
from collections.abc import Mapping
from typing import Any

from advisor.core.findings import about_answers, about_estimates, about_options, about_traces
from advisor.core.units import HOUR_S, format_bytes, format_change, format_duration, format_signed, format_usd
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


_CHECK_LOSS = "check that the loss still falls as before"


@in_names.register
def _(it: about_estimates.SaveCheckpoints) -> str:
    assumed = ""
    if it.assumed_of is not None:
        assumed = f"; assumed that {it.assumed_of} does (--checkpoints none if not)"
    often, best = _often(it)
    return f"save a checkpoint {often} and resume from it{best}{assumed}"


@in_names.register
def _(it: about_estimates.AddCheckpoints) -> str:
    often = "".join(_often(it))
    if not it.saves:
        return (
            f"add checkpoints, {it.script} saves none: model, optimizer and step, {often}, and resume"
            " from them (--checkpoints resumes if it does)"
        )
    at = "" if it.saved_at is None else f" ({it.saved_at})"
    return (
        f"make {it.script} resume from the checkpoints that it saves{at}: model, optimizer and step,"
        f" {often} (--checkpoints resumes if it does)"
    )


def _often(it: about_estimates.SaveCheckpoints | about_estimates.AddCheckpoints) -> tuple[str, str]:
    best = f" (least is lost at {format_duration(it.best_interval_s)})" if it.best_interval_s else ""
    return f"every {format_duration(it.interval_s)}", best


@in_names.register
def _(it: about_estimates.ShardModel) -> str:
    how = {
        "zero-1": "shard the optimizer's state (ZeroRedundancyOptimizer, or DeepSpeed's stage 1)",
        "zero-2": "shard gradients and optimizer state (DeepSpeed's stage 2)",
        "zero-3": "wrap blocks and model in FSDP (torch.distributed.fsdp.fully_shard)",
        "hybrid": "wrap blocks and model in FSDP over the GPUs of each node (fully_shard on a 2-D mesh)",
    }
    return f"{how[it.sharding]}, use a DistributedSampler, start with torchrun"


@in_names.register
def _(it: about_estimates.DivideLayers) -> str:
    within = f"divide each layer among {it.tensor} GPUs of a node" if it.tensor > 1 else ""
    stages = f"divide the layers into {it.pipeline} stages" if it.pipeline > 1 else ""
    both = " and ".join(filter(None, (within, stages)))
    return f"{both} (torch.distributed.tensor.parallel and pipelining, or Megatron-LM)"


@in_names.register
def _(it: about_estimates.StartWithTorchrun) -> str:
    named = ' (with devices="auto" and num_nodes set in the script)' if it.library == "lightning" else ""
    return f"start it with torchrun{named}: {it.library} wraps the model and shares out the data by itself"


@in_names.register
def _(it: about_answers.ChangeCosts) -> str:
    more = _more(it.measure, it.relative, it.base_usd, it.head_usd, it.base_s, it.head_s)
    return (
        f"{more} per run on {in_names(it.machine)}:"
        f" {_from_to(it.base_usd, it.head_usd, it.base_s, it.head_s)}"
    )


@in_names.register
def _(it: about_answers.ChangeRulesOut) -> str:
    more = _more(it.measure, it.relative, it.base_usd, it.head_usd, it.base_s, it.head_s)
    because = "" if it.why is None else f" ({in_names(it.why)})"
    return (
        f"{more} per run: {in_names(it.machine)} no longer does the job{because}; the one to take is"
        f" {in_names(it.instead)}: {_from_to(it.base_usd, it.head_usd, it.base_s, it.head_s)}"
    )


@in_names.register
def _(it: about_answers.ChangeMoves) -> str:
    machine, figures = in_names(it.machine), _figures(it.head_usd, it.head_s)
    if it.was_possible:
        return f"after the change {machine} is the one to take: {figures}"
    return f"before the change no machine did the job; now {machine} does it: {figures}"


@in_names.register
def _(it: about_answers.ChangeOfMemory) -> str:
    fits = [f"no longer fits {', '.join(it.no_longer)}"] if it.no_longer else []
    fits += [f"now fits {', '.join(it.newly)}"] if it.newly else []
    memory = f"memory of a GPU {format_bytes(it.base_bytes)} -> {format_bytes(it.head_bytes)}"
    return ": ".join([memory, *(["; ".join(fits)] if fits else [])])


def _more(
    measure: str,
    relative: float,
    base_usd: float | None,
    head_usd: float | None,
    base_s: float,
    head_s: float,
) -> str:
    if measure == "cost" and base_usd is not None and head_usd is not None:
        more = format_signed(head_usd - base_usd, format_usd)
    else:
        more = format_signed(head_s - base_s, format_duration)
    return f"{more} ({format_change(relative)})"


def _from_to(base_usd: float | None, head_usd: float | None, base_s: float, head_s: float) -> str:
    return f"{_figures(base_usd, base_s)} -> {_figures(head_usd, head_s)}"


def _figures(usd: float | None, seconds: float) -> str:
    cost = "at an unknown cost" if usd is None else format_usd(usd)
    return f"{cost} in {format_duration(seconds)}"


@in_names.register
def _(it: about_traces.OffloadUncounted) -> str:
    return (
        f"DeepSpeed keeps {' and '.join(it.parts)} in main memory (offload): copies to it and the CPU's work"
        " are not counted, so that it is slower than predicted; without offload all is counted"
    )


@in_names.register
def _(it: about_traces.LengthAssumed) -> str:
    match it.of:
        case "endless":
            claimed = f"{it.num_samples:,} samples" if it.num_samples else f"{it.num_batches:,} batches"
            return (
                f"the script's data claims {claimed} an epoch, as samplers without an end do: if training"
                " stops before, give `iterations`, or `iterations_per_epoch` with `epochs`"
            )
        case "sampler":
            return (
                f"the script's sampler has no length: {it.num_iterations:,} iterations, one pass over the"
                " data set, count as an epoch; `iterations_per_epoch` says otherwise"
            )
        case "several-loaders":
            beside = ", ".join(map(_batches, it.others))
            return (
                f"{1 + len(it.others)} DataLoaders feed an iteration: the one with {_batches(it.num_batches)}"
                " is taken to drive the loop, so that its end is an epoch's and its batches are counted;"
                f" beside it {beside}. `iterations_per_epoch` says otherwise"
            )


def _batches(count: int | None) -> str:
    return "batches without end" if count is None else f"{count:,} batches"


@in_names.register
def _(it: about_traces.CompileSeen) -> str:
    match it.how:
        case "ignored":
            return (
                "torch.compile was ignored: most of the forward pass runs outside of what it was given, so"
                " the step is predicted as it was recorded, in eager mode"
            )
        case "measured":
            return "the time is that of what torch.compile made, the operators are those before fusion"
        case "breaks":
            names = ", ".join(name.removeprefix("aten::") for name in it.operators)
            often = "once" if it.num_breaks == 1 else f"{it.num_breaks:,} times"
            return (
                f"torch.compile will break its graph {often} an iteration or more, where values are read or"
                f" decide a shape ({names}): the step is predicted as if it did not"
            )


@in_names.register
def _(it: about_traces.FakeData) -> str:
    if it.data_set is not None:
        instead = (
            "fake samples take its place, and how many it has is unknown: give `profile.samples` N, or"
            " `iterations_per_epoch`"
            if it.num_samples is None
            else f"{it.num_samples:,} fake samples take its place"
        )
        return f"the data set {it.data_set} could not be made ({it.error}): {instead}"
    if it.num_loaders:
        return (
            f"{it.num_loaders} DataLoader(s) were fed fake data: how long loading takes is unknown, and is"
            " assumed by the kind of its samples"
        )
    return (
        "`profile.fake_data` replaced nothing: the script makes no torch DataLoader, so its data is its own"
    )
