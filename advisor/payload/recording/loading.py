"""What the script's DataLoaders hold and how long they take."""

from __future__ import annotations

import contextlib
import gc
import inspect
import itertools
import math
import opcode
import statistics
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import NamedTuple

import torch
from torch.utils import _python_dispatch

from .. import protocol
from ..replacing import replace
from .batches import batches_of_epoch, leading_dimension, length, num_elements, samples_of_epoch
from .stopwatch import Stopwatch, Worker, one_thread

# Where in the script something was asked for: the functions and instructions that wait for it.


class Caller(NamedTuple):
    """A function that waits for a batch, and at which instruction."""

    code: int
    instruction: int
    is_generator: bool


Place = tuple[Caller, ...]  # where the script asked for a batch, innermost caller first


def place_of_caller() -> Place:
    """The place that asked for the batch that our caller makes."""
    callers = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        callers.append(Caller(id(frame.f_code), frame.f_lasti, _is_generator(frame)))
        frame = frame.f_back
    return tuple(callers)


def _is_generator(frame: FrameType) -> bool:
    return bool(frame.f_code.co_flags & inspect.CO_GENERATOR)


def breaks_at_an_end(frame: FrameType) -> bool:
    """Whether what asks for a batch there is a generator that calls ``next``: it may not run out."""
    code = frame.f_code
    if not _is_generator(frame):
        return False
    return opcode.opname[code.co_code[frame.f_lasti]] not in ("FOR_ITER", "SEND", "YIELD_FROM")


# What one of the script's DataLoaders gave and holds.

# Of two batches the spread could be anything.
LEAST_COMPARED = 3


