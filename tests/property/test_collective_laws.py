"""Laws of collectives: more to move, further away or over less is never faster."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from advisor.core.values import Fabric, Layout, Link, Network
from advisor.predict.exchange.collective_time import collective_law, collective_time
from tests.builders import make_gpu

RINGS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
KINDS = st.sampled_from([*RINGS, "all_to_all", "send", "recv"])
GPUS = st.builds(
    make_gpu,
    architecture=st.sampled_from(["Volta", "Ampere", "Hopper", "Blackwell", "CDNA3"]),
    pcie_bytes_per_s=st.sampled_from([16e9, 32e9, 63e9]),
    nvlink_bytes_per_s=st.sampled_from([0.0, 150e9, 450e9]),
)
FABRICS = st.builds(
    Fabric,
    link=st.sampled_from(Link),
    link_bytes_per_s=st.floats(1e9, 2e12),
    link_peers=st.integers(1, 7),
    network=st.none() | st.sampled_from(Network),
    network_bytes_per_s=st.none() | st.floats(1e8, 1e12),
)
LAYOUTS = st.builds(
    Layout, gpus_per_node=st.integers(1, 16), num_nodes=st.integers(1, 64), fabric=st.none() | FABRICS
)
SIZES = st.floats(0, 1e11)
FACTORS = st.floats(1, 100)
# Of sums in another order.
ROUNDING = 1 + 1e-9


@given(KINDS, SIZES, FACTORS, LAYOUTS, GPUS)
def test_more_bytes_are_never_faster(kind, num_bytes, factor, layout, gpu):
    base = collective_time(kind, num_bytes, layout, gpu).seconds
    assert 0 <= base <= collective_time(kind, factor * num_bytes, layout, gpu).seconds * ROUNDING


@given(KINDS, SIZES, FACTORS, LAYOUTS, FABRICS, GPUS)
def test_a_faster_link_is_never_slower(kind, num_bytes, factor, layout, fabric, gpu):
    faster = replace(fabric, link_bytes_per_s=factor * fabric.link_bytes_per_s)
    base, better = (
        collective_time(kind, num_bytes, replace(layout, fabric=each), gpu).seconds
        for each in (fabric, faster)
    )
    assert better <= base * ROUNDING


@given(KINDS, SIZES, FACTORS, LAYOUTS, FABRICS, GPUS)
def test_a_faster_network_is_never_slower(kind, num_bytes, factor, layout, fabric, gpu):
    assume(fabric.network_bytes_per_s is not None)
    faster = replace(fabric, network_bytes_per_s=factor * (fabric.network_bytes_per_s or 0.0))
    base, better = (
        collective_time(kind, num_bytes, replace(layout, fabric=each), gpu).seconds
        for each in (fabric, faster)
    )
    assert better <= base * ROUNDING


@given(KINDS, SIZES, LAYOUTS, st.integers(1, 8), GPUS)
def test_more_nodes_are_never_faster(kind, num_bytes, layout, times, gpu):
    more = replace(layout, num_nodes=layout.num_nodes * times)
    base = collective_time(kind, num_bytes, layout, gpu).seconds
    assert base <= collective_time(kind, num_bytes, more, gpu).seconds * ROUNDING


@given(KINDS, SIZES, LAYOUTS, FABRICS, GPUS)
def test_a_network_that_nobody_states_is_never_faster_than_one_of_10_gbit(
    kind, num_bytes, layout, fabric, gpu
):
    least = 10e9 / 8
    known = replace(
        fabric,
        network=fabric.network or Network.TCP,
        network_bytes_per_s=max(least, fabric.network_bytes_per_s or 0.0),
    )
    unknown = replace(fabric, network=None)
    seconds, guess = (
        collective_time(kind, num_bytes, replace(layout, fabric=each), gpu) for each in (known, unknown)
    )
    assert seconds.seconds <= guess.seconds * ROUNDING


@given(KINDS, SIZES, st.integers(2, 16), st.floats(1e9, 1e12), GPUS)
def test_a_detour_through_the_host_is_never_faster(kind, num_bytes, num_gpus, bytes_per_s, gpu):
    peers, host = (
        collective_time(
            kind,
            num_bytes,
            Layout(gpus_per_node=num_gpus, fabric=Fabric(link=link, link_bytes_per_s=bytes_per_s)),
            gpu,
        ).seconds
        for link in (Link.PCIE, Link.HOST)
    )
    assert peers <= host


@given(KINDS, SIZES, LAYOUTS, GPUS)
def test_one_gpu_exchanges_nothing(kind, num_bytes, layout, gpu):
    alone = collective_time(kind, num_bytes, replace(layout, gpus_per_node=1, num_nodes=1), gpu)
    assert (alone.seconds, alone.sigma) == (0, 0)


@given(st.floats(1e12, 1e13), LAYOUTS, GPUS)
def test_a_large_all_reduce_is_a_scatter_and_a_gather(num_bytes, layout, gpu):
    """A switch that adds up in passing saves up to half of it; small ones go along a tree, and are faster."""
    assume(layout.num_gpus > 1)
    scatter, gather, reduce = (
        collective_time(kind, num_bytes, layout, gpu).seconds
        for kind in ("reduce_scatter", "all_gather", "all_reduce")
    )
    assert scatter == gather
    assert 0.45 * (scatter + gather) <= reduce <= 1.05 * (scatter + gather)


@given(KINDS, st.lists(SIZES, min_size=1, max_size=20), LAYOUTS, GPUS)
def test_many_sizes_at_once_take_what_each_takes(kind, sizes, layout, gpu):
    times = collective_law(kind, layout, gpu).times(np.array(sizes))
    each = [collective_time(kind, size, layout, gpu) for size in sizes]
    assert times.seconds == pytest.approx([one.seconds for one in each])
    assert times.sigma == pytest.approx([one.sigma for one in each])
