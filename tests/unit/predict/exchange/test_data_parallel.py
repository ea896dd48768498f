"""What exchanging gradients adds to an iteration, in hand arithmetic."""

from dataclasses import replace

import numpy as np
import pytest

from advisor.core import values
from advisor.core.findings.about_options import Unknown
from advisor.predict.exchange.collective_time import ScalingConstants, collective_time
from advisor.predict.exchange.data_parallel import Exchange, exchange_of_gradients
from advisor.predict.iteration import predict, predict_counts
from advisor.predict.knowledge import shipped
from advisor.predict.step_time import HOST, OTHERS
from tests.builders import make_gpu, make_op, make_trace

GPU = make_gpu(nvlink_bytes_per_s=300e9)
PAIR = values.Layout(gpus_per_node=2)
NODES = values.Layout(gpus_per_node=1, num_nodes=2)
MIB = 2**20
# No tensor is known, so 1 MiB, 25 MiB and 24 MiB are exchanged as backward goes on.
GRADIENT_BYTES = 50 * MIB
COPIES_S = 4 * GRADIENT_BYTES / GPU.memory_bytes_per_s


def trace_of(gradient_bytes: int | None = GRADIENT_BYTES, **changes: object) -> values.Trace:
    trace = make_trace(**changes)
    return replace(trace, memory=replace(trace.memory, gradient_bytes=gradient_bytes))


def exchange(
    backward_s: float,
    trace: values.Trace | None = None,
    *,
    slowdown: float = 0.0,
    layout: values.Layout = PAIR,
) -> Exchange:
    trace = trace_of() if trace is None else trace
    time_s = np.array([1.0, backward_s / trace.accumulation, 1.0])
    return exchange_of_gradients(trace, time_s, backward_s, GPU, layout, slowdown=slowdown)


def bucket_s(num_bytes: float, layout: values.Layout = PAIR) -> float:
    return collective_time("all_reduce", num_bytes, layout, GPU).seconds


WHOLE_S = sum(map(bucket_s, (MIB, 25 * MIB, 24 * MIB)))


def test_one_gpu_exchanges_nothing():
    assert exchange(1.0, layout=values.Layout(gpus_per_node=1)) == Exchange(seconds=0.0, sigma_s=0.0)


def test_only_the_last_bucket_shows_behind_a_long_backward_pass():
    assert exchange(10.0).seconds == pytest.approx(bucket_s(24 * MIB) + COPIES_S)


@pytest.mark.parametrize("backward_s", [0.0, 1.0, 10.0])
def test_who_waits_for_each_reduction_hides_none_and_slows_no_kernel(backward_s):
    awaiting = exchange(backward_s, trace_of(awaits_reductions=True), slowdown=0.5)
    assert awaiting.seconds == pytest.approx(WHOLE_S + COPIES_S)


def test_without_a_backward_pass_all_of_it_shows():
    assert exchange(0.0).seconds == pytest.approx(WHOLE_S + COPIES_S)


def test_a_bucket_waits_for_the_one_before_it():
    # A short pass: the network is busy from the first bucket, a fiftieth into the pass, to the end.
    backward_s = WHOLE_S / 10
    expected_s = backward_s / 50 + WHOLE_S - backward_s + COPIES_S
    assert exchange(backward_s).seconds == pytest.approx(expected_s)


def test_kernels_run_slower_while_gpus_exchange():
    added_s = exchange(10.0, slowdown=0.5).seconds - exchange(10.0).seconds
    assert added_s == pytest.approx(0.5 * WHOLE_S)


def test_gradients_are_copied_into_buckets_and_back():
    slower = replace(GPU, memory_bytes_per_s=GPU.memory_bytes_per_s / 2)
    time_s = np.array([1.0, 10.0, 1.0])
    seconds = exchange_of_gradients(trace_of(), time_s, 10.0, slower, PAIR, slowdown=0.0).seconds
    assert seconds - exchange(10.0).seconds == pytest.approx(COPIES_S)


def test_accumulated_gradients_are_exchanged_once_behind_the_last_pass():
    four = trace_of(accumulation=4)
    assert exchange(0.004, four).seconds == pytest.approx(exchange(0.001).seconds)


def test_a_script_that_reduces_after_each_pass_pays_for_each():
    buckets = values.Collective(kind="all_reduce", num_bytes=GRADIENT_BYTES, world_size=8, count=4)
    each = trace_of(accumulation=4, collectives=(buckets,), world_size=8)
    once = trace_of(accumulation=4, collectives=(replace(buckets, count=1),), world_size=8)
    assert exchange(0.4, each).seconds == pytest.approx(4 * exchange(0.4, once).seconds)


