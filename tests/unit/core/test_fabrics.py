"""What boards, rented machines and people's own clusters exchange over."""

import pytest

from advisor.core.errors import CatalogError, ConfigError
from advisor.core.fabrics import FABRICS_FILE, board_fabric, linked, machine_of, read_fabrics, stated_fabric
from advisor.core.gpus import catalog_path, load_gpus
from advisor.core.values import Fabric, Link, Network

GPUS = load_gpus()


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        ("H100-SXM-80GB", Fabric(link=Link.NVSWITCH, link_bytes_per_s=450e9)),
        ("V100-SXM-16GB", Fabric(link=Link.NVLINK_MESH, link_bytes_per_s=150e9, link_peers=4)),
        ("MI300X", Fabric(link=Link.NVLINK_MESH, link_bytes_per_s=448e9, link_peers=7)),
        ("RTX-4090", Fabric(link=Link.HOST, link_bytes_per_s=31.5e9)),
        ("GTX-1080-Ti", Fabric(link=Link.HOST, link_bytes_per_s=15.75e9)),
        ("A100-PCIE-80GB", Fabric(link=Link.PCIE, link_bytes_per_s=31.5e9, is_granted=False)),
    ],
)
def test_a_board_tells_of_its_links(gpu, expected):
    assert board_fabric(GPUS[gpu]) == expected


def test_machines_are_matched_by_provider_and_glob():
    p5 = machine_of("AWS", "p5.48xlarge")
    assert p5 is not None
    assert p5.network is Network.EFA
    assert machine_of("gcp", "p5.48xlarge") is None
    assert machine_of("aws", "p3.2xlarge") is None


def test_another_link_has_the_rate_of_the_data_sheet():
    assert linked(GPUS["L4"], Link.PCIE) == Fabric(link=Link.PCIE, link_bytes_per_s=31.5e9)
    assert linked(GPUS["H100-SXM-80GB"], Link.PCIE).link_bytes_per_s == 63e9
    assert linked(GPUS["A100-PCIE-80GB"], Link.NVLINK_PAIRS, 300e9).link_bytes_per_s == 300e9


def test_peer_access_that_is_stated_is_granted():
    assert linked(GPUS["RTX-A6000"], Link.PCIE).is_granted
    assert not stated_fabric(GPUS["RTX-A6000"], network="infiniband 200 Gbit").is_granted


def test_the_link_of_the_board_keeps_its_peers():
    """A rate that is stated replaces the data sheet's, and nothing else."""
    assert linked(GPUS["V100-SXM-16GB"], None) == board_fabric(GPUS["V100-SXM-16GB"])
    halved = linked(GPUS["V100-SXM-16GB"], Link.NVLINK_MESH, 75e9)
    assert (halved.link_peers, halved.link_bytes_per_s) == (4, 75e9)


@pytest.mark.parametrize(
    ("network", "kind", "bytes_per_s"),
    [
        ("infiniband 200 Gbit", Network.INFINIBAND, 25e9),
        ("IB 4x200Gb/s", Network.INFINIBAND, 100e9),
        ("roce 8 x 400 Gbit", Network.ROCE, 400e9),
        ("efa 3200 gbit", Network.EFA, 400e9),
        ("gpudirect-tcp 25 GB/s", Network.GPUDIRECT_TCP, 25e9),
        ("Ethernet 2.5 Gbit/s", Network.TCP, 312.5e6),
        ("tcp", Network.TCP, None),
    ],
)
def test_people_write_networks_in_words(network, kind, bytes_per_s):
    fabric = stated_fabric(GPUS["L4"], network=network)
    assert (fabric.link, fabric.network, fabric.network_bytes_per_s) == (Link.PCIE, kind, bytes_per_s)


def test_people_write_links_in_words():
    pairs = stated_fabric(GPUS["RTX-3090"], "nvlink-pairs 56 GB/s")
    assert pairs == Fabric(link=Link.NVLINK_PAIRS, link_bytes_per_s=56e9)
    assert stated_fabric(GPUS["L4"], "PCIe").link_bytes_per_s == 31.5e9
    assert stated_fabric(GPUS["H100-SXM-80GB"]) == board_fabric(GPUS["H100-SXM-80GB"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"network": "infinband 200 Gbit"}, "infiniband"),
        ({"network": "infiniband fast"}, "a rate such as 200 Gbit"),
        ({"network": "tcp 0 Gbit"}, "a rate such as"),
        ({"network": "tcp 0x10 Gbit"}, "a rate such as"),
        ({"network": "200 Gbit"}, "is no network"),
        ({"network": "tcp 10 gb"}, "a rate such as"),
        ({"network": f"tcp {'9' * 400} Gbit"}, "a rate such as"),
        ({"link": "nvlink"}, "is no link"),
        ({"link": "infiniband 200 Gbit"}, "is no link"),
    ],
)
def test_what_is_no_link_or_network_is_named(words, message):
    with pytest.raises(ConfigError, match=message):
        stated_fabric(GPUS["L4"], **words)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('link = "nvlink-mesh"', 'link = "nvlink-mash"'),
        ("peers = 4", "pears = 4"),
        ('provider = "aws"', 'owner = "aws"'),
        ('network = "efa"', ""),
        ("[[machine]]", "[[machine]"),
    ],
)
def test_a_broken_file_is_named(tmp_path, before, after):
    path = tmp_path / FABRICS_FILE
    path.write_text(catalog_path(FABRICS_FILE).read_text().replace(before, after, 1))
    with pytest.raises(CatalogError, match=FABRICS_FILE):
        read_fabrics(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CatalogError, match=FABRICS_FILE):
        read_fabrics(tmp_path / FABRICS_FILE)
