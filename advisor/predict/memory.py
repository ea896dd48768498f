"""Whether a GPU can hold the script: the allocator's peak and what a real process adds to it."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.core.units import GIB, MIB
from advisor.core.values import GpuSpec, MemoryUse

# Blocks that are free but in the wrong place: the caching allocator of a steady training loop.
FRAGMENTATION = 1.04
# cuDNN's and cuBLAS's scratch space, and the CUDA context with its loaded kernels.
WORKSPACE_BYTES = 256 * MIB
CONTEXT_BYTES = GIB // 2


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


def what_would_fit(
    memory: MemoryUse, gpu: GpuSpec, batch_size: int | None, num_gpus: int = 1
) -> Mapping[str, float | None]:
    """The largest batch a GPU can take that cannot take this one.

    Only activations shrink with the batch, in proportion.

    Returns:
        ``fitting_share`` of the batch (None: nobody knows; 0: not even what no batch needs), and in samples
        ``batch_size`` and ``fitting_batch_size``, None where the batch's size is unknown.
    """
    share = _fitting_share(memory, gpu, num_gpus)
    fitting = None
    if batch_size is not None and share is not None:
        fitting = min(int(batch_size * share), batch_size - 1)
    return {"fitting_share": share, "batch_size": batch_size, "fitting_batch_size": fitting}


def _fitting_share(memory: MemoryUse, gpu: GpuSpec, num_gpus: int) -> float | None:
    if memory.peak_bytes is None or memory.activation_bytes is None:
        return None
    fixed = memory.peak_bytes - memory.activation_bytes + bucket_bytes(memory, num_gpus)
    room = (gpu.memory_bytes - WORKSPACE_BYTES - CONTEXT_BYTES) / FRAGMENTATION - fixed
    if room <= 0:
        return 0.0
    return room / memory.activation_bytes if memory.activation_bytes else 1.0
