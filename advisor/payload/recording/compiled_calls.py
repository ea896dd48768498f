"""What of an iteration runs inside of what ``torch.compile`` was given.

Profiling runs it uncompiled. Of the operators of the forward pass those count that modules or compiled
functions run: copies and a loss between them belong to neither. If most run compiled, the step is, and its
backward pass with it; a helper that is compiled alone leaves the rest as it is.
"""

from __future__ import annotations

import sys
import weakref
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from .recorder import READ, Recorder

Region = tuple[int, int]  # the numbers of its first call and of the one after its last
DEFAULT = "default"
_GRAPHS = "reduce-overhead"
_AUTOTUNE = "max-autotune"
_MOST = 0.5  # of the calls of the forward pass


# Settings of torch._dynamo by which what needs values stays in a graph; both are off by default.
_CAPTURES = {True: "capture_scalar_outputs", False: "capture_dynamic_output_shape_ops"}


def mode_of(mode: object = None, backend: object = "inductor", options: object = None) -> str | None:
    """The mode that arguments of ``torch.compile`` ask for; None of a backend other than Inductor."""
    if backend != "inductor":
        return None
    given = options if isinstance(options, dict) else {}
    if given.get("max_autotune"):
        mode = _AUTOTUNE if given.get("triton.cudagraphs") else f"{_AUTOTUNE}-no-cudagraphs"
    elif given.get("triton.cudagraphs"):
        mode = _GRAPHS
    return mode if isinstance(mode, str) else DEFAULT


class Compiled:
    """Follows the calls of compiled modules and functions."""

    def __init__(self, recorder: Recorder) -> None:
        self.is_asked = False
        self.everywhere: str | None = None
        """The mode of a real GPU's compiler, which runs what was compiled itself."""
        # By identity, since a script's modules may compare in ways of their own.
        self._modules: dict[int, tuple[weakref.ref[torch.nn.Module], str]] = {}
        self._recorder = recorder
        self._entered: list[tuple[int, str | None]] = []
        self._whole: list[Region] = []
        self._regions: dict[str, list[Region]] = {}

    def add(self, module: torch.nn.Module, mode: str) -> None:
        self._modules[id(module)] = weakref.ref(module), mode

    def mode_of(self, module: torch.nn.Module) -> str | None:
        """In which mode the module itself is compiled; None if it is not."""
        module_then, mode = self._modules.get(id(module), (None, None))
        return mode if module_then is not None and module_then() is module else None

    def start_span(self) -> None:
        self._whole, self._regions = [], {}

    def enter(self, mode: str | None) -> None:
        """A module or function begins, compiled in this mode or not."""
        self._entered.append((self._recorder.next_call, mode))

    def leave(self) -> None:
        """It has ended; of nested ones the outermost counts."""
        if not self._entered:
            return
        first, mode = self._entered.pop()
        region = first, self._recorder.next_call
        if not self._entered:
            self._whole.append(region)
        if mode is not None and all(other is None for _, other in self._entered):
            self._regions.setdefault(mode, []).append(region)

    @contextmanager
    def region(self, mode: str | None) -> Iterator[None]:
        self.enter(mode)
        try:
            yield
        finally:
            self.leave()

    def mode(self) -> str | None:
        """The mode of the region with most of the forward pass; None if most runs outside of all of them."""
        if self.everywhere is not None:
            return self.everywhere
        whole, compiled = self._with_open()
        if not compiled:
            return None
        numbers = sorted(self._recorder.forward_calls())
        inside = {mode: _num_in(regions, numbers) for mode, regions in compiled.items()}
        if sum(inside.values()) <= _MOST * _num_in(whole, numbers):
            return None
        return max(inside, key=lambda mode: inside[mode])

    def breaks(self) -> dict[str, int]:
        """How often at least Dynamo would have ended a graph inside, by operator.

        It does where Python reads a value or a shape follows from one (``torch._dynamo.explain`` of 2.13).
        What else it cannot compile, such as libraries in C, is not seen.
        """
        regions = [region for own in self._with_open()[1].values() for region in own]
        found = {
            name: _num_in(regions, numbers)
            for name, numbers in self._recorder.value_calls.items()
            if not getattr(sys.modules.get("torch._dynamo.config"), _CAPTURES[name == READ], False)
        }
        return {name: number for name, number in found.items() if number}

    def _with_open(self) -> tuple[list[Region], dict[str, list[Region]]]:
        """All regions: a whole step that is compiled has not ended when its optimizer steps."""
        now, compiled = self._recorder.next_call, dict(self._regions)
        first_open = next(((first, mode) for first, mode in self._entered if mode is not None), None)
        if first_open is not None:
            first, mode = first_open
            compiled[mode] = [*compiled.get(mode, []), (first, now)]
        return [*self._whole, *((first, now) for first, _ in self._entered[:1])], compiled


def _num_in(regions: list[Region], numbers: list[int]) -> int:
    return sum(bisect_left(numbers, end) - bisect_left(numbers, first) for first, end in regions)
