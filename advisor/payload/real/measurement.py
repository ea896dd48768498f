"""Measures an iteration on a real GPU: first its time, alone; then its kernels, with a profiler beside it.

The profiler slows the host, so the time of the whole iteration comes from CUDA events of spans that
nobody watches, and from the watched span come kernels only. No privileged counters are needed.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from ..protocol import Iteration, Memory
from ..recording.extent import samples_of

if TYPE_CHECKING:
    from ..session import Session

# cuDNN's search, the allocator and the clocks settle first; loops log or save at iteration 0.
WARM_UP_SPANS = 4
TIMED_SPANS = 8
# A span like most others is wanted; an epoch's short last one is followed by a full one.
_WATCHED_SPANS = 3
_NO_TASK = -1


class Measurement:
    """What is done at the end of which span.

    Args:
        session: of this run.
        timeline: file for the profiler's export.
        watch: is called when watching begins.

    Attributes:
        result: what was measured, None until all is.
    """

    def __init__(self, session: Session, timeline: str, watch: Callable[[], None]) -> None:
        self._session = session
        self._timeline = timeline
        self._watch = watch
        self._last_count = 0
        self._num_watched = 0
        self._events: list[torch.cuda.Event] = []
        self._samples: list[int] = []
        self._profiler: torch.profiler.profile | None = None
        self._entered = contextlib.ExitStack()
        self._peak_bytes = 0
        self.result: Iteration | None = None

    @property
    def num_spans(self) -> int:
        """Spans that are needed if all are alike."""
        return WARM_UP_SPANS + TIMED_SPANS + 1

    def end_span(self, count: int, span: Iteration, *, is_steady: bool) -> None:
        """Go on to what the next span is for."""
        samples = samples_of(span)
        if count != self._last_count + 1:
            self._restart()
        self._last_count = count
        if self._profiler is not None:
            self._num_watched += 1
            if samples == self._usual_samples() or self._num_watched == _WATCHED_SPANS:
                self._stop_watching(self._profiler)
                self._finish(span)
        elif self._events:
            self._mark(samples)
            if len(self._events) > TIMED_SPANS:
                self._start_watching()
        elif count >= WARM_UP_SPANS and is_steady:
            torch.cuda.reset_peak_memory_stats()
            self._mark(samples)

    def _restart(self) -> None:
        """Another optimizer turned out to bound the iteration: what was timed is a part of it."""
        if self._profiler is not None:
            self._stop_watching(self._profiler)
        self._events, self._samples, self._num_watched = [], [], 0

    def _mark(self, samples: int) -> None:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self._events.append(event)
        self._samples.append(samples)

    def _start_watching(self) -> None:
        if torch._C._current_graph_task_id() != _NO_TASK:
            raise RuntimeError(
                "the optimizer steps inside the backward pass, which cannot be watched on a GPU"
            )
        torch.cuda.synchronize()
        self._peak_bytes = torch.cuda.max_memory_allocated()
        activities = torch.profiler.ProfilerActivity
        self._profiler = torch.profiler.profile(activities=[activities.CPU, activities.CUDA])
        self._profiler.start()
        self._watch()
        self._session.watching.marks_calls = True
        self._entered.enter_context(self._session.watching)

    def _stop_watching(self, profiler: torch.profiler.profile) -> None:
        self._entered.close()
        self._session.watching.marks_calls = False
        torch.cuda.synchronize()
        profiler.stop()
        profiler.export_chrome_trace(self._timeline)
        self._profiler = None

    def _finish(self, span: Iteration) -> None:
        self.result = {
            "iteration_s": self._iteration_s(),
            "memory": self._memory(span["memory"]),
            "device_name": torch.cuda.get_device_name(),
        }

    def _memory(self, owned: Memory) -> Memory:
        """The allocator's peak; activations are what the owned tensors leave of it."""
        known = owned["parameter_bytes"] + owned["gradient_bytes"] + owned["optimizer_bytes"]
        return {
            **owned,
            "activation_bytes": max(0, self._peak_bytes - known),
            "peak_bytes": self._peak_bytes,
            "pass_activation_bytes": None,
            "pass_peak_bytes": None,
            "most_activation_bytes": None,
        }

    def _usual_samples(self) -> int:
        """Of most timed spans: a step that a GradScaler skips makes one of twice as many."""
        return statistics.mode(self._samples[1:])

    def _iteration_s(self) -> float:
        """Median of the timed spans that hold as many samples as most, from the GPU's own clock."""
        usual = self._usual_samples()
        spans = zip(self._events, self._events[1:], self._samples[1:], strict=False)
        seconds = [begin.elapsed_time(end) * 1e-3 for begin, end, samples in spans if samples == usual]
        return float(statistics.median(seconds))
