"""Which changes there are, whom they suit, and the peaks of changed scripts by hand."""

from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.changes import CHANGE_NAMES
from advisor.core.findings import Finding, Severity
from advisor.core.findings.about_estimates import NoGain
from advisor.core.values import MemoryUse, Phase, Precision, TensorSpec
from advisor.edits.patch import PLACES
from advisor.predict.what_if.changed_memory import of_fused_step, of_lower_precision, of_more_passes
from advisor.predict.what_if.held_tensors import Held
from advisor.predict.what_if.script_changes import CHANGES, ONE_LINE, TraceChange
from tests.builders import make_gpu, make_op, make_trace

LOWERED = Precision(amp_dtype="bfloat16", tf32_matmul=True, tf32_cudnn=True)


def test_every_name_can_be_made_and_has_its_place_in_scripts():
    assert tuple(CHANGES) == CHANGE_NAMES
    assert set(PLACES) == set(CHANGE_NAMES)
    assert set(ONE_LINE) < set(CHANGE_NAMES)


@pytest.mark.parametrize("name", CHANGE_NAMES)
def test_a_change_carries_its_name_and_says_what_to_do(name):
    made = CHANGES[name](make_trace())
    if isinstance(made, Finding):
        assert type(made).severity is Severity.NOTE
        return
    assert made.name == name
    assert {type(step).severity for step in made.steps} == {Severity.CHANGE}
    assert made.sigma > 0


@pytest.mark.parametrize("name", ["tf32", "bf16", "fp16"])
def test_what_the_script_does_already_is_said(name):
    made = CHANGES[name](make_trace(precision=LOWERED))
    assert isinstance(made, Finding)
    assert isinstance(made, NoGain)
    assert made.why == "already"


@pytest.mark.parametrize(("step", "code"), [("_fused_adamw_", "already"), ("mul_", "nothing")])
def test_a_fused_optimizer_is_no_missing_one(step, code):
    why = CHANGES["fused"](make_trace(ops=(make_op(), make_op(name=f"aten::{step}", phase=Phase.OPTIMIZER))))
    assert isinstance(why, Finding)
    assert why.facts["why"] == code


@pytest.mark.parametrize(
    ("name", "inputs", "count", "is_told"),
    [
        ("nonzero", ((8, "bool"),), 4, True),
        ("index", ((8, "float32"), (8, "bool")), 4, True),
        ("index", ((8, "float32"), (8, "int64")), 4, False),
        # Once in a hundred operators leaves graphs that are long enough.
        ("nonzero", ((8, "bool"),), 1, False),
    ],
)
def test_what_compiling_saves_between_many_breaks_is_unknown(name, inputs, count, *, is_told):
    specs = tuple(TensorSpec(shape=(size,), dtype=dtype) for size, dtype in inputs)
    op = replace(make_op(f"aten::{name}"), inputs=specs, count=count)
    others = (replace(make_op("aten::gelu", num_bytes=10**6), count=80), replace(make_op(), count=20))
    made = CHANGES["compile"](make_trace(ops=(*others, op)))
    if is_told:
        assert made == NoGain(why="graph-breaks", num_breaks=4)
    else:
        assert isinstance(made, TraceChange)


@pytest.mark.parametrize(
    ("name", "batch_size", "code"),
    [
        ("batch", None, "batch-unknown"),
        ("accumulate", None, "batch-unknown"),
        # Five batches of 64: no operator works on 320.
        ("batch", 320, "batch-not-seen"),
        ("accumulate", 320, "parameters-unknown"),
    ],
)
def test_larger_steps_name_what_is_not_known(name, batch_size, code):
    shapeless = replace(make_op(phase=Phase.OPTIMIZER), inputs=(), outputs=())
    why = CHANGES[name](make_trace(ops=(make_op(), shapeless), batch_size=batch_size))
    assert isinstance(why, Finding)
    assert why.facts["why"] == code


def made(name: str) -> TraceChange:
    change = CHANGES[name](make_trace())
    assert isinstance(change, TraceChange)
    return change


@pytest.mark.parametrize(
    ("name", "capability", "tensor", "code"),
    [
        ("tf32", "8.0", {"tf32": 1e14}, None),
        ("tf32", "7.5", {"tf32": 1e14}, "no-rate"),
        ("tf32", "gfx942", {"tf32": 1e14}, "no-rate"),
        ("bf16", "8.0", {"bf16": 1e14}, None),
        ("bf16", "7.0", {"fp16": 1e14}, "no-rate"),
        ("fp16", "7.0", {"fp16": 1e14}, None),
        ("fp16", "8.0", {"fp16": 1e14, "bf16": 1e14}, "bf16-instead"),
        ("fp16", "6.1", {}, "no-rate"),
    ],
)
def test_why_a_gpu_gains_nothing(name, capability, tensor, code):
    why = made(name).why_not_on(make_gpu(compute_capability=capability, tensor_flops_per_s=tensor))
    assert (None if why is None else why.facts["why"]) == code


def test_only_one_line_is_proposed_to_who_asked_for_nothing():
    made = (CHANGES[name](make_trace()) for name in ONE_LINE)
    assert {change.name for change in made if isinstance(change, TraceChange)} == {"tf32", "bf16", "fp16"}


def test_a_fed_gpu_gains_nothing_from_faster_feeding():
    trace = make_trace(data_loading_s=0.5, loader_cpu_s_per_sample=0.01, num_workers=2)
    change = CHANGES["workers"](trace)
    assert isinstance(change, TraceChange)
    why = change.why_not_fed
    assert isinstance(why, NoGain)
    assert why.why == "not-fed"


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
