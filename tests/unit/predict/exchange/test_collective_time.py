"""The time of a collective, by hand with simple constants, and against what NCCL took."""

from dataclasses import replace

import pytest

from advisor.core.errors import CatalogError
from advisor.core.fabrics import board_fabric
from advisor.core.gpus import catalog_path, load_gpus
from advisor.core.values import Fabric, Layout, Link, Network
from advisor.predict.exchange.collective_time import (
    COLLECTIVES_FILE,
    CollectiveConstants,
    CollectiveLaw,
    CollectiveProtocol,
    ExchangeRates,
    InSwitch,
    Manner,
    ProtocolLine,
    Road,
    collective_constants,
    collective_time,
    group_of,
    law_of,
    read_constants,
)
from tests.builders import make_gpu

GIGA = 1e9
US = 1e-6
# Launches take 10 microseconds, steps 1 within and 5 between nodes; links reach a half, networks all of it.
SIMPLE = CollectiveConstants(
    launch_s=10 * US,
    pace={"Hopper": 0.5},
    peer_protocols=(CollectiveProtocol(latency=1.0, payload=1.0),),
    ring_protocols=(CollectiveProtocol(latency=1.0, payload=1.0),),
    in_switch=InSwitch(architectures=("Hopper",), latency=2.0, efficiency=0.5),
    manners={
        Manner.RING: ExchangeRates(rate=1.0, stream=1.0, own_share=0.0),
        Manner.ALL_TO_ALL: ExchangeRates(rate=1.0, stream=1.0, own_share=1.0),
        Manner.SEND: ExchangeRates(rate=2.0, stream=4.0, own_share=0.0),
    },
    links={link: Road(efficiency=0.5, hop_s=US, sigma=0.1) for link in Link},
    networks={
        network: Road(efficiency=1.0, hop_s=5 * US, sigma=0.2)
        for network in Network
        if network is not Network.TCP
    }
    | {Network.TCP: Road(efficiency=1.0, hop_s=5 * US, sigma=0.3, stream_bytes_per_s=GIGA)},
    unknown_network_bytes_per_s=GIGA,
    latency_sigma=0.4,
    network_latency_sigma=0.8,
    unknown_sigma=2.0,
)
SWITCHED = Fabric(
    link=Link.NVSWITCH, link_bytes_per_s=100 * GIGA, network=Network.INFINIBAND, network_bytes_per_s=10 * GIGA
)


def law(
    kind: str, gpus_per_node: int, num_nodes: int = 1, *, architecture: str = "", **changes: object
) -> CollectiveLaw:
    fabric = replace(SWITCHED, **changes)  # type: ignore[arg-type]
    layout = Layout(gpus_per_node=gpus_per_node, num_nodes=num_nodes, fabric=fabric)
    return law_of(group_of(kind, layout, make_gpu(architecture=architecture)), SIMPLE)


def line(kind: str, gpus_per_node: int, num_nodes: int = 1, **changes: object) -> ProtocolLine:
    return law(kind, gpus_per_node, num_nodes, **changes).lines[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "steps", "shares"),
    [
        ("all_reduce", 6, 1.5),
        ("all_gather", 3, 0.75),
        ("reduce_scatter", 3, 0.75),
        ("broadcast", 3, 1.0),
        ("reduce", 3, 1.0),
        ("all_to_all", 1, 1.0),
        ("send", 1, 0.5),
        ("recv", 1, 0.5),
    ],
)
def test_four_gpus_of_a_node(kind, steps, shares):
    """A rank's own part of an all-to-all costs as much as another here; who sends reaches twice the rate."""
    assert line(kind, 4).latency_s == pytest.approx((10 + steps) * US)
    assert line(kind, 4).s_per_byte == pytest.approx(shares / (50 * GIGA))


