"""Whether a GPU can hold the script: the allocator's peak and what a real process adds to it."""

from __future__ import annotations

from advisor.core.units import GIB, MIB
from advisor.core.values import GpuSpec, MemoryUse

# Blocks that are free but in the wrong place: the caching allocator of a steady training loop.
FRAGMENTATION = 1.04
# cuDNN's and cuBLAS's scratch space, and the CUDA context with its loaded kernels.
WORKSPACE_BYTES = 256 * MIB
CONTEXT_BYTES = GIB // 2

UNKNOWN = "memory: the profile does not tell how much the script needs, so nothing was excluded"
ASSUMPTION = "memory: tracked peak + 4 % fragmentation + 0.25 GiB workspace + 0.5 GiB CUDA context"


def needed_bytes(memory: MemoryUse, *, num_gpus: int = 1) -> int | None:
    """Bytes one GPU must hold, None where the peak is unknown; data parallelism adds gradient buckets.

    Source: PyTorch DDP keeps gradients in flat buckets beside ``.grad`` unless
    ``gradient_as_bucket_view`` is set.
    """
    if memory.peak_bytes is None:
        return None
    total = memory.peak_bytes + bucket_bytes(memory, num_gpus)
    return round(total * FRAGMENTATION) + WORKSPACE_BYTES + CONTEXT_BYTES


def bucket_bytes(memory: MemoryUse, num_gpus: int) -> int:
    """Bytes of the flat copies of the gradients that data parallelism keeps."""
    return (memory.gradient_bytes or 0) if num_gpus > 1 else 0


def what_would_fit(memory: MemoryUse, gpu: GpuSpec, batch_size: int | None, num_gpus: int = 1) -> str:
    """In words, the largest batch a GPU can take that cannot take this one, or that there is none.

    Only activations shrink with the batch, in proportion.
    """
    if memory.peak_bytes is None or memory.activation_bytes is None:
        return "profile the script to learn what would fit"
    fixed = memory.peak_bytes - memory.activation_bytes + bucket_bytes(memory, num_gpus)
    room = (gpu.memory_bytes - WORKSPACE_BYTES - CONTEXT_BYTES) / FRAGMENTATION - fixed
    if room <= 0:
        return "weights, gradients and optimizer state alone do not fit: shard them or use a larger GPU"
    share = room / memory.activation_bytes if memory.activation_bytes else 1.0
    if batch_size is None:
        return f"a batch of about {share:.0%} of this one would fit"
    fitting = min(int(batch_size * share), batch_size - 1)
    if fitting < 1:
        return "not even a batch of one fits: use activation checkpointing or a larger GPU"
    return f"a batch of {fitting} instead of {batch_size} would fit"
