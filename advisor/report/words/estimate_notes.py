"""What an estimate rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.core.findings import Code
from advisor.core.units import MIB, format_duration
from advisor.report.words.removals import of_rank
from advisor.report.words.table import Words


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
        "memory: the profile does not tell how much the script needs, so nothing was excluded"
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
