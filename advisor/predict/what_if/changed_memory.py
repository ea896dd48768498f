"""Memory of a changed script: the peak of its passes moves, what the optimizer's step holds stays."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.core.values import MemoryUse


def of_larger_batch(memory: MemoryUse, factor: int) -> MemoryUse:
    """Activations as many times as large; nothing is known where a profiler left them out."""
    passes = _passes(memory)
    if passes is None:
        return replace(memory, peak_bytes=None)
    grown_bytes = passes.peak_bytes + (factor - 1) * passes.activation_bytes
    most_bytes = factor * passes.most_bytes
    return _with(
        memory,
        _Passes(
            kept_bytes=passes.kept_bytes,
            peak_bytes=max(grown_bytes, passes.kept_bytes + most_bytes),
            activation_bytes=factor * passes.activation_bytes,
            most_bytes=most_bytes,
        ),
    )


def of_more_passes(memory: MemoryUse) -> MemoryUse:
    """Gradients of the passes before are there when activations take most."""
    passes = _passes(memory)
    if passes is None or memory.gradient_bytes is None:
        return memory
    full_bytes = passes.kept_bytes + memory.gradient_bytes + passes.most_bytes
    peak_bytes = max(passes.peak_bytes, full_bytes)
    return _with(memory, replace(passes, peak_bytes=peak_bytes, activation_bytes=passes.most_bytes))


def of_lower_precision(memory: MemoryUse, share: float, copied_bytes: int) -> MemoryUse:
    """Activations at a share of their bytes, and what autocast copied while most of them are there."""
    passes = _passes(memory)
    if passes is None:
        return memory
    most_bytes = round(share * passes.most_bytes) + copied_bytes
    is_full = 2 * passes.activation_bytes >= passes.most_bytes
    activation_bytes = round(share * passes.activation_bytes) + (copied_bytes if is_full else 0)
    moved_bytes = passes.peak_bytes - passes.activation_bytes + activation_bytes
    return _with(
        memory,
        _Passes(
            kept_bytes=passes.kept_bytes,
            peak_bytes=max(moved_bytes, passes.kept_bytes + most_bytes),
            activation_bytes=activation_bytes,
            most_bytes=most_bytes,
        ),
    )


def of_fused_step(memory: MemoryUse) -> MemoryUse:
    """The optimizer's step holds no list of its own beside its state."""
    passes = _passes(memory)
    if passes is None or memory.pass_peak_bytes is None or memory.peak_bytes is None:
        return memory
    peak_bytes = min(memory.peak_bytes, max(passes.peak_bytes, _state_bytes(memory)))
    return _with_peak(memory, peak_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passes:
    """Forward and backward passes.

    Attributes:
        kept_bytes: parameters and optimizer state, which are always there.
        activation_bytes: at the peak.
        most_bytes: of activations, whenever that is.
    """

    kept_bytes: int
    peak_bytes: int
    activation_bytes: int
    most_bytes: int


def _passes(memory: MemoryUse) -> _Passes | None:
    """As recorded; a trace without passes of their own is taken to have its peak in them."""
    activation_bytes = _known(memory.pass_activation_bytes, memory.activation_bytes)
    peak_bytes = _known(memory.pass_peak_bytes, memory.peak_bytes)
    if activation_bytes is None or peak_bytes is None:
        return None
    return _Passes(
        kept_bytes=(memory.parameter_bytes or 0) + (memory.optimizer_bytes or 0),
        peak_bytes=peak_bytes,
        activation_bytes=activation_bytes,
        most_bytes=_known(memory.most_activation_bytes) or activation_bytes,
    )


def _known(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _with(memory: MemoryUse, passes: _Passes) -> MemoryUse:
    """The memory with other passes; the step's own peak stays where it was above theirs."""
    step_bytes = _state_bytes(memory)
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


def _state_bytes(memory: MemoryUse) -> int:
    states = memory.parameter_bytes, memory.gradient_bytes, memory.optimizer_bytes
    return sum(state or 0 for state in states)
