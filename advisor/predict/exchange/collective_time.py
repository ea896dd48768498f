"""How long one collective takes, by what is exchanged, among how many GPUs, and over what.

Within a node a ring moves ``(N - 1) / N`` of the buffer over every link, all-reduce twice (Patarasuk and
Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69(2), 2009). Between nodes each network carries as
much, and the slower of link and network counts. NCCL has several protocols, which trade latency for
bandwidth, and takes the fastest: time is the least of a few lines over bytes. The form is that of NCCL's own
tuning model; its constants are fitted (research/docs/accuracy/collectives.md).
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.core.errors import CatalogError
from advisor.core.fabrics import board_fabric
from advisor.core.gpus import catalog_path
from advisor.core.values import Fabric, GpuSpec, Layout, Link, Network, Trace

COLLECTIVES_FILE = "collectives.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveProtocol:
    """A way to send."""

    latency: float
    """In multiples of the fastest protocol's."""
    payload: float
    """The share of what is sent that is no flag."""
    bytes_per_s: float = math.inf
    """That a GPU handles, whatever the link could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Road:
    """A kind of link or network."""

    efficiency: float
    """Of the data sheet's rate, with large messages."""
    hop_s: float
    """Of one step along it."""
    sigma: float
    """Of the logarithm of the rate."""
    stream_bytes_per_s: float = math.inf
    """That the CPU carries of one GPU; infinite where no CPU does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InSwitch:
    """Reductions that the switch does (NVLink SHARP): architectures that know it, and what it costs."""

    architectures: tuple[str, ...]
    latency: float
    """In multiples of a launch with one step each way."""
    efficiency: float
    """Of the link's rate."""


