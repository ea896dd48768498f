"""What a rented machine exchanges over, by all that the catalogs know."""

from __future__ import annotations

import pytest

from advisor.core.fabrics import board_fabric
from advisor.core.gpus import load_gpus
from advisor.core.values import Link, Network
from advisor.pricing.node_counts import fabric_of

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
def test_a_machine_has_its_link_and_network(
    provider: str, instance_type: str, gpu: str, link: Link, network: Network, gbit_per_s: float
) -> None:
    fabric = fabric_of(provider, instance_type, load_gpus()[gpu])
    assert (fabric.link, fabric.network) == (link, network)
    assert fabric.network_bytes_per_s == pytest.approx(gbit_per_s * GBIT)


def test_a_machine_that_nobody_knows_has_its_board_alone() -> None:
    gpu = load_gpus()["H100-SXM-80GB"]
    assert fabric_of("vast", "8x H100", gpu) == board_fabric(gpu)
    assert fabric_of("aws", "g3s.xlarge", load_gpus()["M60"]).network is None
