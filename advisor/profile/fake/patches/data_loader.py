"""DataLoader without worker processes and pinned memory, watched.

Workers of a script that is stopped after three batches only cost time, and pinning needs CUDA. What the
script asked for is kept: the trace says how many workers it has and how long one batch takes one.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from advisor.profile.fake.session import Session

_NEED_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")


def install(session: Session) -> None:
    """Wrap construction and iteration."""
    loader = torch.utils.data.DataLoader
    create, iterate = loader.__init__, loader.__iter__
    signature = inspect.signature(create)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        arguments = signature.bind(self, *args, **kwargs).arguments
        num_workers = arguments.get("num_workers", 0)
        arguments.update(num_workers=0, pin_memory=False)
        for name in _NEED_WORKERS:
            arguments.pop(name, None)
        arguments.pop("self")
        create(self, **arguments)
        session.loading.register(self, num_workers)

    def iterate_watched(self: Any) -> Iterator[Any]:
        session.stopper.check()
        return session.loading.watch(self, iterate(self))

    loader.__init__, loader.__iter__ = init, iterate_watched
