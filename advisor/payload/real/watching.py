"""The dispatch mode of a real device: every operator runs as it is, and those on the device are told."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..composite import is_composite, take_apart
from ..fake.mode import desugars_itself
from ..recording.memory import MemoryTracker
from ..recording.recorder import Recorder
from ..stop import Stopper

aten = torch.ops.aten
# Marks in the profiler's timeline that lead from a kernel to the recorded call: "advisor#12".
MARK = "advisor#"


class WatchingMode(TorchDispatchMode):  # type: ignore[misc]
    """Tells the recorder and the tracker what runs on a device.

    Attributes:
        unknown_operators: none, since every operator runs.
        assumptions: none, since all values are known.
        marks_calls: whether each call leaves a mark in a profiler's timeline.
    """

    def __init__(self, recorder: Recorder, memory: MemoryTracker, stopper: Stopper, device_type: str) -> None:
        super().__init__()
        self.recorder = recorder
        self.memory = memory
        self.stopper = stopper
        self.unknown_operators: dict[str, str] = {}
        self.assumptions: dict[str, None] = {}
        self.marks_calls = False
        self._device_type = device_type

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operator and record it if it concerns the device."""
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

    def _run(self, func: Any, args: Any, kwargs: dict[str, Any], call: int) -> Any:
        if not self.marks_calls:
            return func(*args, **kwargs)
        with torch.autograd.profiler.record_function(f"{MARK}{call}"):
            return func(*args, **kwargs)

    def _track(self, result: Any) -> None:
        if isinstance(result, torch.Tensor):
            if result.device.type == self._device_type and result.layout is torch.strided:
                self.memory.track(result)
        elif isinstance(result, (list, tuple)):
            for item in result:
                self._track(item)

    def _concerns(self, value: Any) -> bool:
        if isinstance(value, torch.Tensor):
            return bool(value.device.type == self._device_type)
        return isinstance(value, (list, tuple)) and any(self._concerns(item) for item in value)

    def _crossing(self, func: Any, args: Any, result: Any) -> tuple[str, Any, Any] | None:
        """Name, source and target dtype of a copy between host and GPU."""
        if self._device_type == "cpu":
            return None
        if func in (aten._local_scalar_dense.default, aten.item.default):
            # Optimizers count their steps on the CPU.
            is_there = args[0].device.type == self._device_type
            return ("advisor::d2h_copy", args[0], args[0].dtype) if is_there else None
        if func is aten._to_copy.default:
            source, target = args[0], result
        elif func is aten.copy_.default:
            target, source = args[:2]
        else:
            return None
        if source.device.type == target.device.type:
            return None
        to_gpu = target.device.type == self._device_type
        return "advisor::h2d_copy" if to_gpu else "advisor::d2h_copy", source, target.dtype