@pytest.mark.parametrize(
    ("kind", "link_steps", "network_steps", "crossing"),
    [
        # A tree over four nodes is two deep, up and down; a ring passes all of them.
        ("all_reduce", 2, 4, 2 * 7 / 8),
        ("all_gather", 4, 3, 7 / 8),
        ("broadcast", 4, 3, 1.0),
        # Both GPUs of a node send at once.
        ("all_to_all", 1, 1, 2 * 3 / 4),
        ("send", 1, 1, 2.0),
    ],
)
def test_two_gpus_in_each_of_four_nodes(kind, link_steps, network_steps, crossing):
    assert line(kind, 2, 4).latency_s == pytest.approx((10 + link_steps + 5 * network_steps) * US)
    assert line(kind, 2, 4).s_per_byte == pytest.approx(crossing / (10 * GIGA))


def test_the_slower_of_link_and_network_counts():
    slow = line("all_gather", 2, 4, link_bytes_per_s=GIGA)
    assert slow.s_per_byte == pytest.approx(7 / 8 / (0.5 * GIGA))


def test_many_nodes_are_as_unsure_as_the_less_sure_of_link_and_network():
    assert law("all_gather", 2).rate_sigma == 0.1
    for bytes_per_s in (GIGA, 100 * GIGA):
        assert law("all_gather", 2, 4, link_bytes_per_s=bytes_per_s).rate_sigma == 0.2
        assert law("all_gather", 2, 4, link_bytes_per_s=bytes_per_s, network=None).rate_sigma == 2.0


def test_the_cpu_carries_what_tcp_sends():
    tcp = line("all_gather", 2, 4, network=Network.TCP)
    assert tcp.s_per_byte == pytest.approx(7 / 8 * (1 / (10 * GIGA) + 1 / (2 * GIGA)))
    sent = line("send", 2, 4, network=Network.TCP)
    assert sent.s_per_byte == pytest.approx(2 * (1 / (10 * GIGA) + 1 / (8 * GIGA)))


@pytest.mark.parametrize("changes", [{"network": None}, {"network_bytes_per_s": None}])
def test_a_network_that_nobody_states_is_slow_and_wide(changes):
    unknown = law("all_gather", 2, 4, **changes)
    assert unknown.lines[0].s_per_byte == pytest.approx(7 / 8 * (1 / GIGA + 1 / (2 * GIGA)))
    assert (unknown.rate_sigma, unknown.latency_sigma) == (2.0, 0.8)


def test_pairs_are_bridged_and_what_lies_between_them_is_not():
    assert line("all_gather", 2, link=Link.NVLINK_PAIRS).s_per_byte == pytest.approx(0.5 / (50 * GIGA))
    pcie = make_gpu().pcie_bytes_per_s
    # Four boards share bridges that two do not.
    over_pcie = line("all_gather", 4, link=Link.PCIE, link_bytes_per_s=pcie)
    assert line("all_gather", 4, link=Link.NVLINK_PAIRS) == over_pcie
    assert over_pcie.s_per_byte == pytest.approx(1.2 * 0.75 / (0.5 * pcie))
    two = line("all_gather", 2, link=Link.PCIE, link_bytes_per_s=pcie)
    assert two.s_per_byte == pytest.approx(0.5 / (0.5 * pcie))


def test_a_mesh_lends_each_neighbour_its_part():
    assert line("send", 2, link_peers=4).s_per_byte == pytest.approx(1 / (25 * GIGA))
    assert line("send", 3, link_peers=4).s_per_byte == pytest.approx(1 / (50 * GIGA))
    assert line("send", 8, link_peers=4).s_per_byte == pytest.approx(1 / (100 * GIGA))


def test_host_memory_is_crossed_twice():
    host, switch = (
        line("all_gather", 2, link=link, link_bytes_per_s=8 * GIGA) for link in (Link.HOST, Link.NVSWITCH)
    )
    assert host.s_per_byte == 2 * switch.s_per_byte


def test_a_switch_that_adds_up_saves_half_a_ring():
    ring, switch = law("all_reduce", 8, architecture="Hopper").lines
    assert switch.s_per_byte == pytest.approx(9 / 8 / (50 * GIGA))
    assert ring.s_per_byte == pytest.approx(14 / 8 / (50 * GIGA))
    assert ring.latency_s == pytest.approx(0.5 * 24 * US)
    assert switch.latency_s == pytest.approx(2 * 0.5 * 12 * US)
    for other in (law("all_reduce", 8), law("all_gather", 8, architecture="Hopper")):
        assert len(other.lines) == 1


