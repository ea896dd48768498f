"""Peaks of changed scripts, by hand."""

from __future__ import annotations

from dataclasses import replace

from advisor.core.values import MemoryUse
from advisor.predict.what_if.changed_memory import of_fused_step, of_lower_precision, of_more_passes

# 30 bytes of state; a pass that peaks with all its activations there, and no gradient yet.
MEMORY = MemoryUse(
    parameter_bytes=10, gradient_bytes=10, optimizer_bytes=20, activation_bytes=100, peak_bytes=130
)


def test_half_the_precision_is_half_the_activations_and_what_was_copied() -> None:
    changed = of_lower_precision(MEMORY, 0.5, copied_bytes=5)
    assert (changed.pass_activation_bytes, changed.most_activation_bytes) == (55, 55)
    assert (changed.pass_peak_bytes, changed.peak_bytes) == (85, 85)


def test_a_peak_at_the_end_of_a_pass_may_move_to_where_activations_are_most() -> None:
    """60 bytes of activations and gradients at the peak; 90 of activations alone before: copies are there."""
    late = replace(MEMORY, pass_activation_bytes=40, pass_peak_bytes=130, most_activation_bytes=90)
    changed = of_lower_precision(late, 0.5, copied_bytes=60)
    assert changed.pass_activation_bytes == 20
    assert changed.most_activation_bytes == 45 + 60
    assert changed.pass_peak_bytes == 30 + 105


def test_passes_before_leave_their_gradients() -> None:
    assert of_more_passes(MEMORY).pass_peak_bytes == 30 + 10 + 100


def test_a_fused_step_holds_no_more_than_the_state() -> None:
    assert of_fused_step(replace(MEMORY, pass_peak_bytes=35, peak_bytes=130)).peak_bytes == 40
    assert of_fused_step(MEMORY) == MEMORY
