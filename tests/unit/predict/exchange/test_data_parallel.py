"""Ring all-reduce in hand arithmetic, and how much of it shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.core.findings import Code
from advisor.core.values import Phase
from advisor.predict.exchange.data_parallel import (
    all_reduce_s,
    exposed_communication_s,
    link_bytes_per_s,
)
from advisor.predict.iteration import predict_counts
from tests.builders import make_gpu, make_op, make_trace
from tests.findings import sample

LATENCY_S = 30e-6
BUCKET_BYTES = 25 * 1024 * 1024
# 16 GB/s of PCIe, of which 55 % arrive.
PCIE_BYTES_PER_S = 8.8e9


@pytest.mark.parametrize(("num_gpus", "share"), [(2, 1.0), (4, 1.5), (8, 1.75)])
def test_each_gpu_moves_twice_its_share(num_gpus: int, share: float) -> None:
    # 1 GB at 10 GB/s: 0.1 s for each time the gradients cross a link, 2 (N - 1) / N of them.
    assert all_reduce_s(1e9, num_gpus, 1e10) == pytest.approx(LATENCY_S + share * 0.1)


def test_nothing_to_exchange_still_takes_the_latency() -> None:
    assert all_reduce_s(0, 2, 1e10) == pytest.approx(LATENCY_S)


def test_one_gpu_exchanges_nothing() -> None:
    assert all_reduce_s(1e9, 1, 1e10) == 0
    assert exposed_communication_s(10**9, 0.0, make_gpu(), 1) == 0


def test_the_link_is_nvlink_where_there_is_one() -> None:
    assert link_bytes_per_s(make_gpu(nvlink_bytes_per_s=300e9)) == pytest.approx(225e9)
    assert link_bytes_per_s(make_gpu(nvlink_bytes_per_s=0.0)) == pytest.approx(PCIE_BYTES_PER_S)


def test_without_backward_all_of_it_shows() -> None:
    expected_s = LATENCY_S + 10**9 / PCIE_BYTES_PER_S
    assert exposed_communication_s(10**9, 0.0, make_gpu(), 2) == pytest.approx(expected_s)


def test_seven_tenths_of_backward_hide_it() -> None:
    expected_s = LATENCY_S + 10**9 / PCIE_BYTES_PER_S - 0.7 * 0.1
    assert exposed_communication_s(10**9, 0.1, make_gpu(), 2) == pytest.approx(expected_s)


def test_the_last_bucket_always_shows() -> None:
    expected_s = LATENCY_S + BUCKET_BYTES / PCIE_BYTES_PER_S
    assert exposed_communication_s(10**9, 100.0, make_gpu(), 2) == pytest.approx(expected_s)


def test_a_model_of_less_than_a_bucket_hides_nothing() -> None:
    expected_s = LATENCY_S + 10**6 / PCIE_BYTES_PER_S
    assert exposed_communication_s(10**6, 100.0, make_gpu(), 2) == pytest.approx(expected_s)


def test_only_backward_hides_communication() -> None:
    gpu = make_gpu()
    ops = (make_op(flops=10**12), make_op(flops=10**12, phase=Phase.BACKWARD))
    memory = replace(make_trace().memory, gradient_bytes=4 * 10**9)
    trace = make_trace(ops=ops, memory=memory)
    one, two = predict_counts(trace, gpu, [1, 2])
    backward_s = one.by_family["gemm"] / 2
    expected_s = LATENCY_S + 4 * 10**9 / PCIE_BYTES_PER_S - 0.7 * backward_s
    assert two.communication_s == pytest.approx(expected_s)
    assert two.iteration_s.p50 == pytest.approx(one.iteration_s.p50 + expected_s)


def test_unknown_gradients_cost_the_latency_and_widen_the_interval() -> None:
    memory = replace(make_trace().memory, gradient_bytes=None)
    one, two = predict_counts(make_trace(memory=memory), make_gpu(), [1, 2])
    assert two.communication_s == pytest.approx(LATENCY_S)
    assert two.iteration_s.p90 / two.iteration_s.p50 > one.iteration_s.p90 / one.iteration_s.p50 + 0.1
    assert sample(Code.GRADIENTS_UNKNOWN) in two.assumptions
    assert sample(Code.GRADIENTS_UNKNOWN) not in one.assumptions
