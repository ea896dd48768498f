"""What to know of a trace: how the script was profiled, and what its data does not tell.

Arguments are named in backquotes, and flags take their place where a person reads them.
"""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.findings import Code
from advisor.core.units import format_duration
from advisor.report.words.table import Words

_GIVE = "give `iterations`, or `iterations_per_epoch` with `epochs`"


def batches_differ(*, smallest: int, largest: int, batch_size: int | None) -> str:
    """Which of the sizes was profiled."""
    of_size = "an unknown number" if batch_size is None else f"{batch_size:,}"
    return (
        f"the script's batches differ in size, {smallest:,} to {largest:,} samples so far: time and memory"
        f" are of an iteration with {of_size}"
    )


def batches_warm_up(
    *, first_size: int, nominal_size: int, num_batches: int, batch_size: int, factor: int | None
) -> str:
    """Which of the sizes the trace is of."""
    begins = (
        f"the script begins with {first_size:,} samples a step and warms up to its nominal batch size of"
        f" {nominal_size:,} ({num_batches} batches of {batch_size:,})"
    )
    if factor is None:
        return f"{begins}: the measured iteration is of the first steps"
    return f"{begins}: the trace is of the latter, its passes counted {factor} times"


def data_set_replaced(*, name: str, error: str, num_samples: int | None) -> str:
    """What stands in for data that is not there."""
    failed = f"the data set {name} could not be made ({error})"
    if num_samples is not None:
        return f"{failed}: {num_samples:,} fake samples take its place"
    return (
        f"{failed}: fake samples take its place, and how many it has is unknown: give `profile.samples` N, or"
        " `iterations_per_epoch`"
    )


def data_without_end(*, num_samples: int, num_batches: int) -> str:
    """A length that nothing reaches."""
    claimed = f"{num_samples:,} samples" if num_samples else f"{num_batches:,} batches"
    return (
        f"the script's data claims {claimed} an epoch, as samplers without an end do: if training stops"
        f" before, {_GIVE}"
    )


def ended_early(*, num_iterations: int) -> str:
    """What the trace is of then."""
    first = ", set-up work included" if num_iterations == 1 else ""
    return f"the script ended after {num_iterations} iteration(s): the trace is of the last one{first}"


def evaluation_cut(*, num_given: int, num_batches: int | None) -> str:
    """After how many of its batches."""
    of_all = f" of its {num_batches:,}" if num_batches else ""
    return (
        f"an evaluation without gradients was ended after {num_given}{of_all} batches: it is not"
        " part of a training iteration. If the script trains on what it computed there, give"
        " `iterations_per_epoch`"
    )


def exchange_left_out(*, num_kernels: int, time_s: float) -> str:
    """How much communication a profile holds."""
    kernels = f"{num_kernels} NCCL kernels ({format_duration(time_s)})"
    return f"{kernels} are left out: communication is modelled for each number of GPUs, not scaled"


def no_step(*, has_updates: bool) -> str:
    """What is taken for an iteration then."""
    if has_updates:
        return (
            "no torch optimizer stepped: an iteration is the span between two backward passes"
            " with an update of the weights between them"
        )
    return (
        "no torch optimizer stepped and no update of weights was seen: an iteration is the span"
        " between two backward passes"
    )


def offload_uncounted(*, parts: Sequence[str]) -> str:
    """What is kept in main memory, and how that misleads."""
    return (
        f"DeepSpeed keeps {' and '.join(parts)} in main memory (offload): copies to it and the CPU's work"
        " are not counted, so that it is slower than predicted; without offload all is counted"
    )


def optimizer_idle(*, optimizers: Sequence[str], num_steps: int) -> str:
    """Which optimizer the iteration is without."""
    return (
        f"an optimizer ({', '.join(optimizers)}) made no step while another made {num_steps}: the"
        " recorded iteration is without it"
    )


def several_loaders(*, num_batches: int | None, others: Sequence[int | None]) -> str:
    """Which of them an epoch is counted by."""
    beside = ", ".join(map(_batches, others))
    return (
        f"{1 + len(others)} DataLoaders feed an iteration: the one with {_batches(num_batches)}"
        f" is taken to drive the loop, so that its end is an epoch's and its batches are counted; beside it"
        f" {beside}. `iterations_per_epoch` says otherwise"
    )