class LoaderUse:
    """One DataLoader: what the script took from it, in this span and before.

    Attributes:
        trains: its last batch was taken where gradients are recorded.
        has_ended: its newest iterator came to its end.
        place: where the script asked for the span's first batch.
    """

    def __init__(self, loader: torch.utils.data.DataLoader[object], num_workers: int | None) -> None:
        self.loader = loader
        self.num_workers = num_workers
        """How many the script asked for."""
        self.may_leave_mode: bool | None = None
        """Its batches are made without the GPU; None as long as none was made."""
        self.trains = self.has_ended = False
        self.batches: Callable[[], object] = lambda: None
        self._num_iterators = 0
        self._cpu_times_s: list[float] = []
        self._waits_s: list[float] = []
        self._sizes: list[int] = []
        self._contents: list[tuple[int, int]] = []  # samples and elements of each batch
        self.start_span()

    def start_span(self) -> None:
        self._fetches, self._samples = 0, 0
        self.place: Place = ()

    def begin(self, batches: object) -> None:
        self._num_iterators += 1
        self.has_ended = False
        self.batches = weakref.ref(batches)

    @property
    def is_renewed(self) -> bool:
        """No iterator gave more than one batch, as with ``next(iter(loader))``."""
        return 1 < self._num_iterators >= len(self._cpu_times_s)

    def add(self, num_samples: int | None) -> None:
        self._fetches += 1
        self._samples += num_samples or 0
        if num_samples:
            self._sizes.append(num_samples)

    def add_made(self, num_samples: int | None, num_elements: int, time_s: float, cpu_s: float) -> None:
        """What is known of a batch, whether the script got it or not."""
        if num_samples and num_elements:
            self._contents.append((num_samples, num_elements))
        self._cpu_times_s.append(cpu_s)
        self._waits_s.append(max(0.0, time_s - cpu_s))

    def usage(self) -> protocol.Loading:
        """The span's batches, samples and seconds, and what an epoch holds."""
        num_samples = samples_of_epoch(self.loader)
        num_batches = batches_of_epoch(self.loader)
        if self.loader.batch_size is None and self.loader.batch_sampler is None and num_batches:
            # Each element is a batch already: the data set counts those, not samples.
            num_samples = round(num_batches * statistics.mean(self._sizes)) if self._sizes else None
        return {
            "fetches": self._fetches,
            "samples": self._samples or None,
            "seconds": self.seconds(),
            "cpu_seconds": self.cpu_seconds(),
            "num_workers": self.num_workers,
            "num_batches": num_batches,
            "num_samples": num_samples,
            "batch_sizes": [min(self._sizes), max(self._sizes)] if self._sizes else None,
            "is_dynamic": self.loader.batch_size is None and len(set(self._sizes)) > 1,
            "batch_variation": self.batch_variation(),
            "rivals": [],
        }

    def batch_variation(self) -> float | None:
        """Standard deviation over the mean of what batches hold; None of too few.

        The short batch at an epoch's end is short on all GPUs.
        """
        most = max((num_samples for num_samples, _ in self._contents), default=0)
        held = [n for size, n in self._contents if size == most or self.loader.batch_size is None]
        return statistics.stdev(held) / statistics.fmean(held) if len(held) >= LEAST_COMPARED else None

    def seconds(self) -> float:
        """The span's batches at the typical time of one; the first shuffles, opens files, fills caches."""
        return self._fetches * self.batch_s()

    def cpu_seconds(self) -> float:
        return self._fetches * self.batch_cpu_s()

    def batch_s(self) -> float:
        """Seconds of the CPU and of disks and networks for one batch."""
        return self.batch_cpu_s() + statistics.median(_later(self._waits_s))

    def batch_cpu_s(self) -> float:
        """CPU seconds for one batch: the lower quartile, since shared caches only ever add to them."""
        ordered = sorted(_later(self._cpu_times_s))
        return ordered[(len(ordered) - 1) // 4]


def _later(times_s: Sequence[float]) -> Sequence[float]:
    return times_s[1:] or times_s or [0.0]


# Which of several DataLoaders drives the training loop: its end is the end of an epoch.
#
# ``for a in big: b = next(small)`` draws the driving loader first. ``zip`` draws all its loaders from one
# place of the script, so their order tells nothing: the shortest ends it, unless it is made endless.


def lasting(uses: Sequence[LoaderUse]) -> list[LoaderUse]:
    """Those of the loaders that may drive, at least one.

    An inner loop has come to its end when the optimizer steps, and ``next(iter(loader))`` never does.
    """
    ongoing = [use for use in uses if not use.has_ended]
    return [use for use in ongoing if not use.is_renewed] or ongoing or list(uses)


def driving(uses: Sequence[LoaderUse]) -> LoaderUse:
    """The loader that drives, of lasting ones in the order in which the iteration drew from them."""
    together = [use for use in uses if _are_zipped(use.place, uses[0].place)]
    return together[0] if len(together) == 1 else min(together, key=_ends_a_zip)


def _are_zipped(one: Place, other: Place) -> bool:
    """Whether one instruction of the script asked for both, through any generators that pass them on."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    num_shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    own, others = one[: len(one) - num_shared], other[: len(other) - num_shared]
    if own and others and own[-1].code == others[-1].code:
        return False
    return all(caller.is_generator for caller in own + others)


def _ends_a_zip(use: LoaderUse) -> tuple[bool, int, float]:
    """The least of what is zipped ends it: what is not repeated, passed through no generator, short."""
    num_batches = length(use.loader)
    is_cycled = any(isinstance(holder, itertools.cycle) for holder in gc.get_referrers(use.batches()))
    return is_cycled, len(use.place), math.inf if num_batches is None else num_batches


# Of few batches one that something disturbed would decide; more of them are made for their time alone.
MOST_TIMED = 13
MOST_TIMED_S = 2.0
# An evaluation that no backward pass follows tells nothing new after this many batches.
MOST_EVALUATED = 10


class Hooks(NamedTuple):
    """What shows whether batches train anything."""

    gpu_work: Callable[[], object] = lambda: 0
    """Anything that changes when the GPU gets work or memory."""
    backward_passes: Callable[[], object] | None = None
    """Anything that changes when a backward pass runs; None if no evaluation is ended."""
    cut: Callable[[int, int | None], None] = lambda *_: None
    """Gets how many batches an evaluation got and would have got that is ended early."""


NO_HOOKS = Hooks()


class ScriptLoaders:
    """The DataLoaders of the script and the one that feeds its training."""

    def __init__(self, backend: str = "fake") -> None:
        self.num_spans = 0
        self.is_timed = True
        """The batches are the script's own, so their time and their sizes mean something."""
        self.is_measured = backend == "cuda"
        """Iterations are timed on a real GPU as the script runs them, loading included."""
        self.is_evaluating = False
        """The newest batch was taken where no gradients are recorded, and others may follow."""
        self._num_evaluated = 0  # batches in this span
        self._backend = backend
        self._knows_lengths = True
        self._uses: dict[int, LoaderUse] = {}
        self._feeding: LoaderUse | None = None
        self._drawn: list[LoaderUse] = []  # in this span, where gradients are recorded, in order

    def start_span(self) -> None:
        self.num_spans += 1
        self._num_evaluated = 0
        self._drawn = []
        for use in self._uses.values():
            use.start_span()

    def register(self, loader: torch.utils.data.DataLoader[object], num_workers: int) -> None:
        self.use_of(loader).num_workers = num_workers

    def use_of(self, loader: torch.utils.data.DataLoader[object]) -> LoaderUse:
        """What is known of a loader, registered or not."""
        if id(loader) not in self._uses:
            # Where loaders keep their workers, they were not registered.
            use = self._uses[id(loader)] = LoaderUse(loader, getattr(loader, "num_workers", None))
            use.may_leave_mode = True if self._backend == "cpu" else None
        return self._uses[id(loader)]

    def watch(
        self, loader: torch.utils.data.DataLoader[object],
        iterate: Callable[[torch.utils.data.DataLoader[object]], Iterator[object]], hooks: Hooks = NO_HOOKS,
    ) -> Batches:  # fmt: skip
        """The loader's batches, counted and timed; with the hooks for what shows that they train nothing."""
        has_workers = getattr(loader, "num_workers", None)
        if has_workers or not self.use_of(loader).num_workers:
            return Batches(self, loader, iterate(loader), hooks=hooks)
        worker = Worker(loader)
        worker.begin()
        with worker.at_work():  # iterable data may share itself out here
            return Batches(self, loader, iterate(loader), worker=worker, hooks=hooks)

    def took(self, use: LoaderUse) -> None:
        """A loader gave a batch. Where gradients are off it feeds an evaluation, not the training."""
        use.trains = torch.is_grad_enabled()
        self.is_evaluating = not use.trains
        self._num_evaluated += self.is_evaluating
        if use.trains and use not in self._drawn:
            self._drawn.append(use)
        if self._feeding is None or use.trains:
            self._feeding = use

    def ended(self, use: LoaderUse, *, is_passed_on: bool = False) -> None:
        """A loader's newest iterator gives no more; who passes batches on may have the last one yet."""
        use.has_ended = True
        self.is_evaluating &= is_passed_on

    def evaluates(self) -> bool:
        """Whether what runs now belongs to an evaluation."""
        if torch.is_grad_enabled():
            self.is_evaluating = False  # it was left before the loader's end
        return self.is_evaluating

    @property
    def num_evaluated(self) -> int:
        """The span's batches of an evaluation beside training; none where no other batch was taken."""
        return self._num_evaluated if self._drawn else 0

    def usage(self) -> protocol.Loading | None:
        """The loader that drives the training: batches, samples and seconds; None without one."""
        if self._feeding is None:
            return None
        candidates = lasting(self._drawn) or [self._feeding]
        use = driving(candidates)
        usage = use.usage()
        usage["seconds"] = self._sum(use, LoaderUse.seconds)
        usage["cpu_seconds"] = self._sum(use, LoaderUse.cpu_seconds)
        others = [other.usage()["num_batches"] for other in candidates if other is not use]
        # Of loaders that are equally long any may drive.
        usage["rivals"] = others if any(other != usage["num_batches"] for other in others) else []
        if not self.is_timed:
            usage["batch_variation"] = None  # made-up samples are all alike
        if not self._knows_lengths:
            usage |= {"num_batches": None, "num_samples": None, "rivals": []}
        return usage

    def retimed(self, usage: protocol.Loading | None) -> protocol.Loading | None:
        """The usage of a span by more batches than it took; where several loaders add up, as it is."""
        use = self._feeding
        if usage is None or use is None or not usage["cpu_seconds"] or not usage["seconds"]:
            return usage
        seconds, cpu_seconds = usage["seconds"], usage["cpu_seconds"]
        before_s, before_cpu_s = use.batch_s(), use.batch_cpu_s()
        batches = use.batches()
        if isinstance(batches, Batches):
            batches.make_more()
        usage = usage.copy()
        usage["batch_variation"] = use.batch_variation()
        if before_cpu_s:
            usage["seconds"] = seconds * use.batch_s() / before_s
            usage["cpu_seconds"] = cpu_seconds * use.batch_cpu_s() / before_cpu_s
        return usage

    def _sum(self, use: LoaderUse, seconds: Callable[[LoaderUse], float]) -> float | None:
        # With real workers the script's process only waits, which is not how long loading takes.
        if not self.is_timed or (self._backend == "cuda" and use.num_workers):
            return None
        if use.num_workers:
            return seconds(use)
        # Loaders read side by side, such as labelled and unlabelled samples, take turns.
        beside = (other for other in self._uses.values() if other is not use and not other.num_workers)
        return seconds(use) + sum(seconds(other) for other in beside if other.trains)

    def forget_lengths(self) -> None:
        self._knows_lengths = False


class Batches:
    """The iterator that the script gets instead of the DataLoader's own.

    Args:
        batches: the loader's own iterator.
        worker: where the script asked for workers and has none.
        hooks: what shows whether they train anything.
    """

    def __init__(
        self, loading: ScriptLoaders, loader: torch.utils.data.DataLoader[object],
        batches: Iterator[object], *,
        worker: Worker | None = None, hooks: Hooks = NO_HOOKS,
    ) -> None:  # fmt: skip
        self._loading, self._loader, self._batches = loading, loader, batches
        self._worker = worker
        self._use = loading.use_of(loader)
        self._use.begin(self)
        self._hooks = hooks
        self._passes_before = hooks.backward_passes() if hooks.backward_passes else None
        self._num_given = 0
        self._indices = _count_indices(batches)

    def __iter__(self) -> Batches:
        return self

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> object:
        if name == "_batches":
            raise AttributeError(name)  # asked by copy and pickle, before it is there
        return getattr(self._batches, name)

    def __next__(self) -> object:
        if self._is_idle_evaluation() and not breaks_at_an_end(sys._getframe(1)):
            self._hooks.cut(self._num_given, length(self._loader))
            self._loading.ended(self._use, is_passed_on=_is_generator(sys._getframe(1)))
            raise StopIteration
        use, work = self._use, self._hooks.gpu_work()
        try:
            batch, time_s, cpu_s = self._timed()
        except StopIteration:
            # A prefetcher asks for the next batch before it gives the one that it has.
            self._loading.ended(use, is_passed_on=_is_generator(sys._getframe(1)))
            raise
        if use.may_leave_mode is None:
            use.may_leave_mode = self._hooks.gpu_work() == work and torch.get_default_device().type == "cpu"
        use.place = use.place or place_of_caller()
        num_samples = self._size(batch)
        use.add(num_samples)
        use.add_made(num_samples, num_elements(batch), time_s, cpu_s)
        self._num_given += 1
        self._loading.took(use)
        return batch

    def _timed(self) -> tuple[object, float, float]:
        with self._as_a_worker():
            watch = Stopwatch()
            batch = next(self._batches)
            cpu_s, time_s = watch.cpu_s(), watch.elapsed_s()
        return batch, time_s, cpu_s

    def make_more(self) -> None:
        """Time more batches, which are dropped: the script is about to end."""
        begin_s = time.monotonic()
        for _ in range(MOST_TIMED - self._num_given):
            if time.monotonic() - begin_s > MOST_TIMED_S:
                return
            try:
                batch, time_s, cpu_s = self._timed()
                made = self._size(batch), num_elements(batch)
            except Exception:  # noqa: BLE001 - its end, or anything that the script's data may raise
                return
            self._use.add_made(*made, time_s, cpu_s)

    @contextlib.contextmanager
    def _as_a_worker(self) -> Iterator[None]:
        """Without our dispatch mode, which slows every CPU operator; in one thread, if not as a worker."""
        with contextlib.ExitStack() as stack:
            if self._use.may_leave_mode:
                stack.enter_context(_python_dispatch._disable_current_modes())
            if self._worker is not None:
                stack.enter_context(self._worker.at_work())
            elif not self._loading.is_measured:
                stack.enter_context(one_thread())
            yield

    def _is_idle_evaluation(self) -> bool:
        if self._hooks.backward_passes is None or torch.is_grad_enabled() or self._num_given < MOST_EVALUATED:
            return False
        num_batches = length(self._loader)
        is_at_its_end = num_batches is not None and self._num_given >= num_batches
        return self._hooks.backward_passes() == self._passes_before and not is_at_its_end

    def _size(self, batch: object) -> int | None:
        if self._indices:
            return self._indices.pop()
        size = leading_dimension(batch)
        return size if size is not None else self._loader.batch_size


def _count_indices(batches: object) -> list[int]:
    """A list that gets the number of samples of each batch drawn, whatever the batch looks like."""
    drawn: list[int] = []
    draw = getattr(batches, "_next_index", None)
    is_iterable = isinstance(getattr(batches, "_dataset", None), torch.utils.data.IterableDataset)
    if draw is None or is_iterable or not getattr(batches, "_auto_collation", False):
        return drawn

    def counted() -> object:
        indices = draw()
        drawn[:] = [len(indices)] if hasattr(indices, "__len__") else []
        return indices

    replace(batches, _next_index=counted)
    return drawn
