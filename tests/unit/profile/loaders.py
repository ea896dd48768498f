"""What tests of loading share; needs torch."""

from typing import Any

import torch

from advisor.payload.recording.loading import Batches, ScriptLoaders


class Loader:
    """The parts of a DataLoader that are asked for, without its checks."""

    def __init__(self, batches: Any = (), *, batch_size: int | None = 4, **parts: Any) -> None:
        self.batches, self.batch_size = batches, batch_size
        facts = {"dataset": range(10), "sampler": range(10), "batch_sampler": None} | parts
        self.dataset, self.sampler, self.batch_sampler = (
            facts[name] for name in ("dataset", "sampler", "batch_sampler")
        )

    def __len__(self) -> int:
        return len(self.batches)


def samples(count: int) -> Any:
    return torch.zeros(count, 3)


def take(loading: ScriptLoaders, loader: Loader, count: int | None = None) -> None:
    batches = Batches(loading, loader, iter(loader.batches))
    for _, _ in zip(range(len(loader.batches) if count is None else count), batches, strict=False):
        pass


def fresh(loading: ScriptLoaders, loader: Loader) -> Any:
    return loading.watch(loader, lambda _: iter(loader.batches))


def real(data: Any, **arguments: Any) -> Any:
    return torch.utils.data.DataLoader(data, **arguments)
