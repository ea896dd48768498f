"""How much a DataLoader holds: samples and batches of an epoch on one GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import cast

import torch

from ..protocol import Iteration


def length(value: object) -> int | None:
    """``len``, None where there is none."""
    try:
        return len(cast("Sized", value))
    except (TypeError, NotImplementedError):
        return None


def samples_of_epoch(loader: torch.utils.data.DataLoader[object]) -> int | None:
    """Samples of an epoch of the whole data set, however many ranks share it."""
    # A sampler may take a part of the data set or some samples twice.
    if isinstance(loader.dataset, torch.utils.data.IterableDataset):
        return length(loader.dataset)
    sampler = _sampler_of(loader)
    if _num_ranks(loader) > 1:
        # A rank's share is rounded up, so the data set knows better than all shares together.
        return length(getattr(sampler, "dataset", loader.dataset))
    return length(sampler) or length(loader.dataset)


def batches_of_epoch(loader: torch.utils.data.DataLoader[object]) -> int | None:
    """Batches of an epoch on one GPU: a rank's share times the ranks."""
    own = length(loader)
    return None if own is None else own * _num_ranks(loader)


def _sampler_of(loader: torch.utils.data.DataLoader[object]) -> object:
    """What draws the samples of an epoch."""
    sampler: object = getattr(loader.batch_sampler, "sampler", None) or loader.sampler
    # Ultralytics' loader never ends because its batch sampler repeats another one.
    while isinstance(sampler, torch.utils.data.BatchSampler):
        sampler = getattr(sampler, "sampler", None)
    return sampler


def _num_ranks(loader: torch.utils.data.DataLoader[object]) -> int:
    """Among how many ranks the loader's samplers divide an epoch."""
    batch_sampler = loader.batch_sampler
    # DistributedSampler and its kind, and the batch samplers of Hugging Face's accelerate.
    for sampler in (getattr(batch_sampler, "sampler", None), loader.sampler, batch_sampler):
        for name in ("num_replicas", "num_processes"):
            count = getattr(sampler, name, None)
            if isinstance(count, int) and count > 1:
                return count
    return 1


def leading_dimension(batch: object) -> int | None:
    """The first dimension of the first tensor in a batch."""
    return next((tensor.shape[0] for tensor in _tensors(batch) if tensor.dim() > 0), None)


def num_elements(batch: object) -> int:
    """Elements of the largest tensor in a batch: padded tokens, pixels; 0 without one."""
    return max((tensor.numel() for tensor in _tensors(batch)), default=0)


def _tensors(batch: object) -> Iterator[torch.Tensor]:
    if isinstance(batch, torch.Tensor):
        yield batch
        return
    # Mappings first: Hugging Face's BatchEncoding is one without being a dict.
    if hasattr(batch, "values") and hasattr(batch, "keys"):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        for item in batch:
            yield from _tensors(item)


def samples_of(span: Iteration) -> int:
    """What the DataLoader gave in an iteration; 0 where there is none or nobody knows."""
    loading = span["loading"]
    return (loading["samples"] or 0) if loading is not None else 0