class Manner(StrEnum):
    """How ranks exchange: along a ring, each with each, or one with one."""

    RING = "ring"
    ALL_TO_ALL = "all_to_all"
    SEND = "send"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRates:
    """What a manner of exchange reaches."""

    rate: float
    """Of the link, relative to a ring's."""
    stream: float
    """Of the CPU, relative to a ring's."""
    own_share: float
    """What a rank's own part of the buffer costs, of a part that it sends; at most 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveConstants:
    """All of a file."""

    launch_s: float
    """Of a kernel that takes no steps."""
    pace: Mapping[str, float]
    """Latency within a node, by architecture, relative to the mean of all."""
    peer_protocols: tuple[CollectiveProtocol, ...]
    """Of which the fastest is taken."""
    ring_protocols: tuple[CollectiveProtocol, ...]
    """Those and more."""
    in_switch: InSwitch
    manners: Mapping[Manner, ExchangeRates]
    links: Mapping[Link, Road]
    networks: Mapping[Network, Road]
    unknown_network_bytes_per_s: float
    """Of a node whose network is not stated."""
    latency_sigma: float
    """Of the logarithm of latency within a node; `network_latency_sigma` between nodes."""
    network_latency_sigma: float
    unknown_sigma: float
    """Of the rate of a network that was not stated."""


@cache
def collective_constants() -> CollectiveConstants:
    """The shipped constants. Raises CatalogError: as `read_constants`."""
    return read_constants(catalog_path(COLLECTIVES_FILE))


def read_constants(path: Path) -> CollectiveConstants:
    """The constants of a file. Raises CatalogError: the file cannot be read, or an entry is missing."""
    try:
        return constants_from(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CatalogError(f"{path}: {error}. Install gpu-advisor again.") from error


def constants_from(table: Mapping[str, Any]) -> CollectiveConstants:
    """The constants of a parsed file.

    Raises:
        KeyError: an entry is missing.
        ValueError: a link, network or manner that is none.
        TypeError: an entry has other fields.
    """
    peers, rings = (
        tuple(CollectiveProtocol(**row) for row in table["protocols"][name].values())
        for name in ("peers", "rings")
    )
    switch = table["in_switch"]
    return CollectiveConstants(
        launch_s=table["launch_s"],
        pace=table["pace"],
        peer_protocols=peers,
        ring_protocols=(*peers, *rings),
        in_switch=InSwitch(**{**switch, "architectures": tuple(switch["architectures"])}),
        manners={Manner(name): ExchangeRates(**row) for name, row in table["manners"].items()},
        links={Link(name): Road(**row) for name, row in table["links"].items()},
        networks={Network(name): Road(**row) for name, row in table["networks"].items()},
        unknown_network_bytes_per_s=table["unknown_network_bytes_per_s"],
        latency_sigma=table["latency_sigma"],
        network_latency_sigma=table["network_latency_sigma"],
        unknown_sigma=table["unknown_sigma"],
    )


Floats = NDArray[np.float64]
_NEIGHBOURS = ("send", "recv")
# All others go along a ring.
_MANNERS = {"all_to_all": Manner.ALL_TO_ALL, "send": Manner.SEND, "recv": Manner.SEND}


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTime:
    """Seconds of one collective; `sigma` is the standard deviation of their logarithm."""

    seconds: float
    sigma: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTimes:
    """As `CollectiveTime`, of several sizes."""

    seconds: Floats
    sigma: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolLine:
    """What one protocol takes."""

    latency_s: float
    s_per_byte: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveLaw:
    """The time of one kind of collective over one layout, by size: the least of its lines.

    A machine that is slow in one part is taken to be slow in the other: where both count, protocols change,
    and nothing is surer than either.
    """

    lines: tuple[ProtocolLine, ...]
    latency_sigma: float
    """Of the part of the time that does not grow with the size."""
    rate_sigma: float
    """Of the part that does."""

    def time(self, num_bytes: float) -> CollectiveTime:
        """Of one size."""
        line = min(self.lines, key=lambda line: line.latency_s + line.s_per_byte * num_bytes)
        moving_s = line.s_per_byte * num_bytes
        seconds = line.latency_s + moving_s
        if not seconds:
            return CollectiveTime(seconds=0.0, sigma=0.0)
        sigma = (line.latency_s * self.latency_sigma + moving_s * self.rate_sigma) / seconds
        return CollectiveTime(seconds=seconds, sigma=sigma)

    def times(self, num_bytes: Floats) -> CollectiveTimes:
        """Of sizes [N]."""
        latency_s = np.array([line.latency_s for line in self.lines])
        moving_s = np.multiply.outer(num_bytes, [line.s_per_byte for line in self.lines])
        best = np.argmin(latency_s + moving_s, axis=-1)
        waits_s, moves_s = latency_s[best], np.take_along_axis(moving_s, best[..., None], axis=-1)[..., 0]
        seconds = waits_s + moves_s
        spread_s = waits_s * self.latency_sigma + moves_s * self.rate_sigma
        sigma = np.divide(spread_s, seconds, out=np.zeros_like(seconds), where=seconds > 0)
        return CollectiveTimes(seconds=seconds, sigma=sigma)


_FREE = CollectiveLaw(lines=(ProtocolLine(latency_s=0.0, s_per_byte=0.0),), latency_sigma=0.0, rate_sigma=0.0)


def collective_time(kind: str, num_bytes: float, layout: Layout, gpu: GpuSpec) -> CollectiveTime:
    """Time of one collective over all GPUs of the layout.

    Args:
        kind: as in `Collective.kind`: all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all,
            send or recv.
        num_bytes: as nccl-tests count: the buffer of an all-reduce, broadcast, reduce, send or receive; the
            gathered whole; the whole input of one rank of a scatter or all-to-all.
        layout: every GPU takes part. Each sends to the next node where there are several, else to its
            neighbour.
        gpu: tells of the link where the layout does not.
    """
    return collective_law(kind, layout, gpu).time(num_bytes)


def collective_law(kind: str, layout: Layout, gpu: GpuSpec) -> CollectiveLaw:
    """As `collective_time`, for anyone who asks for many sizes."""
    return _shipped_law(group_of(kind, layout, gpu))


@lru_cache(maxsize=4096)
def _shipped_law(group: Group) -> CollectiveLaw:
    return law_of(group, collective_constants())


# Boards over PCIe share switches and host bridges: each beyond two takes so much of a pair's rate from all.
# Fitted to Lambda's boards; DeepBench's GTX 1080 Ti say the same (research/docs/accuracy/scaling.md).
_BRIDGES_SHARED = 0.1
# What crosses host memory is no faster over PCIe 4 than copies over PCIe 3 reach: boards of nineteen machines
# move 0.7 to 13 GB/s each, 4.9 in the median, over PCIe 4 less than over PCIe 3 (the same page).
_MOST_THROUGH_HOST = 12e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Who exchanges what over what; all that a law follows from."""

    kind: str
    gpus_per_node: int
    num_nodes: int
    fabric: Fabric
    architecture: str
    pcie_bytes_per_s: float

    @property
    def num_gpus(self) -> int:
        """Of all nodes."""
        return self.gpus_per_node * self.num_nodes

    @property
    def manner(self) -> Manner:
        """How ranks exchange."""
        return _MANNERS.get(self.kind, Manner.RING)

    @property
    def rounds(self) -> int:
        """Of each part of the buffer."""
        return 2 if self.kind == "all_reduce" else 1

    @property
    def link(self) -> Link:
        """What a ring of all the GPUs of a node crosses: pairs are bridged, the way between them is not."""
        is_split = self.fabric.link is Link.NVLINK_PAIRS and self.gpus_per_node > 2
        return Link.PCIE if is_split else self.fabric.link

    @property
    def link_bytes_per_s(self) -> float:
        """What the data sheet has of that link, as far as these GPUs can use it."""
        if self.link is Link.PCIE:
            is_bridged = self.link is not self.fabric.link
            rate = self.pcie_bytes_per_s if is_bridged else self.fabric.link_bytes_per_s
            # Half is what a way through the host's memory has, which any number of boards can take.
            return rate / min(1 + _BRIDGES_SHARED * max(self.gpus_per_node - 2, 0), 2.0)
        if self.link is Link.HOST:
            # A copy through host memory crosses the bus twice.
            return min(self.fabric.link_bytes_per_s, _MOST_THROUGH_HOST) / 2
        used = min(1.0, (self.gpus_per_node - 1) / self.fabric.link_peers)
        return used * self.fabric.link_bytes_per_s


