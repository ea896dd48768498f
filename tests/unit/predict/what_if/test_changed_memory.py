"""Peaks of changed scripts, by hand."""

from dataclasses import asdict, replace

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import MemoryUse
from advisor.predict.what_if.changed_memory import of_fused_step, of_lower_precision, of_more_passes
from advisor.predict.what_if.held_tensors import Held

# 30 bytes of state; a pass that peaks with all its activations there, and no gradient yet.
MEMORY = MemoryUse(
    parameter_bytes=10, gradient_bytes=10, optimizer_bytes=20, activation_bytes=100, peak_bytes=130
)


def held(forward: float, most: float, peak: float, gradients: float = 0.0) -> Held:
    return Held(forward_bytes=forward, most_bytes=most, peak_bytes=peak, gradient_bytes=gradients)


def test_activations_are_those_of_the_passes_then():
    changed = of_lower_precision(MEMORY, held(90, 100, 100), held(60, 55, 55), share=0.5)
    assert (changed.pass_activation_bytes, changed.most_activation_bytes) == (55, 55)
    assert (changed.pass_peak_bytes, changed.peak_bytes) == (85, 85)


def test_of_what_nobody_accounts_for_a_share_remains():
    changed = of_lower_precision(MEMORY, held(60, 80, 80), held(30, 40, 40), share=0.5)
    assert changed.pass_activation_bytes == 40 + 10
    less = of_lower_precision(MEMORY, held(200, 200, 200), held(120, 120, 120), share=0.5)
    assert less.pass_activation_bytes == 60


def test_a_peak_with_gradients_stays_one_or_moves_to_where_activations_are_most():
    """Gradients are all there at a peak of 40 + 10; before there are any, activations alone take 45."""
    late = replace(MEMORY, pass_activation_bytes=40, pass_peak_bytes=80, most_activation_bytes=45)
    before = held(30, 45, 40, gradients=10)
    stays = of_lower_precision(late, before, held(20, 25, 20, gradients=10), share=0.5)
    assert (stays.pass_activation_bytes, stays.pass_peak_bytes) == (20, 30 + 30)
    moves = of_lower_precision(late, before, held(60, 70, 20, gradients=10), share=0.5)
    assert (moves.most_activation_bytes, moves.pass_peak_bytes) == (70, 30 + 70)


def test_gradients_that_are_dropped_late_are_there_when_the_forward_pass_ends():
    """All of them are there at the peak, which no pass that makes them would have by then."""
    late = replace(MEMORY, pass_activation_bytes=90, pass_peak_bytes=130, most_activation_bytes=95)
    changed = of_lower_precision(late, held(90, 95, 95), held(50, 70, 70), share=0.5)
    assert (changed.pass_activation_bytes, changed.pass_peak_bytes) == (50, 30 + 70)
    passes = replace(late, pass_activation_bytes=95, pass_peak_bytes=135)
    kept = of_lower_precision(passes, held(90, 95, 95), held(50, 70, 70), share=0.5)
    assert (kept.pass_activation_bytes, kept.pass_peak_bytes) == (70, 30 + 10 + 70)


def test_what_else_a_script_holds_does_not_shrink():
    """7 bytes of an average of its weights stand beside the gradients."""
    averaged = replace(MEMORY, pass_activation_bytes=83, pass_peak_bytes=130, most_activation_bytes=83)
    changed = of_lower_precision(averaged, held(83, 83, 83, 10), held(40, 40, 40, 10), share=0.5)
    assert changed.pass_peak_bytes == 30 + 7 + 10 + 40


NUMBERS = st.integers(0, 10**12)
HELD = st.builds(Held, forward_bytes=NUMBERS, most_bytes=NUMBERS, peak_bytes=NUMBERS, gradient_bytes=NUMBERS)
ANY_MEMORY = st.builds(MemoryUse, **{name: st.none() | NUMBERS for name in asdict(MEMORY)})


@given(ANY_MEMORY, HELD, HELD, st.floats(0, 1))
def test_whatever_a_file_tells_nothing_takes_less_than_no_memory(memory, before, after, share):
    changed = of_lower_precision(memory, before, after, share)
    assert all(value is None or value >= 0 for value in asdict(changed).values())


@given(NUMBERS, st.floats(0, 1), st.floats(0, 1), HELD)
def test_where_as_much_is_held_as_before_nothing_moves(activation_bytes, part, there, same):
    most_bytes = activation_bytes + round(there * 10)  # no more than gradients are, which are there as well
    memory = replace(
        MEMORY,
        pass_activation_bytes=activation_bytes,
        pass_peak_bytes=30 + activation_bytes + 10,
        most_activation_bytes=most_bytes,
        peak_bytes=30 + activation_bytes + 10 + round(part * 100),
    )
    assert of_lower_precision(memory, same, same, share=1.0) == memory


def test_passes_before_leave_their_gradients():
    assert of_more_passes(MEMORY).pass_peak_bytes == 30 + 10 + 100


def test_a_fused_step_holds_no_more_than_the_state():
    assert of_fused_step(replace(MEMORY, pass_peak_bytes=35, peak_bytes=130)).peak_bytes == 40
    assert of_fused_step(MEMORY) == MEMORY
