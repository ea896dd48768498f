"""How long one collective takes, by what is exchanged, among how many GPUs, and over what.

A ring moves ``(N - 1) / N`` of the buffer over every link, all-reduce twice (Patarasuk and Yuan, "Bandwidth
optimal all-reduce algorithms", JPDC 69(2), 2009). Over several nodes the slower of link and network counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.fabrics import board_fabric
from advisor.core.values import Fabric, GpuSpec, Layout, Link, Network

# NCCL reaches about these shares of a link's rate with large messages.
NVLINK_FRACTION = 0.75
PCIE_FRACTION = 0.55
ALL_REDUCE_LATENCY_S = 30e-6
_LINK_FRACTION = {Link.PCIE: PCIE_FRACTION, Link.HOST: 0.3}
_NETWORK_FRACTION = {Network.TCP: 0.5, Network.GPUDIRECT_TCP: 0.7, Network.EFA: 0.7}
_RDMA_FRACTION = 0.8
# Between TCP over 10 Gb/s and RDMA over 400 Gb/s a GPU, nobody knows which: near the slow end, and wide.
_UNKNOWN_NETWORK_BYTES_PER_S = 1.25e9
_SIGMA = 0.35
_UNKNOWN_NETWORK_SIGMA = 1.0
_NETWORK_LATENCY_S = 30e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTime:
    """Seconds of one collective; `sigma` is the standard deviation of their logarithm."""

    seconds: float
    sigma: float


def collective_time(kind: str, num_bytes: float, layout: Layout, gpu: GpuSpec) -> CollectiveTime:
    """Time of one collective over all GPUs of the layout.

    Args:
        kind: as in `Collective.kind`: all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all,
            send or recv.
        num_bytes: as nccl-tests count: the buffer of an all-reduce, broadcast, reduce, send or receive; the
            gathered whole; the whole input of one rank of a scatter or all-to-all.
        gpu: tells of the link where the layout does not.
        layout: every GPU takes part, but in send and recv, where two neighbours do.
    """
    if layout.num_gpus == 1:
        return CollectiveTime(seconds=0.0, sigma=0.0)
    fabric = layout.fabric or board_fabric(gpu)
    latency_s = ALL_REDUCE_LATENCY_S + (_NETWORK_LATENCY_S if layout.num_nodes > 1 else 0.0)
    moved = _rounds(kind, layout.num_gpus) * num_bytes
    seconds = latency_s + moved / min(_link_rate(fabric, layout), _network_rate(fabric, layout))
    is_unknown = layout.num_nodes > 1 and fabric.network_bytes_per_s is None
    return CollectiveTime(seconds=seconds, sigma=_UNKNOWN_NETWORK_SIGMA if is_unknown else _SIGMA)


def _rounds(kind: str, num_gpus: int) -> float:
    """How often the buffer crosses each link."""
    if kind in ("broadcast", "reduce", "send", "recv"):
        return 1.0
    return (2 if kind == "all_reduce" else 1) * (num_gpus - 1) / num_gpus


def _link_rate(fabric: Fabric, layout: Layout) -> float:
    if layout.gpus_per_node == 1:
        return float("inf")
    return _LINK_FRACTION.get(fabric.link, NVLINK_FRACTION) * fabric.link_bytes_per_s


def _network_rate(fabric: Fabric, layout: Layout) -> float:
    if layout.num_nodes == 1:
        return float("inf")
    if fabric.network_bytes_per_s is None:
        return _UNKNOWN_NETWORK_BYTES_PER_S
    fraction = _NETWORK_FRACTION.get(fabric.network or Network.TCP, _RDMA_FRACTION)
    return fraction * fabric.network_bytes_per_s
