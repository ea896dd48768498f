"""How the GPUs of a plan are laid out: how many in each node, and over what they exchange."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Link(StrEnum):
    """Over what GPUs of one node exchange."""

    NVSWITCH = "nvswitch"
    NVLINK_MESH = "nvlink-mesh"
    NVLINK_PAIRS = "nvlink-pairs"
    PCIE = "pcie"
    HOST = "host"


class Network(StrEnum):
    """Over what nodes exchange."""

    INFINIBAND = "infiniband"
    ROCE = "roce"
    EFA = "efa"
    GPUDIRECT_TCP = "gpudirect-tcp"
    TCP = "tcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """What a kind of machine exchanges over.

    Attributes:
        link_bytes_per_s: per direction and GPU, of the data sheet.
        link_peers: GPUs among which a GPU's links are shared: with fewer of them, a part lies idle.
        network: None where nobody knows of any.
        network_bytes_per_s: per direction and node, of the data sheet; None where it is unknown.
    """

    link: Link
    link_bytes_per_s: float
    link_peers: int = 1
    network: Network | None = None
    network_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Equal nodes that train together.

    Attributes:
        fabric: None where only the GPU's data sheet is known.
        power_limit_w: what each GPU may draw; None where that is what its data sheet says.
    """

    gpus_per_node: int
    num_nodes: int = 1
    fabric: Fabric | None = None
    power_limit_w: float | None = None

    @property
    def num_gpus(self) -> int:
        """Of all nodes together."""
        return self.gpus_per_node * self.num_nodes

    def of(self, gpu: str) -> str:
        """In words.

        >>> Layout(gpus_per_node=8).of("L4"), Layout(gpus_per_node=8, num_nodes=2).of("L4")
        ('8 x L4', '2 x 8 x L4')
        """
        counts = (self.gpus_per_node,) if self.num_nodes == 1 else (self.num_nodes, self.gpus_per_node)
        return " x ".join(map(str, (*counts, gpu)))
