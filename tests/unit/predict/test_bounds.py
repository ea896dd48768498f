"""Compute or memory: by the arithmetic intensity of each operator and the ridge point of the GPU."""

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Bound, Collective, Op, Phase, Trace
from advisor.predict.host import HostCall, host_costs
from advisor.predict.iteration import predict
from tests.builders import exactly, make_estimate, make_op, make_trace

V100 = resolve_gpu("V100-PCIE-32GB")
DENSE = make_op(flops=10**13, num_bytes=10**8)
STREAM = make_op("aten::add.Tensor", flops=10**8, num_bytes=10**10)


def of(*ops: Op, **changes: object) -> Trace:
    return make_trace(ops=ops, **changes)


@pytest.mark.parametrize(("op", "bound"), [(DENSE, Bound.COMPUTE), (STREAM, Bound.MEMORY)])
def test_the_roof_that_an_operator_leans_on(op, bound):
    estimate = predict(of(op), V100)
    assert estimate.binds is bound
    assert estimate.by_bound[bound] == pytest.approx(estimate.iteration_s.p50)


def test_shares_add_up_to_the_time_of_the_device():
    estimate = predict(of(DENSE, STREAM), V100)
    assert estimate.by_bound[Bound.COMPUTE] > 0
    assert estimate.by_bound[Bound.MEMORY] > 0
    assert sum(estimate.by_bound.values()) == pytest.approx(estimate.device_s.p50)


def test_faster_memory_moves_the_ridge_point():
    """An operator between both ridge points: 30 FLOPs a byte of FP32."""
    between = make_op(flops=30 * 10**9, num_bytes=10**9)
    assert predict(of(between), resolve_gpu("V100-PCIE-32GB")).binds is Bound.COMPUTE
    assert predict(of(between), resolve_gpu("L4")).binds is Bound.MEMORY


def test_tiny_kernels_wait_for_the_host():
    estimate = predict(of(make_op("aten::add.Tensor", flops=1, num_bytes=4, count=1000)), V100)
    assert estimate.binds is Bound.HOST
    assert estimate.by_bound == {Bound.HOST: pytest.approx(host_costs().seconds({HostCall.FORWARD: 1000}))}


def test_a_wait_for_a_value_is_the_hosts_and_the_rest_leans_on_its_roof():
    """Each step reads its loss: what is launched after the read finds an idle GPU."""
    optimizer = make_op("aten::add_.Tensor", flops=1, num_bytes=4, phase=Phase.OPTIMIZER, count=1000)
    loss = make_op("advisor::d2h_copy", flops=0, num_bytes=4)
    estimate = predict(of(DENSE, loss, optimizer), V100)
    waited_s = estimate.by_bound[Bound.HOST]
    launching = host_costs()
    assert 0 < waited_s <= launching.seconds({HostCall.STEP: 1000, HostCall.FORWARD: 2})
    assert estimate.binds is Bound.COMPUTE
    assert sum(estimate.by_bound.values()) == pytest.approx(estimate.device_s.p50)
    assert Bound.HOST not in predict(of(DENSE, optimizer), V100).by_bound


def test_a_measured_gap_is_not_said_to_be_the_hosts():
    op = make_op("aten::add.Tensor", num_bytes=4, measured_s=1e-6)
    estimate = predict(of(op, origin_gpu=V100.name, iteration_s=1.0), V100)
    assert estimate.iteration_s.p50 == pytest.approx(1.0)
    assert Bound.HOST not in estimate.by_bound


def test_exchange_that_does_not_hide_is_the_networks():
    buckets = (Collective(kind="all_reduce", num_bytes=10**10, world_size=8, count=1),)
    estimate = predict(of(make_op(flops=10**9), collectives=buckets, world_size=8), V100, 8)
    assert estimate.by_bound[Bound.NETWORK] == estimate.communication_s > 0
    assert estimate.binds is Bound.NETWORK


def test_input_binds_where_the_gpu_waits_for_its_workers():
    assert make_estimate("X", exactly(0.2), loading_s=0.01).binds is Bound.INPUT
    assert make_estimate("X", exactly(0.2)).binds is Bound.COMPUTE