def _batches(count: int | None) -> str:
    return "batches without end" if count is None else f"{count:,} batches"


def sizes_assumed(*, assumptions: Sequence[str]) -> str:
    """What is assumed of values that nobody computed."""
    return (
        "sizes that depend on values computed on the GPU are assumed, and time and memory with them: "
        + ", ".join(assumptions)
    )


def torch_untested(*, version: str, tested: str, is_newer: bool) -> str:
    """On which side of what is tested it is."""
    if is_newer:
        return f"torch {version} is newer than {tested}, which advisor is tested with: compare with care"
    return f"torch {version} is older than what advisor is tested with ({tested}): compare with care"


def graph_breaks(*, num_breaks: int, operators: Sequence[str]) -> str:
    """How often, and by what."""
    names = ", ".join(name.removeprefix("aten::") for name in operators)
    often = "once" if num_breaks == 1 else f"{num_breaks:,} times"
    return (
        f"torch.compile will break its graph {often} an iteration or more, where values are read"
        f" or decide a shape ({names}): the step is predicted as if it did not"
    )


def variables_withheld(*, names: Sequence[str]) -> str:
    """Names alone: their values are nobody's business."""
    return (
        f"the script asked for variables of yours that scripts do not get ({', '.join(names)}): hand on what"
        " it needs by name with `profile.env`"
    )


