"""Iterations of one GPU made from operators measured on another: laws of any ratio."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import resolve_gpu
from benchmarks.accuracy.op_traces import OpTrace
from benchmarks.accuracy.scaling import WEIGHTS, Scaled, errors_by_weight, scaled_pairs, scaled_s
from research.tests.harness.builders import make_measured, make_node, make_workload

T4, V100 = resolve_gpu("T4"), resolve_gpu("V100-PCIE-32GB")
times = st.floats(1e-6, 1.0)


def by_bandwidth(ops, gpu):
    return np.array([op.bytes / gpu.memory_bytes_per_s for op in ops])


def trace_of(*nodes, mode="inf", gpu="T4"):
    return OpTrace(gpu=gpu, workload=make_workload(mode=mode), nodes=nodes)


@given(forward_s=times, backward_s=times, count=st.integers(1, 96))
def test_on_the_origin_itself_nothing_is_scaled(forward_s, backward_s, count):
    node = make_node(forward_s=forward_s, backward_s=backward_s, count=count)
    assert scaled_s(trace_of(node), T4, by_bandwidth) == pytest.approx(count * forward_s)
    training = trace_of(node, mode="train")
    assert scaled_s(training, T4, by_bandwidth) == pytest.approx(count * (forward_s + backward_s))


@given(forward_s=times)
def test_streaming_follows_the_ratio(forward_s):
    time_s = scaled_s(trace_of(make_node(forward_s=forward_s)), V100, by_bandwidth)
    assert time_s == pytest.approx(forward_s * T4.memory_bytes_per_s / V100.memory_bytes_per_s)


def test_operators_add_up_and_what_runs_nothing_counts_nothing():
    nodes = (make_node(), make_node("softmax"), make_node("view", "call_method", forward_s=1.0))
    parts = [scaled_s(trace_of(node), V100, by_bandwidth) for node in nodes[:2]]
    assert scaled_s(trace_of(*nodes), V100, by_bandwidth) == pytest.approx(sum(parts))


def test_a_product_scales_by_the_sum_of_its_gradients():
    node = make_node("addmm", inputs=((64,), (8, 32), (32, 64)), forward_s=0.0, backward_s=1.0)
    calls = []

    def count(ops, gpu):
        calls.append(len(ops))
        return np.full(len(ops), 1.0 if gpu is T4 else 3.0)

    time_s = scaled_s(trace_of(node, mode="train"), V100, lambda ops, gpu: count(ops, gpu))
    assert time_s == pytest.approx(3.0)
    # One forward, two gradients, one accumulation: asked for at once, on each GPU.
    assert calls == [4, 4]


def test_pairs_share_a_workload_and_no_gpu():
    trace = trace_of(make_node())
    rows = [
        (make_measured("T4"), 1.0),
        (make_measured("V100-PCIE-32GB"), 2.0),
        (make_measured("P4", batch_size=4), 3.0),
    ]
    (pair,) = scaled_pairs([trace], rows, by_bandwidth)
    assert (pair.origin, pair.row.gpu.name, pair.direct_s) == ("T4", "V100-PCIE-32GB", 2.0)


@given(scaled=times, direct=times, weight=st.floats(0, 1))
def test_a_blend_lies_between_its_ends(scaled, direct, weight):
    pair = Scaled(origin="T4", row=make_measured(measured_s=0.5), scaled_s=scaled, direct_s=direct)
    ends = sorted([pair.error(0.0), pair.error(1.0)])
    assert ends[0] - 1e-9 <= pair.error(weight) <= ends[1] + 1e-9


def test_errors_by_weight():
    pair = Scaled(origin="T4", row=make_measured(measured_s=1.0), scaled_s=1.4, direct_s=0.8)
    errors = errors_by_weight([pair])
    assert list(errors) == list(WEIGHTS)
    assert [round(errors[weight]["mean"], 6) for weight in (0.0, 0.5, 1.0)] == [0.2, 0.1, 0.4]
    assert errors_by_weight([])[0.0]["mean"] is None
