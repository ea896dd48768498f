"""What the script's DataLoaders hold and how long they take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch


class Loading:
    """Counts the batches of each DataLoader in the current span."""

    def __init__(self) -> None:
        self._loaders: dict[int, Any] = {}
        self._workers: dict[int, int] = {}
        self._fetches: dict[int, int] = {}
        self._samples: dict[int, int] = {}
        self._seconds: dict[int, float] = {}
        self._last: int | None = None

    def start_span(self) -> None:
        """Forget the batches so far."""
        self._fetches, self._samples, self._seconds = {}, {}, {}

    def register(self, loader: Any, num_workers: int) -> None:
        """Remember how many workers the script asked for."""
        self._workers[id(loader)] = num_workers

    def watch(self, loader: Any, batches: Iterator[Any]) -> Iterator[Any]:
        """Pass the batches on and time each."""
        key = id(loader)
        self._loaders[key] = loader
        while True:
            begin = time.perf_counter()
            try:
                batch = next(batches)
            except StopIteration:
                return
            self._seconds[key] = self._seconds.get(key, 0.0) + time.perf_counter() - begin
            self._fetches[key] = self._fetches.get(key, 0) + 1
            self._samples[key] = self._samples.get(key, 0) + (_batch_size(loader, batch) or 0)
            self._last = key
            yield batch

    def usage(self) -> dict[str, Any] | None:
        """The loader that fed the span last: batches, samples and seconds; None without one."""
        if self._last is None:
            return None
        key = self._last
        loader = self._loaders[key]
        return {
            "fetches": self._fetches.get(key, 0),
            "samples": self._samples.get(key) or None,
            "seconds": self._seconds.get(key, 0.0),
            "num_workers": self._workers.get(key),
            "num_batches": _num_batches(loader),
            "num_samples": _num_samples(loader),
        }


def _length(value: Any) -> int | None:
    try:
        return len(value)
    except (TypeError, NotImplementedError):
        return None


def _num_samples(loader: Any) -> int | None:
    # A sampler may take a part of the data set or some samples twice.
    if isinstance(loader.dataset, torch.utils.data.IterableDataset):
        return _length(loader.dataset)
    sampler = getattr(loader.batch_sampler, "sampler", None) or loader.sampler
    if _num_ranks(loader) > 1:
        # A rank's share is rounded up, so the data set knows better than all shares together.
        return _length(getattr(sampler, "dataset", loader.dataset))
    return _length(sampler) or _length(loader.dataset)


def _num_batches(loader: Any) -> int | None:
    """Batches of an epoch on one GPU: a rank's share times the ranks."""
    own = _length(loader)
    return None if own is None else own * _num_ranks(loader)


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


def _batch_size(loader: Any, batch: Any) -> int | None:
    size = _leading_dimension(batch)
    return size if size is not None else loader.batch_size


def _leading_dimension(batch: Any) -> int | None:
    if isinstance(batch, torch.Tensor):
        return batch.shape[0] if batch.dim() > 0 else None
    # Mappings first: Hugging Face's BatchEncoding is one without being a dict.
    if hasattr(batch, "values") and hasattr(batch, "keys"):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        sizes = (_leading_dimension(item) for item in batch)
        return next((size for size in sizes if size is not None), None)
    return None
