"""What is said of a script and its trace: changes, kernels and warnings."""

from advisor.core.findings import about_answers, about_estimates, about_traces
from advisor.core.units import format_bytes, format_change, format_duration, format_signed, format_usd
from advisor.report.words.sentences import TEXTS, in_names

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
def _(it: about_estimates.StartOnNodes) -> str:
    near = ", all in one zone (and one placement group, where the cloud has them)" if it.is_rented else ""
    return (
        f"start torchrun --nnodes {it.num_nodes} --nproc-per-node {it.gpus_per_node} --rdzv-backend c10d"
        f" --rdzv-endpoint FIRST_NODE:29500 on each of the {it.num_nodes} nodes{near}"
    )


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
def _(it: about_answers.ChangeEndsAll) -> str:
    before = (
        "no machine did the job before either"
        if it.machine is None
        else f"before, {in_names(it.machine)} did it"
    )
    return f"after the change no machine does the job; {before}"


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


_GIVE = "give `iterations`, or `iterations_per_epoch` with `epochs`"


@in_names.register
def _(it: about_traces.BatchesDiffer) -> str:
    of_size = "an unknown number" if it.batch_size is None else f"{it.batch_size:,}"
    return (
        f"the script's batches differ in size, {it.smallest:,} to {it.largest:,} samples so far: time and"
        f" memory are of an iteration with {of_size}"
    )


@in_names.register
def _(it: about_traces.BatchesWarmUp) -> str:
    begins = (
        f"the script begins with {it.first_size:,} samples a step and warms up to its nominal batch size of"
        f" {it.nominal_size:,} ({it.num_batches} batches of {it.batch_size:,})"
    )
    if it.factor is None:
        return f"{begins}: the measured iteration is of the first steps"
    return f"{begins}: the trace is of the latter, its passes counted {it.factor} times"


@in_names.register
def _(it: about_traces.DataSetReplaced) -> str:
    failed = f"the data set {it.name} could not be made ({it.error})"
    if it.num_samples is not None:
        return f"{failed}: {it.num_samples:,} fake samples take its place"
    return (
        f"{failed}: fake samples take its place, and how many it has is unknown: give `profile.samples` N, or"
        " `iterations_per_epoch`"
    )


@in_names.register
def _(it: about_traces.DataWithoutEnd) -> str:
    claimed = f"{it.num_samples:,} samples" if it.num_samples else f"{it.num_batches:,} batches"
    return (
        f"the script's data claims {claimed} an epoch, as samplers without an end do: if training stops"
        f" before, {_GIVE}"
    )


@in_names.register
def _(it: about_traces.OffloadUncounted) -> str:
    return (
        f"DeepSpeed keeps {' and '.join(it.parts)} in main memory (offload): copies to it and the CPU's work"
        " are not counted, so that it is slower than predicted; without offload all is counted"
    )


@in_names.register
def _(it: about_traces.SeveralLoaders) -> str:
    beside = ", ".join(map(_batches, it.others))
    return (
        f"{1 + len(it.others)} DataLoaders feed an iteration: the one with {_batches(it.num_batches)}"
        f" is taken to drive the loop, so that its end is an epoch's and its batches are counted; beside it"
        f" {beside}. `iterations_per_epoch` says otherwise"
    )


def _batches(count: int | None) -> str:
    return "batches without end" if count is None else f"{count:,} batches"


@in_names.register
def _(it: about_traces.TorchUntested) -> str:
    if it.is_newer:
        return (
            f"torch {it.version} is newer than {it.tested}, which advisor is tested with: compare with care"
        )
    return f"torch {it.version} is older than what advisor is tested with ({it.tested}): compare with care"


