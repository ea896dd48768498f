"""What is said of a script and its trace: changes, kernels and warnings."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.findings import Code
from advisor.core.units import format_bytes, format_change, format_duration, format_signed, format_usd
from advisor.report.words.table import Words


def clocks_drifted(*, drift: float) -> str:
    """One kernel took longer at times."""
    seen = f"the same product took up to {drift:.0%} longer at times: the clocks changed"
    return f"{seen} (heat, a power limit) or others used the device; kernels measured then are too slow"


def kernels_disagree(*, constant: str, num_kernels: int, spread: float) -> str:
    """No one constant suits all kernels."""
    return (
        f"{constant}: the {num_kernels} kernels differ by {spread:.0%} from each other"
        " in how far predictions are off; the constant is a compromise"
    )


KERNEL_NOTES: Words = {
    Code.CLOCKS_DRIFTED: clocks_drifted,
    Code.KERNELS_DISAGREE: kernels_disagree,
}


_CHECK_LOSS = "check that the loss still falls as before"


def retune_learning_rate(*, global_batch_size: int, batch_size: int) -> str:
    """Weak scaling makes steps larger."""
    return f"retune the learning rate: a step takes {global_batch_size:,} samples instead of {batch_size:,}"


def save_checkpoints(*, interval_s: float, best_interval_s: float, assumed_of: str | None) -> str:
    """How often, and how often would be best."""
    best = f" (least is lost at {format_duration(best_interval_s)})" if best_interval_s else ""
    assumed = "" if assumed_of is None else f"; assumed that {assumed_of} does (--checkpoints none if not)"
    return f"save a checkpoint every {format_duration(interval_s)} and resume from it{best}{assumed}"


def add_checkpoints(
    *, interval_s: float, best_interval_s: float, script: str, saves: bool, saved_at: str | None
) -> str:
    """What the script lacks, and how often to save."""
    best = f" (least is lost at {format_duration(best_interval_s)})" if best_interval_s else ""
    often = f"every {format_duration(interval_s)}{best}"
    if saves:
        at = "" if saved_at is None else f" ({saved_at})"
        return (
            f"make {script} resume from the checkpoints that it saves{at}: model, optimizer and step, {often}"
            " (--checkpoints resumes if it does)"
        )
    return (
        f"add checkpoints, {script} saves none: model, optimizer and step, {often}, and resume from them"
        " (--checkpoints resumes if it does)"
    )


def shard_model(*, sharding: str) -> str:
    """What to shard, and with what."""
    how = {
        "zero-1": "shard the optimizer's state (ZeroRedundancyOptimizer, or DeepSpeed's stage 1)",
        "zero-2": "shard gradients and optimizer state (DeepSpeed's stage 2)",
        "zero-3": "wrap blocks and model in FSDP (torch.distributed.fsdp.fully_shard)",
        "hybrid": "wrap blocks and model in FSDP over the GPUs of each node (fully_shard on a 2-D mesh)",
    }
    return f"{how[sharding]}, use a DistributedSampler, start with torchrun"


def divide_layers(*, tensor: int, pipeline: int) -> str:
    """Among how many GPUs of a node, and in how many stages."""
    within = f"divide each layer among {tensor} GPUs of a node" if tensor > 1 else ""
    stages = f"divide the layers into {pipeline} stages" if pipeline > 1 else ""
    both = " and ".join(filter(None, (within, stages)))
    return f"{both} (torch.distributed.tensor.parallel and pipelining, or Megatron-LM)"


def start_on_nodes(*, num_nodes: int, gpus_per_node: int, is_rented: bool) -> str:
    """One torchrun on each node, all of which must reach each other."""
    near = ", all in one zone (and one placement group, where the cloud has them)" if is_rented else ""
    return (
        f"start torchrun --nnodes {num_nodes} --nproc-per-node {gpus_per_node} --rdzv-backend c10d"
        f" --rdzv-endpoint FIRST_NODE:29500 on each of the {num_nodes} nodes{near}"
    )


def start_with_torchrun(*, library: str) -> str:
    """A library does the rest; Lightning refuses to where the script names other devices or nodes."""
    named = ' (with devices="auto" and num_nodes set in the script)' if library == "lightning" else ""
    return f"start it with torchrun{named}: {library} wraps the model and shares out the data by itself"


CHANGES: Words = {
    Code.ACCUMULATE: "add up the gradients of {passes} batches before each step of the optimizer",
    Code.ADD_CHECKPOINTS: add_checkpoints,
    Code.ADD_GRAD_SCALER: ('scale the loss and step the optimizer through torch.amp.GradScaler("cuda")'),
    Code.ALLOW_TF32: f'call torch.set_float32_matmul_precision("high"), and {_CHECK_LOSS}',
    Code.COMPILE_MODEL: "compile the model (torch.compile)",
    Code.DIVIDE_LAYERS: divide_layers,
    Code.ENLARGE_BATCH: "make the batch {factor} times as large",
    Code.FUSE_OPTIMIZER: "make the optimizer with fused=True",
    Code.GATHER_SPARSE_GRADIENTS: (
        "NCCL reduces no sparse gradients, so DistributedDataParallel fails on them: gather their rows by"
        " hand (more bytes than are counted here), or make them dense (sparse=False, no SparseAdam)"
    ),
    Code.INSTALL_AARCH64: "the host is Arm: every package needs an aarch64 build",
    Code.INSTALL_FOR_CUDA_12: (
        "install a PyTorch build for CUDA 12: CUDA 13 no longer runs on {architecture}"
    ),
    Code.INSTALL_FOR_VENDOR: "install a PyTorch build for {vendor}: CUDA extensions will not run",
    Code.PACK_DATA: (
        "store the samples as training wants them (decoded and resized, or tokenised), so that workers"
        " only read"
    ),
    Code.PATCH_BY_HAND: "{change} needs more than a line, which only the author can place",
    Code.PATCH_FUSED_NOT_CLIPPED: (
        "Lightning clips no gradients of a fused optimizer under mixed precision, and the script lets it clip"
    ),
    Code.PATCH_LOOP_UNCLEAR: (
        "no one loop calls the model, makes the loss and calls loss.backward() in plain statements"
    ),
    Code.PATCH_NO_MODEL: "no one variable is the model whose parameters the one optimizer takes",
    Code.PATCH_NO_OPTIMIZER: "no call of Adam, AdamW or SGD was found",
    Code.PATCH_NO_TORCH: "the script's top level does not import torch",
    Code.PATCH_NOT_HELPFUL: "it is not sure to save time there",
    Code.PATCH_SET_ALREADY: "the script speaks of {name} itself",
    Code.PATCH_SHARED_LINE: "the statement shares its line with another",
    Code.RETUNE_LEARNING_RATE: retune_learning_rate,
    Code.SAVE_CHECKPOINTS: save_checkpoints,
    Code.SHARD_MODEL: shard_model,
    Code.START_ON_NODES: start_on_nodes,
    Code.START_WITH_TORCHRUN: start_with_torchrun,
    Code.USE_AUTOCAST: (
        'run the forward pass and the loss under torch.autocast("cuda", dtype=torch.{dtype}), and '
        + _CHECK_LOSS
    ),
    Code.USE_CHANNELS_LAST: ("move the model and its images to memory_format=torch.channels_last"),
    Code.USE_FUSED_ATTENTION: "call torch.nn.functional.scaled_dot_product_attention for attention",
    Code.USE_NO_SYNC: "accumulate gradients under no_sync(), or every pass exchanges them",
    Code.USE_NVME: "copy the data to a local NVMe disk first, so that workers do not wait for it",
    Code.USE_WORKERS: "load by a DataLoader with as many workers as the machine has vCPUs for each GPU",
    Code.WRAP_IN_DDP: (
        "wrap the model in DistributedDataParallel, use a DistributedSampler, start with torchrun"
    ),
}


def costs(
    *,
    machine: str,
    measure: str,
    relative: float,
    base_usd: float | None,
    base_p90_usd: float | None,  # noqa: ARG001
    base_s: float,
    head_usd: float | None,
    head_p90_usd: float | None,  # noqa: ARG001
    head_s: float,
) -> str:
    """More or less on the same machine."""
    more = _more(measure, relative, base_usd, head_usd, base_s, head_s)
    return f"{more} per run on {machine}: {_from_to(base_usd, head_usd, base_s, head_s)}"


def rules_out(
    *,
    machine: str,
    why: str | None,
    instead: str,
    measure: str,
    relative: float,
    base_usd: float | None,
    base_p90_usd: float | None,  # noqa: ARG001
    base_s: float,
    head_usd: float | None,
    head_p90_usd: float | None,  # noqa: ARG001
    head_s: float,
) -> str:
    """The machine of before cannot do it any more."""
    more = _more(measure, relative, base_usd, head_usd, base_s, head_s)
    because = "" if why is None else f" ({why})"
    return (
        f"{more} per run: {machine} no longer does the job{because}; the one to take is {instead}:"
        f" {_from_to(base_usd, head_usd, base_s, head_s)}"
    )


def enables(*, machine: str, head_usd: float | None, head_p90_usd: float | None, head_s: float) -> str:  # noqa: ARG001
    """Something does the job for the first time."""
    return f"before the change no machine did the job; now {machine} does it: {_figures(head_usd, head_s)}"


def ends_all(*, machine: str | None) -> str:
    """Nothing does the job any more."""
    before = "no machine did the job before either" if machine is None else f"before, {machine} did it"
    return f"after the change no machine does the job; {before}"


def moves(*, machine: str, head_usd: float | None, head_p90_usd: float | None, head_s: float) -> str:  # noqa: ARG001
    """Another machine is the one to take now."""
    return f"after the change {machine} is the one to take: {_figures(head_usd, head_s)}"


def memory(*, base_bytes: int, head_bytes: int, no_longer: Sequence[str], newly: Sequence[str]) -> str:
    """What a GPU must hold, and which GPUs that rules in or out."""
    fits = [f"no longer fits {', '.join(no_longer)}"] if no_longer else []
    fits += [f"now fits {', '.join(newly)}"] if newly else []
    memory = f"memory of a GPU {format_bytes(base_bytes)} -> {format_bytes(head_bytes)}"
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


SCRIPT_CHANGES: Words = {
    Code.CHANGE_COSTS: costs,
    Code.CHANGE_ENABLES: enables,
    Code.CHANGE_ENDS_ALL: ends_all,
    Code.CHANGE_MOVES: moves,
    Code.CHANGE_OF_MEMORY: memory,
    Code.CHANGE_RULES_OUT: rules_out,
}


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
