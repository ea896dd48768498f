"""How much a DataLoader holds: samples and batches of an epoch on one GPU."""

from __future__ import annotations

from typing import Any

import torch


def length(value: Any) -> int | None:
    """``len``, None where there is none."""
    try:
        return len(value)
    except (TypeError, NotImplementedError):
        return None


def samples_of_epoch(loader: Any) -> int | None:
    """Samples of an epoch of the whole data set, however many ranks share it."""
    # A sampler may take a part of the data set or some samples twice.
    if isinstance(loader.dataset, torch.utils.data.IterableDataset):
        return length(loader.dataset)
    sampler = _sampler_of(loader)
    if _num_ranks(loader) > 1:
        # A rank's share is rounded up, so the data set knows better than all shares together.
        return length(getattr(sampler, "dataset", loader.dataset))
    return length(sampler) or length(loader.dataset)


def batches_of_epoch(loader: Any) -> int | None:
    """Batches of an epoch on one GPU: a rank's share times the ranks."""
    own = length(loader)
    return None if own is None else own * _num_ranks(loader)


def _sampler_of(loader: Any) -> Any:
    """What draws the samples of an epoch."""
    sampler = getattr(loader.batch_sampler, "sampler", None) or loader.sampler
    # Ultralytics' loader never ends because its batch sampler repeats another one.
    while isinstance(sampler, torch.utils.data.BatchSampler):
        sampler = getattr(sampler, "sampler", None)
    return sampler


def _num_ranks(loader: Any) -> int:
    """Among how many ranks the loader's samplers divide an epoch."""
    batch_sampler = loader.batch_sampler
    # DistributedSampler and its kind, and the batch samplers of Hugging Face's accelerate.
    for sampler in (getattr(batch_sampler, "sampler", None), loader.sampler, batch_sampler):
        for name in ("num_replicas", "num_processes"):
            count = getattr(sampler, name, None)
            if isinstance(count, int) and count > 1:
                return count
    return 1


def leading_dimension(batch: Any) -> int | None:
    """The first dimension of the first tensor in a batch."""
    if isinstance(batch, torch.Tensor):
        return batch.shape[0] if batch.dim() > 0 else None
    # Mappings first: Hugging Face's BatchEncoding is one without being a dict.
    if hasattr(batch, "values") and hasattr(batch, "keys"):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        sizes = (leading_dimension(item) for item in batch)
        return next((size for size in sizes if size is not None), None)
    return None