TEXTS[about_estimates.EditScript] = {
    "accumulate": "add up the gradients of {name} batches before each step of the optimizer",
    "add-grad-scaler": 'scale the loss and step the optimizer through torch.amp.GradScaler("cuda")',
    "allow-tf32": f'call torch.set_float32_matmul_precision("high"), and {_CHECK_LOSS}',
    "compile-model": "compile the model (torch.compile)",
    "enlarge-batch": "make the batch {name} times as large",
    "fuse-optimizer": "make the optimizer with fused=True",
    "gather-sparse-gradients": "NCCL reduces no sparse gradients, so DistributedDataParallel fails on them:"
    " gather their rows by"
    " hand (more bytes than are counted here), or make them dense (sparse=False, no SparseAdam)",
    "install-aarch64": "the host is Arm: every package needs an aarch64 build",
    "install-for-cuda-12": "install a PyTorch build for CUDA 12: CUDA 13 no longer runs on {name}",
    "install-for-vendor": "install a PyTorch build for {name}: CUDA extensions will not run",
    "pack-data": "store the samples as training wants them (decoded and resized, or tokenised), so that"
    " workers only read",
    "use-autocast": 'run the forward pass and the loss under torch.autocast("cuda", dtype=torch.{name}), and '
    + _CHECK_LOSS,
    "use-channels-last": "move the model and its images to memory_format=torch.channels_last",
    "use-fused-attention": "call torch.nn.functional.scaled_dot_product_attention for attention",
    "use-no-sync": "accumulate gradients under no_sync(), or every pass exchanges them",
    "use-nvme": "copy the data to a local NVMe disk first, so that workers do not wait for it",
    "use-workers": "load by a DataLoader with as many workers as the machine has vCPUs for each GPU",
    "wrap-in-ddp": "wrap the model in DistributedDataParallel, use a DistributedSampler, start with torchrun",
}

TEXTS[about_estimates.NotPatched] = {
    "by-hand": "{name} needs more than a line, which only the author can place",
    "fused-not-clipped": "Lightning clips no gradients of a fused optimizer under mixed precision, and the"
    " script lets it clip",
    "loop-unclear": "no one loop calls the model, makes the loss and calls loss.backward() in plain"
    " statements",
    "no-model": "no one variable is the model whose parameters the one optimizer takes",
    "no-optimizer": "no call of Adam, AdamW or SGD was found",
    "no-torch": "the script's top level does not import torch",
    "not-helpful": "it is not sure to save time there",
    "set-already": "the script speaks of {name} itself",
    "shared-line": "the statement shares its line with another",
}

TEXTS[about_traces.NotDone] = {
    "call": "{name} did nothing while profiling",
    "export": "{name} was put off: what it makes of the model is no part of a training iteration",
    "export-failed": "torch.export failed here ({name}): the model took its graph's place",
    "tracking": "{name} recorded nothing while profiling",
    "writing": "what {name} wrote was thrown away after profiling",
    "removal": "files that were there before were kept, although the script removed or replaced them",
    "download": "{name} was not downloaded: the model keeps the weights it began with",
}

TEXTS[about_traces.LengthUnknown] = {
    "batch-size": "the size of the script's batches is unknown: " + _GIVE,
    "no-length": "the script's data has no length: " + _GIVE,
    "no-batch": "no batch was loaded during the recorded iteration: the batch size is unknown; " + _GIVE,
    "no-loader": "the script uses no torch DataLoader: batch size and samples per epoch are unknown; "
    + _GIVE,
}

TEXTS[about_traces.World] = {
    "one": "the script was the only process of its group: `world_size` N profiles it as one of N",
    "script": "the script made a group of {num_ranks} processes itself, not of `world_size` {world_size}",
    "shards": "the script shards its model: it was profiled as one of {num_ranks}, and `iterations` counts"
    " steps of {num_ranks} GPUs. Other numbers are worked out from that; `world_size` N records N of them",
    "unused": "`world_size` {world_size} had no effect: the script made no process group",
    "data-parallel": "nn.DataParallel was profiled on one GPU",
}

TEXTS[about_traces.ProfileLacks] = {
    "dtypes": "the profile has no dtypes: float32 was assumed",
    "shapes": "the profile has no shapes, so FLOPs and bytes are unknown and kernels are taken to be bound by"
    " memory: record with record_shapes=True",
    "flags": "the profile does not record TF32 flags: PyTorch's defaults were assumed",
    "recurrent-memory": "what cuDNN keeps for the backward pass of recurrent layers is estimated from their"
    " sizes",
}


@in_names.register
def _(it: about_traces.EvaluationSeen) -> str:
    match it.where:
        case "between":
            return (
                "between earlier steps the model was tried without gradients (forward passes:"
                f" {it.num_passes:,}): the trace is without them. How often that happens is unknown, and its"
                " time comes on top"
            )
        case "left-out":
            return (
                f"an evaluation of {it.num_batches or 0:,} batches without gradients ran between the two"
                " steps of the recorded iteration: the trace is without it, and its time comes on top"
            )
        case "rollouts":
            return (
                f"{it.num_passes:,} forward passes without gradients ran before the optimizer's first step."
                " Work between phases of updates (rollouts, generation, evaluation) is not part of the"
                " recorded iteration: `iterations` counts optimizer steps, and what comes between them is to"
                " be added. advisor.profile.profile_callable profiles it as a function"
            )
        case "cut":
            of_all = f" of its {it.num_batches:,}" if it.num_batches else ""
            return (
                f"an evaluation without gradients was ended after {it.num_given}{of_all} batches: it is not"
                " part of a training iteration. If the script trains on what it computed there, give"
                " `iterations_per_epoch`"
            )
        case "inside":
            return (
                f"the recorded iteration holds {it.num_passes:,} forward"
                f" pass{'' if it.num_passes == 1 else 'es'} of a model in evaluation mode, without gradients:"
                f" {it.num_calls:,} of its {it.num_calls_of_all:,} operator calls."
                " If they are an evaluation, let the script evaluate less often while it is profiled"
            )


