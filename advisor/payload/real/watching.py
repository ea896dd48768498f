"""The dispatch mode of a real device: every operator runs as it is, and those on the device are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..composite import is_composite, take_apart
from ..fake.mode import desugars_itself
from ..protocol import MARK
from ..recording.memory import MemoryTracker
from ..recording.recorder import Recorder
from ..stop import Stopper

if TYPE_CHECKING:
    from torch._ops import OpOverload

    from ..dispatch import Args, Kwargs, Types

aten = torch.ops.aten


class WatchingMode(TorchDispatchMode):
    """Tells the recorder and the tracker what runs on a device.

    Attributes:
        unknown_operators: none, since every operator runs.
        assumptions: none, since all values are known.
        has_made_up: never.
        marks_calls: whether each call leaves a mark in a profiler's timeline.
    """

    def __init__(self, recorder: Recorder, memory: MemoryTracker, stopper: Stopper, device_type: str) -> None:
        TorchDispatchMode.__init__(self)
        self.recorder = recorder
        self.memory = memory
        self.stopper = stopper
        self.unknown_operators: dict[str, str] = {}
        self.assumptions: dict[str, None] = {}
        self.marks_calls = False
        self.has_made_up = False
        self._device_type = device_type

    def __torch_dispatch__(
        self, func: OpOverload, types: Types, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
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
