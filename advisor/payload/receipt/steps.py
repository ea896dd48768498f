"""Counts the steps of a training's optimizer and times them, without waiting for the GPU.

A GPU runs behind the host by some iterations, so the time between two steps says little of either. What is
timed is the mean of a block of steps, long enough for both to have done the same. Means are kept as a
histogram with buckets of one per cent: it stays small, and quantiles come out of it.
"""

from __future__ import annotations

import atexit
import os
import sys
from math import log
from time import perf_counter

# As typing's, which would take longer to import than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

VERSION = 1
PER_FACTOR_E = 100
"""Buckets of the histogram for each factor of e: one per cent each."""
LEAST_BLOCK_S, LEAST_BLOCK_STEPS = 2.0, 20
WRITE_EVERY_S = 10.0
"""So much of a process that is killed is lost."""
_MODULE = "torch.optim.optimizer"


class StepClock:
    """The steps of one process: those of its first optimizer, since an iteration may have several."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.restart()

    def restart(self) -> None:
        """Count from nothing, as a fork must, which has all that its parent counted."""
        self.num_steps = 0
        self.failure: str | None = None
        self._counted: Any = lambda: None
        self._first = self._last = self._block_start = 0.0
        self._in_block = 0
        self._blocks: dict[int, int] = {}
        self._written = -WRITE_EVERY_S

    def after_step(self, optimizer: object, arguments: object, keywords: object) -> None:  # noqa: ARG002
        if self.failure is not None:
            return
        try:
            if self._counted() is optimizer:
                self._count(perf_counter())
            elif self._counted() is None:
                self._take(optimizer, perf_counter())
        except Exception as error:  # noqa: BLE001 - the training goes on
            self.failure = type(error).__name__

    # torch.compile would trace it where a step is compiled, and warn of the clock.
    after_step._torchdynamo_disable = True  # type: ignore[attr-defined]

    def _count(self, now: float) -> None:
        self.num_steps += 1
        self._in_block += 1
        self._last = now
        if now - self._block_start >= LEAST_BLOCK_S and self._in_block >= LEAST_BLOCK_STEPS:
            self._close_block()
            if now - self._written >= WRITE_EVERY_S:
                self._written = now
                self.write()

    def _take(self, optimizer: object, now: float) -> None:
        """Count this optimizer from now on: it is the first, or the one before it is gone."""
        from weakref import ref

        if not self.num_steps:
            self._first = now
        self._counted = ref(optimizer)
        self.num_steps += 1
        self._last = self._block_start = now
        self._in_block = 0

    def _close_block(self) -> None:
        mean_s = (self._last - self._block_start) / self._in_block
        bucket = round(PER_FACTOR_E * log(max(mean_s, 1e-9)))
        self._blocks[bucket] = self._blocks.get(bucket, 0) + self._in_block
        self._block_start, self._in_block = self._last, 0

    def write(self) -> None:
        """What was seen so far, whole or not at all; ``advisor/receipt/receipt_files.py`` reads it.

        ``blocks`` are pairs of a bucket and the steps in it: bucket b is a mean of ``exp(b / PER_FACTOR_E)``
        seconds.
        """
        from json import dumps

        if not self.num_steps and self.failure is None:
            return
        pid = os.getpid()
        path = os.path.join(self.folder, f"{pid}.json")
        record = {
            "version": VERSION, "pid": pid, "rank": _rank(), "num_steps": self.num_steps,
            "span_s": self._last - self._first, "blocks": sorted(self._blocks.items()),
            "failure": self.failure,
        }  # fmt: skip
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(f"{path}.part", flags, 0o600)
        with os.fdopen(handle, "w") as part:
            part.write(dumps(record))
        os.replace(f"{path}.part", path)

    def end(self) -> None:
        """Write the last block, however short it is."""
        try:
            if self._in_block:
                self._close_block()
            self.write()
        except Exception:  # noqa: BLE001, S110 - the folder may be gone
            pass


def watch(folder: str) -> None:
    """Count the steps of this process, once it imports torch."""
    sys.meta_path.insert(0, _Finder(StepClock(folder)))


class _Finder:
    """Waits for torch's optimizers; the other finders find them."""

    def __init__(self, clock: StepClock) -> None:
        self.clock = clock

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of the others; that of torch's optimizers calls us once the module was executed."""
        if fullname != _MODULE:
            return None
        sys.meta_path.remove(self)
        specs = (finder.find_spec(fullname, path, target) for finder in sys.meta_path)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                clock = self.clock
                try:
                    # torch 1 has no such hook: then no steps are seen.
                    module.register_optimizer_step_post_hook(clock.after_step)
                    atexit.register(clock.end)
                    if hasattr(os, "register_at_fork"):
                        os.register_at_fork(after_in_child=clock.restart)
                except Exception:  # noqa: BLE001, S110 - the training goes on
                    pass

            loader.exec_module = exec_module
        return spec


def _rank() -> int | None:
    """Of this process among those that train together; None where unknown."""
    rank = os.environ.get("RANK", "")
    if rank.isdecimal() and len(rank) < 10:
        return int(rank)
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        return int(distributed.get_rank()) if distributed.is_initialized() else None
    except Exception:  # noqa: BLE001 - not there, not built in, or torn down
        return None