def group_of(kind: str, layout: Layout, gpu: GpuSpec) -> Group:
    """The GPUs of a layout, over its fabric or the one that the GPU's board tells."""
    return Group(
        kind=kind,
        gpus_per_node=layout.gpus_per_node,
        num_nodes=layout.num_nodes,
        fabric=layout.fabric or board_fabric(gpu),
        architecture=gpu.architecture,
        pcie_bytes_per_s=gpu.pcie_bytes_per_s,
    )


def law_of(group: Group, constants: CollectiveConstants) -> CollectiveLaw:
    """The law of a group by some constants; training fits them through it."""
    if group.num_gpus == 1:
        return _FREE
    network, network_sigma, network_s = _network(group, constants)
    link, link_s, shares = constants.links[group.link], 0.0, _shares(group, constants)
    if group.gpus_per_node > 1:
        efficiency = link.efficiency * constants.manners[group.manner].rate
        link_s = shares / (efficiency * group.link_bytes_per_s)
    is_known = group.fabric.is_granted or group.gpus_per_node == 1
    pace = constants.pace.get(group.architecture, 1.0)
    link_steps, network_steps = _steps(group)
    latency_s = pace * (constants.launch_s + link_steps * link.hop_s) + network_steps * network.hop_s
    is_ring = group.manner is Manner.RING
    lines = [
        ProtocolLine(
            latency_s=protocol.latency * latency_s,
            s_per_byte=max(link_s, network_s) / protocol.payload + shares / protocol.bytes_per_s,
        )
        for protocol in (constants.ring_protocols if is_ring else constants.peer_protocols)
    ]
    switch = constants.in_switch
    is_able = group.fabric.link is Link.NVSWITCH and group.architecture in switch.architectures
    if group.kind == "all_reduce" and group.num_nodes == 1 and is_able:
        # A GPU sends all of its buffer to the switch, and gets the others' shares of the sum.
        rate = switch.efficiency * group.fabric.link_bytes_per_s
        switch_s = switch.latency * pace * (constants.launch_s + 2 * constants.links[Link.NVSWITCH].hop_s)
        lines.append(ProtocolLine(latency_s=switch_s, s_per_byte=(1 + 1 / group.num_gpus) / rate))
    return CollectiveLaw(
        lines=tuple(lines),
        latency_sigma=constants.latency_sigma if group.num_nodes == 1 else constants.network_latency_sigma,
        rate_sigma=max(network_sigma, (link if is_known else constants.links[Link.HOST]).sigma),
    )


def _steps(group: Group) -> tuple[int, int]:
    """Steps along links and networks one after the other; between nodes all-reduce goes along a tree."""
    per_node, nodes = group.gpus_per_node, group.num_nodes
    if group.kind == "all_reduce":
        return 2 * (per_node - 1), 2 * math.ceil(math.log2(nodes))
    if group.manner is not Manner.RING:
        return 1, min(1, nodes - 1)
    return nodes * (per_node - 1), nodes - 1


