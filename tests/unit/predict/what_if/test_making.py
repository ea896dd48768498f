"""Which changes there are, whom they suit, and what is said where they do not."""

from dataclasses import replace

import pytest

from advisor.core.changes import CHANGE_NAMES
from advisor.core.findings import Finding, Severity
from advisor.core.findings.about_estimates import NoGain
from advisor.core.values import Phase, Precision, TensorSpec
from advisor.edits.patch import PLACES
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
