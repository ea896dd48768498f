"""What is fitted of ``collectives.toml``, where it starts, and how strongly it is held there.

A parameter is the logarithm of a positive number. One that no row tells of stays where it starts; so a
network that nobody measured has the efficiency of links in general.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import Link, Network

Floats = NDArray[np.float64]
# Between a round trip through two kernels of an operating system (TCP) and one through none (RDMA).
_TCP_HOP_S = 30e-6
_RDMA_HOP_S = 5e-6
_OTHER_HOP_S = (_TCP_HOP_S * _RDMA_HOP_S) ** 0.5
# A network that nobody states is taken for the least that a GPU is rented with.
_UNKNOWN_NETWORK_BYTES_PER_S = 10e9 / 8
# No row tells of small messages between nodes: steps may take a third or three times as long.
NETWORK_LATENCY_SIGMA = 0.85
# Latency of threads, of that of processes; it does not ship, since trainings are processes.
IN_ONE_PROCESS = "latency in one process"
NVLINKS = (Link.NVSWITCH, Link.NVLINK_MESH, Link.NVLINK_PAIRS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Where a number starts, and by what factor (a sigma of its logarithm) it may be off; None: by any."""

    start: float
    sigma: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far answers are off: sigmas of logarithms."""

    latency: float
    network_latency: float
    """Between nodes."""
    unknown_network: float
    unseen: float
    """Of the rates of those that nobody measured."""
    roads: Mapping[str, float]
    """Of rates, by the value of a link or network."""

    def of(self, road: Link | Network) -> dict[str, float]:
        """The entry of a link or network."""
        return {"sigma": self.roads.get(road.value, self.unseen)}


NO_SPREAD = Spread(latency=0.0, network_latency=0.0, unknown_network=0.0, unseen=0.0, roads={})


def parameters(architectures: frozenset[str]) -> Mapping[str, Parameter]:
    """All that is fitted, by name."""
    return {
        "launch_s": Parameter(start=5e-6),
        IN_ONE_PROCESS: Parameter(start=0.7, sigma=0.5),
        "hop of NVLink": Parameter(start=1e-6),
        "hop of PCIe": Parameter(start=1.5e-6, sigma=0.5),
        "hop of RDMA": Parameter(start=_RDMA_HOP_S, sigma=0.5),
        "own share": Parameter(start=0.5, sigma=0.3),
        "efficiency": Parameter(start=0.75),
        **{f"efficiency of {path}": Parameter(start=1.0, sigma=0.15) for path in (*Link, Network.INFINIBAND)},
        **{f"pace of {name}": Parameter(start=1.0, sigma=0.4) for name in sorted(architectures)},
        "LL bytes_per_s": Parameter(start=15e9, sigma=1.0),
        "LL128 latency": Parameter(start=1.3, sigma=0.5),
        "LL128 bytes_per_s": Parameter(start=150e9, sigma=1.0),
        "Simple latency": Parameter(start=2.5, sigma=0.5),
        "in switch latency": Parameter(start=5.0, sigma=0.7),
        "in switch efficiency": Parameter(start=0.65, sigma=0.15),
        "all_to_all rate": Parameter(start=1.0, sigma=0.2),
        "all_to_all own share": Parameter(start=0.5, sigma=0.5),
        "send rate": Parameter(start=1.0, sigma=0.2),
        "stream": Parameter(start=2e9, sigma=1.0),
        "send stream": Parameter(start=2.0, sigma=0.5),
    }


def table_of(values: Mapping[str, float], spread: Spread = NO_SPREAD) -> dict[str, Any]:
    """``collectives.toml`` as a table, from values of `parameters`."""
    return {
        "launch_s": values["launch_s"],
        "latency_sigma": spread.latency,
        "network_latency_sigma": spread.network_latency,
        "unknown_network_bytes_per_s": _UNKNOWN_NETWORK_BYTES_PER_S,
        "unknown_sigma": spread.unknown_network,
        "pace": {
            name.removeprefix("pace of "): value
            for name, value in values.items()
            if name.startswith("pace of ")
        },
        "protocols": _protocols(values),
        "in_switch": {
            "architectures": ["Hopper", "Blackwell"],
            "latency": values["in switch latency"],
            "efficiency": values["in switch efficiency"],
        },
        "manners": _manners(values),
        "links": {link.value: {**_link(link, values), **spread.of(link)} for link in Link},
        "networks": {
            network.value: {**_network(network, values), **spread.of(network)} for network in Network
        },
    }


def _protocols(values: Mapping[str, float]) -> dict[str, dict[str, dict[str, float]]]:
    """LL sends a flag with every four bytes, LL128 one of eight bytes with 120."""
    low_latency = {"latency": 1.0, "payload": 1 / 2, "bytes_per_s": values["LL bytes_per_s"]}
    of_128 = {
        "latency": values["LL128 latency"],
        "payload": 15 / 16,
        "bytes_per_s": values["LL128 bytes_per_s"],
    }
    simple = {"latency": values["Simple latency"], "payload": 1.0}
    return {"peers": {"LL": low_latency, "Simple": simple}, "rings": {"LL128": of_128}}


def _manners(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    return {
        "ring": {"rate": 1.0, "stream": 1.0, "own_share": min(1.0, values["own share"])},
        "all_to_all": {
            "rate": values["all_to_all rate"],
            "stream": 1.0,
            "own_share": min(1.0, values["all_to_all own share"]),
        },
        "send": {"rate": values["send rate"], "stream": values["send stream"], "own_share": 0.0},
    }


def _link(link: Link, values: Mapping[str, float]) -> dict[str, float]:
    return {
        "efficiency": min(1.0, values["efficiency"] * values[f"efficiency of {link.value}"]),
        "hop_s": values["hop of NVLink" if link in NVLINKS else "hop of PCIe"],
    }


def _network(network: Network, values: Mapping[str, float]) -> dict[str, float]:
    if network is Network.TCP:
        common = min(1.0, values["efficiency"])
        return {"efficiency": common, "hop_s": _TCP_HOP_S, "stream_bytes_per_s": values["stream"]}
    is_measured = network is Network.INFINIBAND
    efficiency = values["efficiency"] * (values["efficiency of infiniband"] if is_measured else 1.0)
    is_rdma = network in (Network.INFINIBAND, Network.ROCE)
    return {"efficiency": min(1.0, efficiency), "hop_s": values["hop of RDMA"] if is_rdma else _OTHER_HOP_S}
