"""What to change in a script or its environment."""

from __future__ import annotations

from advisor.core.findings import Code
from advisor.core.units import format_duration
from advisor.report.words.table import Words

_CHECK_LOSS = "check that the loss still falls as before"


def retune_learning_rate(*, global_batch_size: int, batch_size: int) -> str:
    """Weak scaling makes steps larger."""
    return f"retune the learning rate: a step takes {global_batch_size:,} samples instead of {batch_size:,}"


def save_checkpoints(*, interval_s: float, best_interval_s: float) -> str:
    """How often, and how often would be best."""
    best = f" (least is lost at {format_duration(best_interval_s)})" if best_interval_s else ""
    return f"save a checkpoint every {format_duration(interval_s)} and resume from it{best}"


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