def test_the_fastest_protocol_is_taken():
    quick = CollectiveProtocol(latency=0.5, payload=0.5, bytes_per_s=GIGA)
    constants = replace(SIMPLE, ring_protocols=(quick, *SIMPLE.ring_protocols))
    layout = Layout(gpus_per_node=2, fabric=SWITCHED)
    by_size = law_of(group_of("all_gather", layout, make_gpu()), constants)
    assert by_size.time(0).seconds == pytest.approx(0.5 * 11 * US)
    assert by_size.time(1000).seconds == pytest.approx(5.5 * US + 1000 * 0.5 * (2 / (50 * GIGA) + 1 / GIGA))
    assert by_size.time(10**9).seconds == pytest.approx(11 * US + 0.01)


def test_small_messages_are_as_unsure_as_latency_and_large_ones_as_the_rate():
    by_size = law("all_gather", 2)
    assert by_size.time(0).sigma == pytest.approx(0.4)
    assert by_size.time(10**12).sigma == pytest.approx(0.1, rel=1e-3)
    even = by_size.lines[0].latency_s / by_size.lines[0].s_per_byte
    assert by_size.time(even).sigma == pytest.approx((0.4 + 0.1) / 2)


def test_a_layout_without_fabric_has_that_of_the_board():
    gpu = load_gpus()["L4"]
    board = Layout(gpus_per_node=4, fabric=board_fabric(gpu))
    assert collective_time("all_reduce", 1e8, Layout(gpus_per_node=4), gpu) == collective_time(
        "all_reduce", 1e8, board, gpu
    )


def test_shipped_constants_keep_laws():
    """A share above 1 would make more ranks faster, and hops of networks below links' more nodes."""
    constants = collective_constants()
    assert set(constants.manners) == set(Manner)
    assert all(0 <= manner.own_share <= 1 for manner in constants.manners.values())
    assert set(constants.links) == set(Link)
    assert set(constants.networks) == set(Network)
    for road in (*constants.links.values(), *constants.networks.values()):
        assert 0 < road.efficiency <= 1
        assert 0.1 <= road.sigma < constants.unknown_sigma
    measured = constants.networks[Network.INFINIBAND]
    for network in (Network.ROCE, Network.EFA, Network.GPUDIRECT_TCP):
        assert constants.networks[network].sigma > measured.sigma
        assert constants.networks[network].efficiency <= measured.efficiency


@pytest.mark.parametrize(
    ("before", "after"),
    [("launch_s", "lunch_s"), ("[links.pcie]", "[links.pci]"), ("sigma", "sigmas"), ("[pace]", "[pace")],
)
def test_a_broken_file_is_named(tmp_path, before, after):
    path = tmp_path / COLLECTIVES_FILE
    path.write_text(catalog_path(COLLECTIVES_FILE).read_text().replace(before, after, 1))
    with pytest.raises(CatalogError, match=COLLECTIVES_FILE):
        read_constants(path)


@pytest.mark.parametrize(
    ("gpu", "num_gpus", "bytes_and_us"),
    [
        # nccl-tests (aiconfigurator, Apache-2.0): a bucket of DDP and a larger message.
        ("A100-SXM-80GB", 8, {33_554_432: 367.0, 536_870_912: 4226.0}),
        ("H100-SXM-80GB", 8, {33_554_432: 199.2, 536_870_912: 2111.5}),
        ("B200-SXM-180GB", 4, {33_554_432: 122.6, 536_870_912: 1281.0}),
    ],
)
def test_buckets_take_what_they_took(gpu, num_gpus, bytes_and_us):
    for num_bytes, took_us in bytes_and_us.items():
        seconds = collective_time(
            "all_reduce", num_bytes, Layout(gpus_per_node=num_gpus), load_gpus()[gpu]
        ).seconds
        assert seconds == pytest.approx(took_us * US, rel=0.15)
