"""What the host launches, how long that takes, and what a measured step tells of it."""

from dataclasses import replace

import pytest

from advisor.core.errors import CatalogError
from advisor.core.findings.about_estimates import HostLaunches
from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import Bound, Launch, Op, Phase, Trace
from advisor.formats.trace_files import read_trace, write_trace
from advisor.predict import host
from advisor.predict.host import (
    HostCall,
    calls_of,
    host_costs,
    launching,
    launching_s,
    parsed,
    step_s,
    waits_in,
)
from advisor.predict.iteration import predict
from advisor.predict.step_time import HOST
from tests.builders import make_op, make_trace

B200, H100, T4 = resolve_gpu("B200-SXM-180GB"), resolve_gpu("H100-SXM-80GB"), resolve_gpu("T4")
FORWARD = make_op("aten::relu", flops=1, num_bytes=4, count=300)
BACKWARD = make_op("aten::threshold_backward", flops=1, num_bytes=4, count=200, phase=Phase.BACKWARD)
STEP = make_op("aten::add_.Tensor", flops=1, num_bytes=4, count=50, phase=Phase.OPTIMIZER)
LISTS = replace(
    make_op("aten::_foreach_add_", flops=1, num_bytes=4, count=2, phase=Phase.OPTIMIZER),
    attributes={"num_tensors": 161},
)


def of(*ops: Op, **changes: object) -> Trace:
    return make_trace(ops=ops, **changes)


def test_eager_calls_are_of_their_phase():
    assert calls_of((FORWARD, BACKWARD, STEP)) == {
        Phase.FORWARD: {HostCall.FORWARD: 300},
        Phase.BACKWARD: {HostCall.BACKWARD: 200},
        Phase.OPTIMIZER: {HostCall.STEP: 50, HostCall.TENSOR: 0},
    }


def test_a_list_is_one_call_and_each_of_its_tensors():
    assert calls_of((LISTS,))[Phase.OPTIMIZER] == {HostCall.STEP: 2, HostCall.TENSOR: 322}


def test_a_compiled_pass_launches_its_kernels_and_a_graph_all_at_once():
    assert calls_of((FORWARD,), Launch.COMPILED)[Phase.FORWARD] == {HostCall.COMPILED: 300}
    replayed = calls_of((FORWARD, STEP), Launch.GRAPH)
    assert replayed[Phase.FORWARD] == {HostCall.GRAPH: 1, HostCall.NODE: 300}
    assert not replayed[Phase.BACKWARD]
    assert replayed[Phase.OPTIMIZER][HostCall.STEP] == 50


def test_kinds_cost_what_the_catalog_says():
    seconds = host_costs().call_s
    assert launching(of(FORWARD, BACKWARD, LISTS)) == {
        Phase.FORWARD: pytest.approx(300 * seconds[HostCall.FORWARD]),
        Phase.BACKWARD: pytest.approx(200 * seconds[HostCall.BACKWARD]),
        Phase.OPTIMIZER: pytest.approx(2 * seconds[HostCall.STEP] + 322 * seconds[HostCall.TENSOR]),
    }


def test_a_toy_takes_every_fast_gpu_as_long_as_its_host():
    toy = of(FORWARD, BACKWARD, LISTS)
    estimates = [predict(toy, gpu) for gpu in (B200, H100, T4)]
    assert {estimate.binds for estimate in estimates} == {Bound.HOST}
    for estimate in estimates:
        assert estimate.device_s.p50 == pytest.approx(launching_s(toy).p50)
        assert HostLaunches(of="bound") in estimate.assumptions


def test_each_gpu_is_said_to_wait_for_its_host_or_not():
    """Three products of 10 TFLOPs are nothing to a B200 beside 10,000 launches, and everything to a T4."""
    trace = of(replace(FORWARD, count=10_000), make_op(flops=10**13, dtype="float16", count=3))
    fast, slow = predict(trace, B200), predict(trace, T4)
    for estimate, code in ((fast, HostLaunches(of="bound")), (slow, HostLaunches(of="hidden"))):
        _, launching, limit = (note for note in estimate.assumptions if isinstance(note, HostLaunches))
        assert (launching.of, limit) == ("step", code)
        assert launching.launching_s["p50"] == pytest.approx(launching_s(trace).p50)
    assert HOST in fast.by_family
    assert HOST not in slow.by_family


def test_on_every_gpu_words_agree_with_what_binds_and_rounding_is_no_wait():
    """Sums of the same seconds in another order differ in the last digit."""
    steps = [make_op(flops=10**9 * k + 7, dtype="float16", phase=p) for k in range(1, 60) for p in Phase]
    read = [make_op("advisor::d2h_copy", flops=0, num_bytes=4, phase=p) for p in Phase]
    trace = of(*steps, *read)
    estimates = [predict(trace, gpu) for gpu in load_gpus().values()]
    assert {Bound.HOST, Bound.COMPUTE} <= {estimate.binds for estimate in estimates}
    for estimate in estimates:
        codes = set(estimate.assumptions)
        assert (HostLaunches(of="bound") in codes) is (estimate.binds is Bound.HOST)
        assert estimate.by_family.get(HOST, 1.0) > 1e-6 * estimate.device_s.p50


def test_graphs_free_a_step_of_its_host():
    eager = of(FORWARD, BACKWARD, LISTS)
    graph = replace(eager, launch=Launch.GRAPH)
    assert predict(graph, H100).device_s.p50 < predict(eager, H100).device_s.p50 / 5