@in_names.register
def _(it: about_traces.IterationSeen) -> str:
    match it.of:
        case "ended-early":
            first = ", set-up work included" if it.num == 1 else ""
            return f"the script ended after {it.num} iteration(s): the trace is of the last one{first}"
        case "steps-unequal":
            return (
                f"an iteration is one step of the optimizer that steps least, and {it.num} steps of another:"
                " `iterations` counts the former"
            )
        case "closure-repeated":
            return (
                f"the optimizer evaluated the model {it.num} times in the recorded iteration; how often it"
                " does so depends on values, which are made up here"
            )


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
    if it.num_loaders:
        return (
            f"{it.num_loaders} DataLoader(s) were fed fake data: how long loading takes is unknown, and is"
            " assumed by the kind of its samples"
        )
    return (
        "`profile.fake_data` replaced nothing: the script makes no torch DataLoader, so its data is its own"
    )


@in_names.register
def _(it: about_traces.OperatorUnknown) -> str:
    if it.error is None:
        return f"{it.operator} has no FLOP formula: only its memory traffic is counted"
    return (
        f"{it.operator} has no shape rule for fake tensors ({it.error}); its result's shape comes from the"
        " CPU kernel on zeros"
    )


TEXTS[about_traces.NoStep] = {
    "True": "no torch optimizer stepped: an iteration is the span between two backward passes with an update"
    " of the weights between them",
    "False": "no torch optimizer stepped and no update of weights was seen: an iteration is the span between"
    " two backward passes",
}

TEXTS[about_traces.KernelsLeftOut] = {
    "unjoined": "{share_of_kernels:.1%} of the kernels ({share_of_time:.1%} of their time) could not be"
    " joined to an operator; they are scaled as kernels without one",
    "unmarked": "{num_kernels} kernels ({share_of_time:.1%} of the GPU's time) were launched by no operator"
    " that torch dispatches; they are left out",
    "exchange": "{num_kernels} NCCL kernels ({time_s:duration}) are left out: communication is modelled for"
    " each number of GPUs, not scaled",
}

TEXTS |= {
    about_traces.StepsDiffer: "steps differ: of {num_steps} recorded ones the lightest does {lightest:.0%}"
    " and the heaviest {heaviest:.0%} of their mean, which is taken; memory is that of the largest",
    about_traces.SizesAssumed: "values that the profile does not compute are assumed, and time and memory"
    " that follow from them: {assumptions}",
    about_estimates.ClocksDrifted: "the same product took up to {drift:.0%} longer at times: the clocks"
    " changed (heat, a power limit) or others used the device; kernels measured then are too slow",
    about_estimates.KernelsDisagree: "{constant}: the {num_kernels} kernels differ by {spread:.0%} from each"
    " other in how far predictions are off; the constant is a compromise",
    about_estimates.RetuneLearningRate: "retune the learning rate: a step takes {global_batch_size:,}"
    " samples instead of {batch_size:,}",
    about_traces.OptimizerIdle: "an optimizer ({optimizers}) made no step while another made {num_steps}:"
    " the recorded iteration is without it",
    about_traces.VariablesWithheld: "the script asked for variables of yours that scripts do not get"
    " ({names}): hand on what it needs by name with `profile.env`",
    about_traces.CredentialsInSight: "the sandbox does not hide {path!r}, where credentials may be: the"
    " script or what it needs is there",
    about_traces.ProfiledWithoutGpu: "profiled without the GPU: {reason}",
    about_traces.SamplerWithoutLength: "the script's sampler has no length: {num_iterations:,} iterations,"
    " one pass over the data set, count as an epoch; `iterations_per_epoch` says otherwise",
    about_traces.StepTaken: "{step} was taken, the median of {num_steps} recorded steps",
}
