"""What a limit of power costs: cores slow down, memory does not, and nothing gets faster by drawing less."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import PowerLimited
from advisor.core.gpus import resolve_gpu
from advisor.core.limits import MAX_W, MIN_W
from advisor.core.values import Interval, IterationEstimate, Layout, Op, Trace
from advisor.predict.iteration import predict, predict_counts
from advisor.predict.knowledge import write_calibration
from advisor.predict.utilization import slowdown
from advisor.report.words import sentence
from tests.builders import make_op, make_trace

H100 = resolve_gpu("H100-SXM-80GB")
DENSE = make_op(flops=10**13, num_bytes=10**8)
STREAM = make_op("aten::add.Tensor", flops=10**8, num_bytes=10**10)


def of(*ops: Op, limit_w: float | None, **changes: object) -> IterationEstimate:
    trace: Trace = make_trace(ops=ops, **changes)
    return predict(trace, H100, Layout(gpus_per_node=1, power_limit_w=limit_w))


def width(interval: Interval) -> float:
    return interval.p90 / interval.p10


def test_what_cores_bind_takes_longer_and_is_less_sure():
    whole, limited = of(DENSE, limit_w=None), of(DENSE, limit_w=500)
    assert limited.iteration_s.p50 == pytest.approx(slowdown(H100, 500) * whole.iteration_s.p50)
    assert slowdown(H100, 500) == pytest.approx(1 + 0.49 * 0.4**1.75)
    assert width(limited.iteration_s) > width(whole.iteration_s)


def test_what_memory_binds_takes_as_long_and_is_as_sure():
    assert of(STREAM, limit_w=250).iteration_s == of(STREAM, limit_w=None).iteration_s


@pytest.mark.parametrize("limit_w", [700.0, 900.0])
def test_a_limit_of_the_data_sheet_or_above_changes_nothing(limit_w):
    limited = of(DENSE, STREAM, limit_w=limit_w)
    assert limited.layout.power_limit_w == limit_w
    assert replace(limited, layout=Layout(gpus_per_node=1)) == of(DENSE, STREAM, limit_w=None)


@given(less=st.floats(MIN_W, MAX_W), more=st.floats(MIN_W, MAX_W))
def test_more_power_is_never_slower(less, more):
    less, more = sorted((less, more))
    slow, fast = of(DENSE, STREAM, limit_w=less), of(DENSE, STREAM, limit_w=more)
    assert slow.iteration_s.p50 >= fast.iteration_s.p50
    assert slow.iteration_s.p90 >= fast.iteration_s.p90


def test_what_was_measured_on_the_board_was_measured_under_its_limit():
    measured = replace(DENSE, measured_s=0.1)
    changes = {"origin_gpu": "H100-SXM-80GB", "iteration_s": 0.1}
    assert (
        of(measured, limit_w=300, **changes).iteration_s == of(measured, limit_w=None, **changes).iteration_s
    )
    assert PowerLimited not in codes(of(measured, limit_w=300, **changes))


def test_what_another_board_measured_is_slower_here():
    measured = replace(DENSE, measured_s=0.1)
    there = {"origin_gpu": "A100-SXM-80GB", "iteration_s": 0.1}
    assert (
        of(measured, limit_w=300, **there).iteration_s.p50
        > of(measured, limit_w=None, **there).iteration_s.p50
    )


def test_kernels_of_this_board_told_under_its_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    before_s = of(DENSE, limit_w=300).iteration_s.p50
    write_calibration("H100-SXM-80GB", "today", {"gemm_fraction.fp32": 0.7})
    limited, whole = of(DENSE, limit_w=300), of(DENSE, limit_w=None)
    assert before_s > whole.iteration_s.p50
    assert limited.iteration_s == whole.iteration_s
    (note,) = (note for note in limited.assumptions if isinstance(note, PowerLimited))
    assert note.slowdown is None
    assert "this GPU was calibrated" in sentence(note)
    assert PowerLimited not in codes(whole)


def codes(estimate: IterationEstimate) -> set[type[Finding]]:
    return {type(note) for note in estimate.assumptions}


def test_it_is_told():
    (note,) = (note for note in of(DENSE, limit_w=500).assumptions if isinstance(note, PowerLimited))
    assert sentence(note) == (
        "each GPU may draw 500 of 700 W: what its cores bind takes 10% longer, by what other boards lose"
    )
    assert PowerLimited not in codes(of(DENSE, limit_w=None))


def test_limits_of_one_answer_do_not_mix():
    layouts = [
        Layout(gpus_per_node=count, power_limit_w=limit_w) for limit_w in (None, 400, 500) for count in (1, 8)
    ]
    together = predict_counts(make_trace(ops=(DENSE, STREAM)), H100, layouts)
    alone = [predict(make_trace(ops=(DENSE, STREAM)), H100, layout) for layout in layouts]
    assert list(together) == alone
    assert [estimate.layout for estimate in together] == layouts
