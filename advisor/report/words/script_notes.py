"""What is said of a script and its trace: changes, kernels and warnings."""

from advisor.core.findings import about_answers, about_estimates, about_traces
from advisor.core.units import format_bytes, format_change, format_duration, format_signed, format_usd
from advisor.report.words.sentences import in_names

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