TRACE_WARNINGS: Words = {
    Code.BATCH_SIZE_UNKNOWN: "the size of the script's batches is unknown: " + _GIVE,
    Code.BATCHES_DIFFER: batches_differ,
    Code.BATCHES_WARM_UP: batches_warm_up,
    Code.CALLS_DROPPED: "{function} did nothing while profiling",
    Code.CLOSURE_REPEATED: (
        "the optimizer evaluated the model {num_evaluations} times in the recorded"
        " iteration; how often it does so depends on values, which are made up here"
    ),
    Code.COMPILE_IGNORED: (
        "torch.compile was ignored: most of the forward pass runs outside of what it was given, so the step"
        " is predicted as it was recorded, in eager mode"
    ),
    Code.COMPILE_MEASURED: (
        "the time is that of what torch.compile made, the operators are those before fusion"
    ),
    Code.CREDENTIALS_IN_SIGHT: (
        "the sandbox does not hide {path!r}, where credentials may be: the script or what it needs is there"
    ),
    Code.DATA_PARALLEL_ALONE: "nn.DataParallel was profiled on one GPU",
    Code.DATA_SET_REPLACED: data_set_replaced,
    Code.DATA_WITHOUT_END: data_without_end,
    Code.DATA_WITHOUT_LENGTH: "the script's data has no length: " + _GIVE,
    Code.ENDED_EARLY: ended_early,
    Code.EVALUATION_BETWEEN: (
        "between earlier steps the model was tried without gradients (forward passes: {num_passes:,}): the"
        " trace is without them. How often that happens is unknown, and its time comes on top"
    ),
    Code.EVALUATION_CUT: evaluation_cut,
    Code.EVALUATION_INSIDE: (
        "the recorded iteration holds {num_passes:,} forward passes of a model in evaluation"
        " mode, without gradients: {num_calls:,} of its {num_calls_of_all:,} operator calls. If they"
        " are an evaluation, let the script evaluate less often while it is profiled"
    ),
    Code.EVALUATION_LEFT_OUT: (
        "an evaluation of {num_batches:,} batches without gradients ran between the two steps of"
        " the recorded iteration: the trace is without it, and its time comes on top"
    ),
    Code.EXCHANGE_LEFT_OUT: exchange_left_out,
    Code.EXPORT_FAILED: "torch.export failed here ({error}): the model took its graph's place",
    Code.EXPORT_PUT_OFF: (
        "{function} was put off: what it makes of the model is no part of a training iteration"
    ),
    Code.FAKE_DATA_FED: (
        "{num_loaders} DataLoader(s) were fed fake data: how long loading takes is unknown, and"
        " is assumed by the kind of its samples"
    ),
    Code.FAKE_DATA_UNUSED: (
        "`profile.fake_data` replaced nothing: the script makes no torch DataLoader, so its data is its own"
    ),
    Code.FILES_KEPT: "files that were there before were kept, although the script removed or replaced them",
    Code.FILES_THROWN_AWAY: "what {library} wrote was thrown away after profiling",
    Code.FLAGS_ASSUMED: "the profile does not record TF32 flags: PyTorch's defaults were assumed",
    Code.GRAPH_BREAKS: graph_breaks,
    Code.KERNELS_UNJOINED: (
        "{share_of_kernels:.1%} of the kernels ({share_of_time:.1%} of their time)"
        " could not be joined to an operator; they are scaled as kernels without one"
    ),
    Code.KERNELS_UNMARKED: (
        "{num_kernels} kernels ({share_of_time:.1%} of the GPU's time) were launched by no operator that"
        " torch dispatches; they are left out"
    ),
    Code.NO_BATCH_LOADED: (
        "no batch was loaded during the recorded iteration: the batch size is unknown; " + _GIVE
    ),
    Code.NO_DATA_LOADER: (
        "the script uses no torch DataLoader: batch size and samples per epoch are unknown; " + _GIVE
    ),
    Code.NO_DTYPES: "the profile has no dtypes: float32 was assumed",
    Code.NO_FLOP_FORMULA: "{operator} has no FLOP formula: only its memory traffic is counted",
    Code.NO_SHAPE_RULE: (
        "{operator} has no shape rule for fake tensors ({error}); its result's shape comes from"
        " the CPU kernel on zeros"
    ),
    Code.NO_SHAPES: (
        "the profile has no shapes, so FLOPs and bytes are unknown and kernels are taken to be bound by"
        " memory: record with record_shapes=True"
    ),
    Code.NO_STEP: no_step,
    Code.NOT_DOWNLOADED: "{name} was not downloaded: the model keeps the weights it began with",
    Code.OFFLOAD_UNCOUNTED: offload_uncounted,
    Code.OPTIMIZER_IDLE: optimizer_idle,
    Code.PROFILED_WITHOUT_GPU: "profiled without the GPU: {reason}",
    Code.RECURRENT_MEMORY: (
        "what cuDNN keeps for the backward pass of recurrent layers is estimated from their sizes"
    ),
    Code.ROLLOUTS_LEFT_OUT: (
        "{num_passes:,} forward passes without gradients ran before the optimizer's first"
        " step. Work between phases of updates (rollouts, generation, evaluation) is not part of the"
        " recorded iteration: `iterations` counts optimizer steps, and what comes between them is to be"
        " added. advisor.profile.profile_callable profiles it as a function"
    ),
    Code.SAMPLER_WITHOUT_LENGTH: (
        "the script's sampler has no length: {num_iterations:,} iterations, one pass over the data set,"
        " count as an epoch; `iterations_per_epoch` says otherwise"
    ),
    Code.SEVERAL_LOADERS: several_loaders,
    Code.SIZES_ASSUMED: sizes_assumed,
    Code.STEPS_UNEQUAL: (
        "an iteration is one step of the optimizer that steps least, and {most_steps} steps of another:"
        " `iterations` counts the former"
    ),
    Code.STEP_TAKEN: "{step} was taken, the median of {num_steps} recorded steps",
    Code.TORCH_UNTESTED: torch_untested,
    Code.TRACKER_SILENT: "{tracker} recorded nothing while profiling",
    Code.VARIABLES_WITHHELD: variables_withheld,
    Code.WORLD_OF_ONE: (
        "the script was the only process of its group: `world_size` N profiles it as one of N"
    ),
    Code.WORLD_OF_SCRIPT: (
        "the script made a group of {num_ranks} processes itself, not of `world_size` {world_size}"
    ),
    Code.WORLD_OF_SHARDS: (
        "the script shards its model: it was profiled as one of {num_ranks}, and `iterations` counts steps of"
        " {num_ranks} GPUs. Other numbers are worked out from that; `world_size` N records N of them"
    ),
    Code.WORLD_UNUSED: "`world_size` {world_size} had no effect: the script made no process group",
}
