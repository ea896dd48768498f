"""Measures an iteration on a real GPU: first its time, alone; then its kernels, with a profiler beside it.

The profiler slows the host, so the time of the whole iteration comes from CUDA events of spans that
pass unwatched, and from the watched span come kernels only. No privileged counters are needed.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .composite import is_composite, take_apart
from .fake.mode import desugars_itself
from .progress import Stopper
from .protocol import MARK, Iteration, Memory
from .recording.batches import samples_of
from .recording.memory import MemoryTracker
from .recording.recorder import Recorder

if TYPE_CHECKING:
    from torch._ops import OpOverload

    from .composite import Args, Kwargs, Types
    from .session import Session


# The dispatch mode of a real device: every operator runs as it is, and those on the device are reported.

aten = torch.ops.aten


class WatchingMode(TorchDispatchMode):
    """Tells the recorder and the tracker what runs on a device."""

    def __init__(self, recorder: Recorder, memory: MemoryTracker, stopper: Stopper, device_type: str) -> None:
        TorchDispatchMode.__init__(self)
        self.recorder = recorder
        self.memory = memory
        self.stopper = stopper
        self.unknown_operators: dict[str, str] = {}
        """None, since every operator runs."""
        self.assumptions: dict[str, None] = {}
        """None, since all values are known."""
        self.marks_calls = False
        """Whether each call leaves a mark in a profiler's timeline."""
        self.has_made_up = False
        self._device_type = device_type

    def __torch_dispatch__(
        self, func: OpOverload, types: Types, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        self.stopper.check()
        kwargs = kwargs or {}
        if any(desugars_itself(kind) for kind in types):
            return NotImplemented
        if is_composite(func):
            return take_apart(self, func, args, kwargs)
        # Before it runs, since the backward pass of a GPU has a thread of its own.
        call = self.recorder.number()
        result = self._run(func, args, kwargs, call)
        self._track(result)
        crossing = self._crossing(func, args, result)
        if crossing is not None:
            self.recorder.record_copy(*crossing, call=call)
        elif self._concerns(result) or self._concerns(args) or self._concerns(tuple(kwargs.values())):
            self.recorder.record(func, args, kwargs, result, call=call)
        return result

    def _run(self, func: OpOverload, args: Args, kwargs: Kwargs, call: int) -> object:
        if not self.marks_calls:
            return func(*args, **kwargs)
        with torch.autograd.profiler.record_function(f"{MARK}{call}"):
            return func(*args, **kwargs)

    def _track(self, result: object) -> None:
        if isinstance(result, torch.Tensor):
            if result.device.type == self._device_type and result.layout is torch.strided:
                self.memory.track(result)
        elif isinstance(result, (list, tuple)):
            for item in result:
                self._track(item)

    def _concerns(self, value: object) -> bool:
        if isinstance(value, torch.Tensor):
            return bool(value.device.type == self._device_type)
        return isinstance(value, (list, tuple)) and any(self._concerns(item) for item in value)

    def _crossing(
        self, func: OpOverload, args: Args, result: object
    ) -> tuple[str, torch.Tensor, torch.dtype] | None:
        """Name, source and target dtype of a copy between host and GPU."""
        if self._device_type == "cpu":
            return None
        if func in (aten._local_scalar_dense.default, aten.item.default):
            # Optimizers count their steps on the CPU.
            read = cast("torch.Tensor", args[0])
            return ("advisor::d2h_copy", read, read.dtype) if self._concerns(read) else None
        if func is aten._to_copy.default:
            source, target = cast("tuple[torch.Tensor, torch.Tensor]", (args[0], result))
        elif func is aten.copy_.default:
            target, source = cast("tuple[torch.Tensor, torch.Tensor]", args[:2])
        else:
            return None
        if source.device.type == target.device.type:
            return None
        to_gpu = target.device.type == self._device_type
        return "advisor::h2d_copy" if to_gpu else "advisor::d2h_copy", source, target.dtype


# cuDNN's search, the allocator and the clocks settle first; loops log or save at iteration 0.
WARM_UP_SPANS = 4
TIMED_SPANS = 8
# Steps on the CPU, of which the first tells nothing, and the seconds after which fewer do.
CPU_SPANS = 8
CPU_S = 20.0
# A span like most others is wanted; an epoch's short last one is followed by a full one.
_WATCHED_SPANS = 3
_NO_TASK = -1


class CpuStepClock:
    """Times steps on the CPU, some of them or as many as end within some seconds."""

    num_spans = CPU_SPANS

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._ends_s = [clock()]
        self.result: Iteration | None = None
        """Their seconds, None until there are enough."""

    def end_span(self, count: int, span: Iteration, *, is_steady: bool) -> None:  # noqa: ARG002
        """A step has ended; the first holds set-up, and what was loaded before it."""
        self._ends_s.append(self._clock())
        times_s = [end - begin for begin, end in zip(self._ends_s[1:], self._ends_s[2:], strict=False)]
        is_late = self._ends_s[-1] - self._ends_s[0] > CPU_S
        if len(times_s) >= self.num_spans or (times_s and is_late):
            self.result = {"step_times_s": times_s}


class SpanMeasurement:
    """What is done at the end of which span."""

    num_spans = WARM_UP_SPANS + TIMED_SPANS + 1
    """Those that are needed if all are alike."""

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
        """What was measured, None until all is."""

    def end_span(self, count: int, span: Iteration, *, is_steady: bool) -> None:
        """Go on to what the next span is for."""
        samples = samples_of(span)
        if count != self._last_count + 1:
            # Another optimizer turned out to bound the iteration: what was timed is a part of it.
            if self._profiler is not None:
                self._stop_watching(self._profiler)
            self._events, self._samples, self._num_watched = [], [], 0
        self._last_count = count
        if self._profiler is not None:
            self._num_watched += 1
            if samples == self._usual_samples() or self._num_watched == _WATCHED_SPANS:
                self._stop_watching(self._profiler)
                self.result = {
                    "iteration_s": self._iteration_s(),
                    "memory": self._memory(span["memory"]),
                    "device_name": torch.cuda.get_device_name(),
                }
        elif self._events:
            self._mark(samples)
            if len(self._events) > TIMED_SPANS:
                self._start_watching()
        elif count >= WARM_UP_SPANS and is_steady:
            torch.cuda.reset_peak_memory_stats()
            self._mark(samples)

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

    def _memory(self, owned: Memory) -> Memory:
        """The allocator's peak; activations are what the owned tensors leave of it."""
        known = owned["parameter_bytes"] + owned["gradient_bytes"] + owned["optimizer_bytes"]
        return {
            **owned, "activation_bytes": max(0, self._peak_bytes - known), "peak_bytes": self._peak_bytes,
            "pass_activation_bytes": None, "pass_peak_bytes": None, "most_activation_bytes": None,
        }  # fmt: skip

    def _usual_samples(self) -> int:
        """Of most timed spans: a step that a GradScaler skips makes one of twice as many."""
        return statistics.mode(self._samples[1:])

    def _iteration_s(self) -> float:
        """Median of the timed spans that hold as many samples as most, from the GPU's own clock."""
        usual = self._usual_samples()
        spans = zip(self._events, self._events[1:], self._samples[1:], strict=False)
        seconds = [begin.elapsed_time(end) * 1e-3 for begin, end, samples in spans if samples == usual]
        return float(statistics.median(seconds))
