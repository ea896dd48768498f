"""What one of the script's DataLoaders gave and holds."""

from __future__ import annotations

import statistics
import weakref
from collections.abc import Callable, Sequence

import torch

from ..protocol import Loading
from .extent import batches_of_epoch, samples_of_epoch
from .places import Place

# Of two batches the spread could be anything.
LEAST_COMPARED = 3


class LoaderUse:
    """One DataLoader: what the script took from it, in this span and before.

    Attributes:
        num_workers: how many the script asked for.
        may_leave_mode: its batches are made without the GPU; None as long as none was made.
        trains: its last batch was taken where gradients are recorded.
        has_ended: its newest iterator came to its end.
        place: where the script asked for the span's first batch.
    """

    def __init__(self, loader: torch.utils.data.DataLoader[object], num_workers: int | None) -> None:
        self.loader = loader
        self.num_workers = num_workers
        self.may_leave_mode: bool | None = None
        self.trains = self.has_ended = False
        self.batches: Callable[[], object] = lambda: None
        self._num_iterators = 0
        self._cpu_times_s: list[float] = []
        self._waits_s: list[float] = []
        self._sizes: list[int] = []
        self._contents: list[tuple[int, int]] = []  # samples and elements of each batch
        self.start_span()

    def start_span(self) -> None:
        """Forget the batches so far, not what they taught."""
        self._fetches, self._samples = 0, 0
        self.place: Place = ()

    def begin(self, batches: object) -> None:
        """The script makes an iterator."""
        self._num_iterators += 1
        self.has_ended = False
        self.batches = weakref.ref(batches)

    @property
    def is_renewed(self) -> bool:
        """No iterator gave more than one batch, as with ``next(iter(loader))``."""
        return 1 < self._num_iterators >= len(self._cpu_times_s)

    def add(self, num_samples: int | None) -> None:
        """Count one batch that the script got."""
        self._fetches += 1
        self._samples += num_samples or 0
        if num_samples:
            self._sizes.append(num_samples)

    def add_made(self, num_samples: int | None, num_elements: int, time_s: float, cpu_s: float) -> None:
        """What is known of a batch that the script got, or that nobody gets."""
        if num_samples and num_elements:
            self._contents.append((num_samples, num_elements))
        self._cpu_times_s.append(cpu_s)
        self._waits_s.append(max(0.0, time_s - cpu_s))

    def usage(self) -> Loading:
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
            "is_dynamic": self._has_batches_of_any_size and len(set(self._sizes)) > 1,
            "batch_variation": self.batch_variation(),
            "rivals": [],
        }

    @property
    def _has_batches_of_any_size(self) -> bool:
        return self.loader.batch_size is None

    def batch_variation(self) -> float | None:
        """Standard deviation over the mean of what batches hold; None of too few.

        The short batch at an epoch's end is short on all GPUs.
        """
        most = max((num_samples for num_samples, _ in self._contents), default=0)
        held = [n for size, n in self._contents if size == most or self._has_batches_of_any_size]
        return statistics.stdev(held) / statistics.fmean(held) if len(held) >= LEAST_COMPARED else None

    def seconds(self) -> float:
        """The span's batches at the typical time of one; the first shuffles, opens files, fills caches."""
        return self._fetches * self.batch_s()

    def cpu_seconds(self) -> float:
        """The same of the CPU alone."""
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