def _shares(group: Group, constants: CollectiveConstants) -> float:
    """How much of the buffer crosses each link; a rank's own share costs a part of one that it sends."""
    if group.kind in _NEIGHBOURS or group.kind in ("broadcast", "reduce"):
        return 1.0
    own_share = constants.manners[group.manner].own_share
    return (group.rounds * (group.num_gpus - 1) + own_share) / group.num_gpus


def _network(group: Group, constants: CollectiveConstants) -> tuple[Road, float, float]:
    """The network, the sigma of its rate, and its seconds per byte, zero where there is one node."""
    fabric = group.fabric
    kind, bytes_per_s = fabric.network, fabric.network_bytes_per_s
    if kind is None or bytes_per_s is None:
        kind, bytes_per_s = Network.TCP, constants.unknown_network_bytes_per_s
        sigma = constants.unknown_sigma
    else:
        sigma = constants.networks[kind].sigma
    road = constants.networks[kind]
    if group.num_nodes == 1:
        return road, 0.0, 0.0
    streams = road.stream_bytes_per_s * group.gpus_per_node * constants.manners[group.manner].stream
    return road, sigma, _crossing(group) * (1 / (road.efficiency * bytes_per_s) + 1 / streams)


def _crossing(group: Group) -> float:
    """How many buffers a node sends to others; all GPUs of a node send at once."""
    if group.kind in _NEIGHBOURS:
        return float(group.gpus_per_node)
    if group.kind == "all_to_all":
        return group.gpus_per_node * (1 - 1 / group.num_nodes)
    if group.kind in ("broadcast", "reduce"):
        return 1.0
    return group.rounds * (1 - 1 / group.num_gpus)


# What several GPUs cost each other beside what they exchange, fitted to published throughputs.
#
# All wait for the slowest: of N GPUs whose steps take times of a normal distribution it lies ``E(N)``
# standard deviations above the mean (Blom, "Statistical estimates and transformed beta-variables", 1958).


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingConstants:
    """Constants, fitted by ``python -m research.scaling`` (``research/docs/accuracy/scaling.md``)."""

    slowdown: float = 0.3
    """By which kernels take longer while NCCL's run beside them, as a share of their time: over a network,
    and in scripts that shard their model themselves."""
    slowdown_in_node: float = 0.8
    """The same of GPUs of one node that each hold the model, or share it by a split: NCCL's kernels then move
    and add all themselves."""
    spread: float = 0.06
    """Standard deviation of the time in which GPUs of one job do a part of a pass, as a share of it. They
    wait for each other in each pass where they share a model, or are of several nodes, which differ as
    hosts do."""
    spread_of_steps: float = 0.01
    """The same of a whole step of the GPUs of one node, who wait once: for gradients."""
    sigma: float = 0.03
    """Log-normal, of what all this leaves unexplained of a step."""

    def slowdown_on(self, layout: Layout) -> float:
        """Of GPUs in this layout whose script shards nothing."""
        return self.slowdown if layout.num_nodes > 1 else self.slowdown_in_node

    def of_gradients(self, layout: Layout) -> ScalingConstants:
        """Of GPUs that each hold the model and exchange gradients alone."""
        spread = self.spread if layout.num_nodes > 1 else self.spread_of_steps
        return replace(self, slowdown=self.slowdown_on(layout), spread=spread)

    def waiting(self, num_gpus: int) -> float:
        """By which share of a pass the slowest of so many GPUs is later than their mean.

        >>> ScalingConstants().waiting(1)
        0.0
        """
        return self.spread * slowest(num_gpus)


def batch_variation(trace: Trace) -> float:
    """Standard deviation over the mean of what steps do, or of what their batches hold: passes even out.

    A profiler's trace does not tell; ``spread`` and ``sigma`` hold what published jobs had of it.
    """
    of_batches = (trace.batch_variation or 0.0) / math.sqrt(trace.accumulation)
    work = [step.work for step in trace.steps]
    return max(of_batches, stdev(work) / fmean(work)) if len(work) > 1 else of_batches


@cache
def slowest(count: int) -> float:
    """Of so many draws of a normal distribution the largest, in standard deviations above the mean."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25))