def test_how_a_step_is_launched_outlives_its_file(tmp_path):
    trace = of(FORWARD, launch=Launch.GRAPH)
    write_trace(trace, tmp_path / "trace.json")
    assert read_trace(tmp_path / "trace.json") == trace


@pytest.mark.parametrize(
    ("host_s", "gpu_s", "waits", "expected_s"),
    [
        # Without a wait the longer of the two decides.
        ((1, 1, 1), (0.1, 0.1, 4), {}, 4.2),
        # From a wait at the forward pass's end: backward's launches, then the optimizer's kernels beside
        # later launches, then the forward pass's.
        ((1, 1, 1), (0.1, 0.1, 4), {Phase.FORWARD: 1}, 1 + 4.0 + 0.1),
        # Two waits are two stretches: backward and optimizer, 6 s; the forward pass alone, 3 s.
        ((1, 1, 1), (3, 3, 3), {Phase.FORWARD: 1, Phase.OPTIMIZER: 1}, 9.0),
        # An optimizer reads a norm of each of 100 tensors: 1 % of it is launched behind the backward pass.
        ((0.1, 0.1, 2), (1, 2, 1), {Phase.OPTIMIZER: 1}, 4.0),
        ((0.1, 0.1, 2), (1, 2, 1), {Phase.OPTIMIZER: 100}, 0.99 * 2.0 + 3.0 + 0.01 * 1.0),
        # A loss scaler has the optimizer launched beside an idle GPU, and passes hide behind their kernels.
        ((1, 1, 2), (3, 3, 0.5), {Phase.BACKWARD: 1}, 8.0),
    ],
)
def test_steps_by_hand(host_s, gpu_s, waits, expected_s):
    of_host, of_gpu = (dict(zip(Phase, seconds, strict=True)) for seconds in (host_s, gpu_s))
    assert step_s(of_host, of_gpu, waits) == pytest.approx(expected_s)


def test_a_value_that_is_read_is_a_wait():
    """A profile calls forward what is neither backward nor within an optimizer's step: as a loss scaler's."""
    read = make_op("advisor::d2h_copy", num_bytes=4)
    assert waits_in((FORWARD, replace(read, count=3, phase=Phase.BACKWARD))) == {Phase.BACKWARD: 3}
    assert not waits_in((FORWARD, make_op("advisor::h2d_copy", num_bytes=4)))
    assert waits_in((FORWARD, read, BACKWARD, STEP)) == {Phase.FORWARD: 1}
    assert waits_in((FORWARD, BACKWARD, read, STEP)) == {Phase.BACKWARD: 1}


def measured(iteration_s: float, **changes: object) -> Trace:
    """Kernels of 3 ms."""
    op = replace(FORWARD, count=30, measured_s=1e-4)
    return of(op, origin_gpu=T4.name, iteration_s=iteration_s, **changes)


def test_a_step_that_waited_for_its_host_waits_for_it_elsewhere():
    assert launching_s(measured(0.03)).p50 == pytest.approx(0.03)
    assert predict(measured(0.03), H100).device_s.p50 == pytest.approx(0.03)


def test_on_its_own_gpu_a_measured_step_takes_what_it_took():
    """It includes the host's launches, which are not counted again."""
    estimate = predict(measured(0.03), T4)
    assert estimate.device_s.p50 == pytest.approx(0.03)
    assert "step" not in {note.of for note in estimate.assumptions if isinstance(note, HostLaunches)}


def test_a_step_of_a_busy_gpu_tells_that_launching_takes_no_longer():
    busy = measured(0.0031)
    assert launching_s(busy).p50 == pytest.approx(launching_s(replace(busy, iteration_s=None)).p50)
    many = replace(busy, ops=(replace(busy.ops[0], count=300, measured_s=1e-5),))
    assert launching_s(many).p50 == pytest.approx(0.0031)


def test_what_the_same_process_loads_is_no_launch():
    assert launching_s(measured(0.03, data_loading_s=0.02, num_workers=0)).p50 == pytest.approx(0.01)


def test_behind_workers_that_are_too_slow_nothing_is_known_of_the_host():
    slow = measured(0.03, data_loading_s=0.08, num_workers=2)
    assert launching_s(slow).p50 == pytest.approx(launching_s(replace(slow, iteration_s=None)).p50)
    fast = measured(0.03, data_loading_s=0.02, num_workers=2)
    assert launching_s(fast).p50 == pytest.approx(0.03)


def test_operators_that_nobody_measured_tell_nothing_of_a_gap():
    trace = of(FORWARD, iteration_s=1.0)
    assert launching_s(trace).p50 == pytest.approx(launching_s(of(FORWARD)).p50)


@pytest.mark.parametrize("text", ["", "sigma = 0.4", "sigma = 0.4\n[call_s]\nforward = 1e-6", "sigma ="])
def test_a_broken_catalog_is_refused(text, tmp_path, monkeypatch):
    with pytest.raises((KeyError, ValueError)):
        parsed(text)
    (tmp_path / host.FILE).write_text(text, encoding="utf-8")
    monkeypatch.setattr(host, "catalog_path", tmp_path.joinpath)
    host_costs.cache_clear()
    with pytest.raises(CatalogError, match="Reinstall"):
        host_costs()
    monkeypatch.undo()
    host_costs.cache_clear()
