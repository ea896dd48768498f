"""What exchanging parts of a model adds to an iteration, in hand arithmetic."""

from dataclasses import replace

import pytest

from advisor.core.values import Collective, Fabric, Layout, Link, Network, Trace
from advisor.predict.exchange.collective_time import collective_time
from advisor.predict.exchange.data_parallel import exchange_of_shards
from tests.builders import make_gpu, make_trace

GPU = make_gpu(nvlink_bytes_per_s=300e9)
EIGHT = Layout(gpus_per_node=8)
FABRIC = Fabric(
    link=Link.NVSWITCH, link_bytes_per_s=300e9, network=Network.INFINIBAND, network_bytes_per_s=25e9
)
TWO_NODES = Layout(gpus_per_node=8, num_nodes=2, fabric=FABRIC)
UNIT = 2 * 10**8


def collective(kind: str, num_bytes: int, world_size: int = 8, count: int = 1) -> Collective:
    return Collective(kind=kind, num_bytes=num_bytes, world_size=world_size, count=count)


def trace_of(*collectives: Collective, world_size: int = 8) -> Trace:
    return make_trace(collectives=collectives, world_size=world_size, is_sharded=True)


FSDP = trace_of(collective("all_gather", UNIT, count=8), collective("reduce_scatter", UNIT, count=4))
GATHER_S, SCATTER_S = (
    collective_time(kind, UNIT, EIGHT, GPU).seconds for kind in ("all_gather", "reduce_scatter")
)


def seconds(trace: Trace, compute_s: float, layout: Layout = EIGHT, *, slowdown: float = 0.0) -> float:
    return exchange_of_shards(trace, compute_s, GPU, layout, slowdown=slowdown).seconds


def test_the_first_gather_and_the_last_scatter_always_show():
    assert seconds(FSDP, 10.0) == pytest.approx(GATHER_S + SCATTER_S)


def test_what_computation_is_too_short_for_shows_too():
    whole_s = 8 * GATHER_S + 4 * SCATTER_S
    assert seconds(FSDP, 0.0) == pytest.approx(whole_s)
    assert seconds(FSDP, whole_s / 4) == pytest.approx(whole_s * 3 / 4)


def test_kernels_run_slower_beside_what_hides():
    hidden_s = 7 * GATHER_S + 3 * SCATTER_S
    assert seconds(FSDP, 10.0, slowdown=0.5) - seconds(FSDP, 10.0) == pytest.approx(0.5 * hidden_s)


def test_activations_are_needed_at_once():
    trace = trace_of(collective("all_reduce", UNIT, count=3))
    assert seconds(trace, 10.0) == pytest.approx(3 * collective_time("all_reduce", UNIT, EIGHT, GPU).seconds)


def test_a_group_of_one_and_what_has_no_size_take_no_time():
    unsized = Collective(kind="nccl", num_bytes=None, world_size=None, count=1)
    assert seconds(trace_of(collective("all_gather", UNIT, 1), unsized), 0.0) == 0


def test_a_group_within_a_node_does_not_use_the_network():
    within, across = (trace_of(collective("all_reduce", UNIT, world), world_size=16) for world in (4, 16))
    four = Layout(gpus_per_node=4, fabric=FABRIC)
    assert seconds(within, 0.0, TWO_NODES) == collective_time("all_reduce", UNIT, four, GPU).seconds
    assert seconds(across, 0.0, TWO_NODES) == collective_time("all_reduce", UNIT, TWO_NODES, GPU).seconds


def test_copies_of_a_shard_share_the_network_of_their_node():
    # Eight GPUs of each node shard, so each reduces with one of the other node, all eight at a time.
    shard = 10**8
    hybrid = trace_of(
        collective("all_gather", 8 * shard), collective("reduce_scatter", 8 * shard),
        collective("all_reduce", shard, 2), world_size=16,
    )  # fmt: skip
    without = replace(hybrid, collectives=hybrid.collectives[:2])
    apart = Layout(gpus_per_node=1, num_nodes=2, fabric=FABRIC)
    expected_s = collective_time("all_reduce", 8 * shard, apart, GPU).seconds
    added_s = seconds(hybrid, 0.0, TWO_NODES) - seconds(without, 0.0, TWO_NODES)
    assert added_s == pytest.approx(expected_s)


def test_what_is_not_known_of_the_network_widens_what_shows():
    exchange = exchange_of_shards(FSDP, 0.0, GPU, EIGHT, slowdown=0.0)
    sigma = collective_time("all_gather", UNIT, EIGHT, GPU).sigma
    assert exchange.sigma_s >= sigma * exchange.seconds
