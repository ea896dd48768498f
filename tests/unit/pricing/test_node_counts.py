"""How many machines make one plan, and over what they exchange."""

import pytest

from advisor.core.fabrics import board_fabric, linked
from advisor.core.gpus import load_gpus
from advisor.core.values import Link, Network
from advisor.pricing.node_counts import ALONE, USEFUL, NodeLimits, fabric_of, node_counts, numbers_of_nodes
from tests.builders import make_offer

P4D = make_offer("A100-SXM-40GB", provider="aws", instance_type="p4d.24xlarge", num_gpus=8)
G5_SMALL = make_offer("A10G", provider="aws", instance_type="g5.12xlarge", num_gpus=4)
G5_LARGE = make_offer("A10G", provider="aws", instance_type="g5.48xlarge", num_gpus=8)
A_HOST = make_offer("RTX-4090", provider="vastai", instance_type="4x_RTX4090", num_gpus=4)
OFFERS = (P4D, G5_SMALL, G5_LARGE, A_HOST)


@pytest.mark.parametrize("limits", [ALONE, USEFUL, NodeLimits(exactly=1), NodeLimits(most=1, exactly=1)])
def test_machines_stay_alone_unless_more_are_asked_for(limits):
    assert [*map(node_counts(OFFERS, limits, {}, {}).of, OFFERS)] == [(1,)] * 4


WANTED = {"A100-SXM-40GB": {8, 24}, "A10G": {4, 16}}
SIXTEEN, TWELVE = {"A100-SXM-40GB": {16}}, {"A100-SXM-40GB": {12}}


@pytest.mark.parametrize(
    ("offer", "limits", "wanted", "beyond", "numbers"),
    [
        # The largest machines of their GPU go together, in useful numbers.
        (P4D, NodeLimits(most=6), {}, {}, (1, 2, 4, 6)),
        (G5_LARGE, NodeLimits(most=2), {}, {}, (1, 2)),
        (G5_SMALL, NodeLimits(most=2), {}, {}, (1,)),
        # One of unknown network stays alone.
        (A_HOST, NodeLimits(most=8), {}, {}, (1,)),
        (A_HOST, NodeLimits(most=8, exactly=2), {}, {}, ()),
        # An exact number leaves no other.
        (P4D, NodeLimits(most=None, exactly=3), {}, {}, (3,)),
        (G5_SMALL, NodeLimits(most=None, exactly=3), {}, {}, ()),
        # Numbers of GPUs count all nodes.
        (P4D, NodeLimits(most=4), WANTED, {}, (1, 3)),
        (P4D, NodeLimits(most=2), WANTED, {}, (1,)),
        (G5_SMALL, NodeLimits(most=4), WANTED, {}, (1,)),
        (G5_LARGE, NodeLimits(most=4), WANTED, {}, (2,)),
        (A_HOST, NodeLimits(most=4), WANTED, {}, ()),
        (P4D, NodeLimits(most=None, exactly=2), WANTED, {}, ()),
        # What no machine has is made of nodes where nobody limits them.
        (P4D, USEFUL, SIXTEEN, SIXTEEN, (2,)),
        (P4D, ALONE, SIXTEEN, SIXTEEN, ()),
        (P4D, USEFUL, SIXTEEN, {}, ()),
        (P4D, USEFUL, TWELVE, TWELVE, ()),
    ],
)
def test_how_many_go_together(offer, limits, wanted, beyond, numbers):
    assert node_counts(OFFERS, limits, wanted, beyond).of(offer) == numbers


def test_nodes_of_one_s_own_are_as_many_as_there_are():
    assert numbers_of_nodes(USEFUL, 4, 8, ()) == {1, 2, 4}
    assert numbers_of_nodes(USEFUL, 4, 8, (24, 40)) == {1, 2, 3, 4}
    assert numbers_of_nodes(NodeLimits(exactly=4), 4, 8, ()) == {4}
    assert numbers_of_nodes(NodeLimits(exactly=5), 4, 8, ()) == set()


GBIT = 1e9 / 8


@pytest.mark.parametrize(
    ("provider", "instance_type", "gpu", "link", "network", "gbit_per_s"),
    [
        # The kind by its row, the rate by instances.csv.
        ("aws", "p5.48xlarge", "H100-SXM-80GB", Link.NVSWITCH, Network.EFA, 3200),
        ("aws", "g5.48xlarge", "A10G", Link.HOST, Network.EFA, 100),
        # No row: the board, and plain TCP.
        ("aws", "p3.16xlarge", "V100-SXM-16GB", Link.NVLINK_MESH, Network.TCP, 25),
        ("aws", "g5.xlarge", "A10G", Link.HOST, Network.TCP, 2.5),
        # Both by its row.
        ("gcp", "a3-megagpu-8g", "H100-SXM-80GB", Link.NVSWITCH, Network.GPUDIRECT_TCP, 1600),
        ("gcp", "n1-standard-96+8xV100", "V100-SXM-16GB", Link.NVLINK_MESH, Network.TCP, 32),
        ("azure", "Standard_ND96isr_H100_v5", "H100-SXM-80GB", Link.NVSWITCH, Network.INFINIBAND, 3200),
        # The row's own link.
        ("gcp", "g4-standard-384", "RTX-PRO-6000-Server", Link.PCIE, Network.TCP, 400),
        ("azure", "Standard_NC96ads_A100_v4", "A100-PCIE-80GB", Link.NVLINK_PAIRS, Network.TCP, 80),
    ],
)
def test_a_machine_has_its_link_and_network(provider, instance_type, gpu, link, network, gbit_per_s):
    fabric = fabric_of(provider, instance_type, load_gpus()[gpu])
    assert (fabric.link, fabric.network) == (link, network)
    assert fabric.network_bytes_per_s == pytest.approx(gbit_per_s * GBIT)


def test_a_machine_that_nobody_knows_has_its_board_alone():
    gpu = load_gpus()["H100-SXM-80GB"]
    assert fabric_of("vast", "8x H100", gpu) == board_fabric(gpu)
    card = load_gpus()["A100-PCIE-80GB"]
    assert fabric_of("vast", "8x A100", card) == linked(card, Link.HOST)
    assert fabric_of("aws", "g3s.xlarge", load_gpus()["M60"]).network is None
