"""A DataLoader's worker where there is none: the script's own process makes the batches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch.utils.data._utils import worker


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch's operators, as a worker process has; afterwards as many as before.

    Several spin while one of them waits for a core, which counts as CPU seconds: on a busy machine up to
    200 times those of the work.
    """
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)


class _Info(worker.WorkerInfo):
    """Takes attributes, too: torch's own refuses them, of which a profile need not die."""

    __setattr__ = object.__setattr__


class Worker:
    """What the only worker of one iterator knows of itself.

    Data sets share themselves out by it and read random generators that `worker_init_fn` left in it.
    """

    def __init__(self, loader: torch.utils.data.DataLoader[object]) -> None:
        self._info = _Info(id=0, num_workers=1, seed=torch.initial_seed(), dataset=loader.dataset)
        self._begin = getattr(loader, "worker_init_fn", None)

    def begin(self) -> None:
        """What a worker does before its first batch."""
        if self._begin is not None:
            with self.at_work():
                self._begin(0)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """One thread, as a worker process has; ``torch.utils.data.get_worker_info`` knows the worker."""
        before, worker._worker_info = worker._worker_info, self._info
        try:
            with one_thread():
                yield
        finally:
            worker._worker_info = before
