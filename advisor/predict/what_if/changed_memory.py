"""Memory of a changed script: the peak of its passes moves, what the optimizer's step holds stays."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from advisor.core.values import MemoryUse
from advisor.predict.what_if.held_tensors import Held

# Of the gradients: where a pass has made so many itself, none are left from before.
_MOST = 0.9


def of_larger_batch(memory: MemoryUse, factor: int) -> MemoryUse:
    """Activations as many times as large; nothing is known where a profiler left them out."""
    passes = _passes(memory)
    if passes is None:
        return replace(memory, peak_bytes=None)
    grown_bytes = passes.peak_bytes + (factor - 1) * passes.activation_bytes
    most_bytes = factor * passes.most_bytes
    peak_bytes, activation_bytes = max(grown_bytes, passes.kept_bytes + most_bytes), passes.activation_bytes
    return _with(memory, _Passes(passes.kept_bytes, peak_bytes, factor * activation_bytes, most_bytes))


def of_more_passes(memory: MemoryUse) -> MemoryUse:
    """Gradients of the passes before are there when activations take most."""
    passes = _passes(memory)
    if passes is None or memory.gradient_bytes is None:
        return memory
    full_bytes = passes.kept_bytes + memory.gradient_bytes + passes.most_bytes
    peak_bytes = max(passes.peak_bytes, full_bytes)
    return _with(memory, passes._replace(peak_bytes=peak_bytes, activation_bytes=passes.most_bytes))


def of_lower_precision(memory: MemoryUse, before: Held, after: Held, share: float) -> MemoryUse:
    """Activations as the passes hold them before and after.

    Args:
        before: what its passes were worked out to hold.
        after: what they hold in lower precision.
        share: that remains of what is not accounted for, such as results that the script keeps.
    """
    passes = _passes(memory)
    if passes is None:
        return memory
    # A file may tell a peak below its parts.
    beside_bytes = max(0, passes.peak_bytes - passes.kept_bytes - passes.activation_bytes)
    gradient_bytes = min(beside_bytes, memory.gradient_bytes or 0)
    peak = _Peak(activation_bytes=passes.activation_bytes, gradient_bytes=gradient_bytes)
    moved = peak.moved(passes.most_bytes, memory.gradient_bytes or 0, before, after, share)
    most_bytes = _moved(passes.most_bytes, before.most_bytes, after.most_bytes, share)
    always_bytes = passes.kept_bytes + beside_bytes - gradient_bytes
    peak_bytes = always_bytes + max(moved.activation_bytes + moved.gradient_bytes, most_bytes)
    return _with(memory, _Passes(passes.kept_bytes, peak_bytes, moved.activation_bytes, most_bytes))


class _Peak(NamedTuple):
    """What is there when passes hold most."""

    activation_bytes: int
    gradient_bytes: int

    def moved(
        self, most_bytes: int, all_gradient_bytes: int, before: Held, after: Held, share: float
    ) -> _Peak:
        """The peak in lower precision, at the moment that the profile's tells of."""
        if self.gradient_bytes == all_gradient_bytes and before.gradient_bytes < _MOST * all_gradient_bytes:
            # They are of a step or pass before, which is there until the backward pass begins, or longer.
            is_backward = self.activation_bytes >= most_bytes
            moment = attrgetter("most_bytes" if is_backward else "forward_bytes")
            activation_bytes = _moved(self.activation_bytes, moment(before), moment(after), share)
            return self._replace(activation_bytes=activation_bytes)
        sum_bytes = _moved(
            self.activation_bytes + self.gradient_bytes,
            before.peak_bytes + before.gradient_bytes,
            after.peak_bytes + after.gradient_bytes,
            share,
        )
        more_bytes = round(after.gradient_bytes - before.gradient_bytes)
        gradient_bytes = min(max(0, self.gradient_bytes + more_bytes), all_gradient_bytes, sum_bytes)
        return _Peak(activation_bytes=sum_bytes - gradient_bytes, gradient_bytes=gradient_bytes)


def _moved(measured_bytes: int, before_bytes: float, after_bytes: float, share: float) -> int:
    """As much more or less as was worked out; where that is not all, a share remains of the rest."""
    if before_bytes > measured_bytes:
        return round(after_bytes * measured_bytes / before_bytes)
    return round(after_bytes + share * (measured_bytes - before_bytes))


def of_fused_step(memory: MemoryUse) -> MemoryUse:
    """The optimizer's step holds no list of its own beside its state."""
    passes = _passes(memory)
    if passes is None or memory.pass_peak_bytes is None or memory.peak_bytes is None:
        return memory
    peak_bytes = min(memory.peak_bytes, max(passes.peak_bytes, memory.state_bytes))
    return _with_peak(memory, peak_bytes)


class _Passes(NamedTuple):
    """Forward and backward passes: parameters and optimizer state, which they keep, and their peak.

    Of activations those at the peak, and the most, whenever that is.
    """

    kept_bytes: int
    peak_bytes: int
    activation_bytes: int
    most_bytes: int


def _passes(memory: MemoryUse) -> _Passes | None:
    """As recorded; a trace without passes of their own is taken to have its peak in them."""
    activation_bytes, peak_bytes = memory.pass_activation_bytes, memory.pass_peak_bytes
    activation_bytes = memory.activation_bytes if activation_bytes is None else activation_bytes
    peak_bytes = memory.peak_bytes if peak_bytes is None else peak_bytes
    if activation_bytes is None or peak_bytes is None:
        return None
    kept_bytes = (memory.parameter_bytes or 0) + (memory.optimizer_bytes or 0)
    most_bytes = memory.most_activation_bytes or activation_bytes
    return _Passes(kept_bytes, peak_bytes, activation_bytes, most_bytes)


def _with(memory: MemoryUse, passes: _Passes) -> MemoryUse:
    """The memory with other passes; the step's own peak stays where it was above theirs."""
    step_bytes = memory.state_bytes
    if memory.pass_peak_bytes is not None and (memory.peak_bytes or 0) > memory.pass_peak_bytes:
        step_bytes = memory.peak_bytes or 0
    changed = replace(
        memory,
        pass_activation_bytes=passes.activation_bytes,
        pass_peak_bytes=passes.peak_bytes,
        most_activation_bytes=passes.most_bytes,
    )
    return _with_peak(changed, max(step_bytes, passes.peak_bytes))


def _with_peak(memory: MemoryUse, peak_bytes: int) -> MemoryUse:
    held_bytes = (memory.peak_bytes or 0) - (memory.activation_bytes or 0)
    return replace(memory, peak_bytes=peak_bytes, activation_bytes=max(0, peak_bytes - held_bytes))
