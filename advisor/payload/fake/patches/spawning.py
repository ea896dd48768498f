"""``torch.multiprocessing.spawn`` runs rank 0 in this process and starts no other.

A fresh process would know nothing of the pretended GPU, and what rank 0 does says what all of them do.
The script's function makes the process group and says there how many ranks it has. Other processes of
the script are started as they are, and counted: where they train, its own one does nothing.
"""

from __future__ import annotations

import functools
import multiprocessing.process
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


class _Finished:
    """The processes that ``join=False`` would give back."""

    processes: tuple[object, ...] = ()

    def join(self, *_: object, **__: object) -> bool:
        """Say that all have ended."""
        return True


def install(session: Session) -> None:
    """Replace ``spawn`` and ``start_processes``; count what ``Process.start`` starts."""
    _count_processes(session)

    def spawn(
        fn: Callable[..., object],
        args: Any = (),
        nprocs: int = 1,
        join: bool = True,
        *_: object,
        **__: object,
    ) -> object:
        if nprocs < 1:
            raise ValueError(f"nprocs must be 1 or more, not {nprocs}")
        fn(0, *args)
        return None if join else _Finished()

    replace(torch.multiprocessing, spawn=spawn, start_processes=spawn)
    # The function hides the module of the same name.
    module: Any = sys.modules["torch.multiprocessing.spawn"]
    module.spawn = module.start_processes = spawn


def _count_processes(session: Session) -> None:
    process: Any = multiprocessing.process.BaseProcess
    original = process.start

    @functools.wraps(original)
    def start(self: Any) -> None:
        session.num_processes += 1
        original(self)

    process.start = start