def test_what_nobody_knows_of_the_network_widens_the_interval():
    link = values.Fabric(link=values.Link.NVSWITCH, link_bytes_per_s=300e9)
    unknown = exchange(0.01, layout=values.Layout(gpus_per_node=2, num_nodes=2, fabric=link))
    network = replace(link, network=values.Network.INFINIBAND, network_bytes_per_s=25e9)
    known = exchange(0.01, layout=values.Layout(gpus_per_node=2, num_nodes=2, fabric=network))
    assert unknown.sigma_s / unknown.seconds > known.sigma_s / known.seconds


def two(
    trace: values.Trace, scaling: ScalingConstants
) -> tuple[values.IterationEstimate, values.IterationEstimate]:
    knowledge = replace(shipped(), scaling=scaling)
    one, other = predict_counts(trace, GPU, [1, 8], knowledge=knowledge)
    return one, other


def test_all_wait_for_the_slowest():
    # The largest of eight draws lies 1.42 standard deviations above the mean.
    one, eight = two(trace_of(), ScalingConstants(spread_of_steps=0.1, slowdown_in_node=0.0))
    assert OTHERS not in one.by_family
    late_s = eight.by_family[OTHERS]
    assert late_s == pytest.approx(0.1424 * one.device_s.p50, rel=0.01)
    assert eight.device_s.p50 == pytest.approx(one.device_s.p50 + late_s + eight.communication_s)
    assert sum(eight.by_family.values()) + eight.communication_s == pytest.approx(eight.device_s.p50)
    assert sum(eight.by_bound.values()) == pytest.approx(eight.device_s.p50)
    assert eight.by_bound[values.Bound.NETWORK] == eight.communication_s


@pytest.mark.parametrize("sharding", values.Sharding)
def test_kernels_slow_down_more_where_their_own_node_exchanges(sharding):
    trace = trace_of(ops=(make_op(phase=values.Phase.BACKWARD, flops=10**16),))
    split = values.Split(sharding=sharding)
    slower, same = (
        [
            predict(trace, GPU, layout, split=split, knowledge=replace(shipped(), scaling=scaling))
            for layout in (PAIR, NODES)
        ]
        for scaling in (
            ScalingConstants(slowdown=0.0, slowdown_in_node=0.5),
            ScalingConstants(slowdown=0.0, slowdown_in_node=0.0),
        )
    )
    added_s = slower[0].communication_s - same[0].communication_s
    reduced_s = WHOLE_S
    if sharding in (values.Sharding.ZERO_3, values.Sharding.HYBRID):
        # Two gathers and a scatter, of which the first and the last hide behind nothing.
        assert added_s > 0.4 * reduced_s
    else:
        assert added_s == pytest.approx(0.5 * reduced_s, rel=0.01)
    assert slower[1].communication_s == same[1].communication_s


def test_who_waits_for_the_host_waits_for_the_slowest_host():
    trace = trace_of(ops=(make_op(flops=10, num_bytes=10, count=1000), make_op(phase=values.Phase.BACKWARD)))
    one, eight = two(trace, ScalingConstants(spread=0.1, spread_of_steps=0.1))
    assert one.by_family[HOST] == eight.by_family[HOST]
    assert eight.by_family[OTHERS] == pytest.approx(0.1424 * one.device_s.p50, rel=0.01)


def test_several_gpus_are_less_sure_than_one():
    one, eight = two(trace_of(), ScalingConstants(sigma=0.2))
    assert eight.iteration_s.p90 / eight.iteration_s.p50 > one.iteration_s.p90 / one.iteration_s.p50


def test_the_network_binds_where_it_takes_longest():
    slow = values.Fabric(
        link=values.Link.PCIE, link_bytes_per_s=16e9, network=values.Network.TCP, network_bytes_per_s=1e8
    )
    estimate = predict(trace_of(10**10), GPU, values.Layout(gpus_per_node=1, num_nodes=2, fabric=slow))
    assert estimate.binds is values.Bound.NETWORK


def test_unknown_gradients_cost_the_latency_and_widen_the_interval():
    one, several = two(trace_of(None), ScalingConstants(slowdown_in_node=0.0))
    assert several.communication_s == pytest.approx(bucket_s(0, values.Layout(gpus_per_node=8)))
    assert several.iteration_s.p90 / several.iteration_s.p50 > one.iteration_s.p90 / one.iteration_s.p50 + 0.1
    assert Unknown(what="gradients") in several.assumptions
    assert Unknown(what="gradients") not in one.assumptions
