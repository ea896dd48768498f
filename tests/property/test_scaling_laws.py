"""Laws of several GPUs: what a faster network, larger gradients or more passes must do to an iteration."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Collective, Fabric, Layout, Link, Network, Phase, Trace
from advisor.predict.exchange.collective_time import ScalingConstants
from advisor.predict.iteration import predict_counts
from advisor.predict.step_time import OTHERS
from tests.builders import make_gpu, make_op, make_trace

GPU = make_gpu(nvlink_bytes_per_s=300e9)
GRADIENTS = st.integers(0, 10**10)
NODES = st.integers(1, 16)
NETWORKS = st.floats(1e8, 4e11)
# Up to a float's rounding.
EXACT = 1 + 1e-9


def layout(num_nodes: int, network_bytes_per_s: float, gpus_per_node: int = 8) -> Layout:
    fabric = Fabric(
        link=Link.NVSWITCH, link_bytes_per_s=300e9, network=Network.INFINIBAND,
        network_bytes_per_s=network_bytes_per_s,
    )  # fmt: skip
    return Layout(gpus_per_node=gpus_per_node, num_nodes=num_nodes, fabric=fabric)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Of a script on one GPU, or of a rank that shards its model."""
    flops = draw(st.integers(10**9, 10**14))
    ops = (
        make_op(flops=flops),
        make_op(flops=2 * flops, phase=Phase.BACKWARD, count=draw(st.integers(1, 4))),
        make_op("aten::_foreach_add_", flops=10**6, num_bytes=10**8, phase=Phase.OPTIMIZER),
    )
    trace = make_trace(ops=ops)
    trace = replace(trace, memory=replace(trace.memory, gradient_bytes=draw(GRADIENTS)))
    return _sharded(trace) if draw(st.booleans()) else trace


def _sharded(trace: Trace) -> Trace:
    whole = 8 * max(trace.memory.gradient_bytes or 0, 1)
    memory = replace(trace.memory, gradient_bytes=whole // 8)
    gathers = Collective(kind="all_gather", num_bytes=whole, world_size=8, count=2)
    scatters = Collective(kind="reduce_scatter", num_bytes=whole, world_size=8, count=1)
    return replace(trace, memory=memory, collectives=(gathers, scatters), world_size=8, is_sharded=True)


def seconds(trace: Trace, *layouts: Layout | int) -> list[float]:
    return [estimate.iteration_s.p50 for estimate in predict_counts(trace, GPU, layouts)]


@given(traces(), st.integers(2, 8), NODES, NETWORKS)
def test_several_gpus_are_never_faster_than_as_many_times_one(trace, num_gpus, num_nodes, network):
    several = layout(num_nodes, network, num_gpus)
    one, many = (
        estimate.iteration_s.p50 - estimate.by_family.get("optimizer", 0.0)
        for estimate in predict_counts(trace, GPU, [1, several])
    )
    # A rank that shards updates less of the model, which is no gain of speed beside the rest.
    assert many * EXACT >= one


@given(traces(), NODES, NETWORKS, st.floats(1.0, 100.0))
def test_more_network_is_never_slower(trace, num_nodes, network, more):
    slow_s, fast_s = seconds(trace, layout(num_nodes, network), layout(num_nodes, network * more))
    assert fast_s <= slow_s * EXACT


VARIATIONS = st.none() | st.floats(0.0, 2.0)


@given(traces(), VARIATIONS, st.floats(0.0, 1.0), st.integers(1, 64), st.integers(1, 8))
def test_batches_that_differ_more_are_never_faster_nor_surer(trace, variation, more, num_gpus, passes):
    one = replace(trace, batch_variation=variation, accumulation=passes)
    other = replace(one, batch_variation=(variation or 0.0) + more)
    few, many = (predict_counts(each, GPU, [num_gpus])[0].iteration_s for each in (one, other))
    assert few.p50 <= many.p50 * EXACT
    assert few.p90 <= many.p90 * EXACT
    evened = predict_counts(replace(other, accumulation=passes + 1), GPU, [num_gpus])[0].by_family
    waits = predict_counts(other, GPU, [num_gpus])[0].by_family
    assert evened.get(OTHERS, 0.0) <= waits.get(OTHERS, 0.0) * EXACT


@given(traces(), GRADIENTS, NODES, NETWORKS)
def test_larger_gradients_are_never_faster(trace, more, num_nodes, network):
    plain = replace(trace, collectives=(), world_size=None, is_sharded=False)
    whole = (plain.memory.gradient_bytes or 0) + more
    memory = replace(plain.memory, gradient_bytes=whole)
    where = layout(num_nodes, network)
    (small_s,), (large_s,) = seconds(plain, where), seconds(replace(plain, memory=memory), where)
    # Of a pass that takes as long, what was there before is complete sooner by the share of what came.
    assert small_s <= large_s * EXACT * (1 + more / max(whole, 1))


@given(traces(), st.integers(2, 8), NODES, NETWORKS)
def test_accumulation_is_never_slower_per_sample(trace, passes, num_nodes, network):
    plain = replace(trace, collectives=(), world_size=None, is_sharded=False)
    ops = tuple(
        op if op.phase is Phase.OPTIMIZER else replace(op, count=passes * op.count) for op in plain.ops
    )
    accumulated = replace(plain, ops=ops, accumulation=passes)
    where = layout(num_nodes, network)
    (once_s,), (passes_s,) = seconds(plain, where), seconds(accumulated, where)
    assert passes_s / passes <= once_s * EXACT


@given(st.integers(1, 10**5), st.integers(1, 10**5), st.floats(0, 0.2))
def test_the_slowest_of_more_is_later(few, more, spread):
    scaling = ScalingConstants(spread=spread)
    assert 0 <= scaling.waiting(few) <= scaling.waiting(few + more)


def test_the_slowest_of_eight_and_of_a_thousand():
    # Harter, "Expected values of normal order statistics", Biometrika 48, 1961: 1.4236 and 3.2414.
    assert ScalingConstants(spread=1.0).waiting(8) == pytest.approx(1.4236, rel=0.01)
    assert ScalingConstants(spread=1.0).waiting(1000) == pytest.approx(3.2414, rel=0.01)
