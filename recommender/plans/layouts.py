"""How the GPUs of machines are laid out, rented or one's own."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from advisor.core.values import Fabric, Layout, Offer
from advisor.pricing.node_counts import fabric_of_offer


def layout_of(offer: Offer, num_nodes: int = 1) -> Layout:
    """So many machines of an offer, with as much of their fabric as the GPUs exchange over.

    Plans that exchange over the same share an estimate, whatever else differs between their machines.
    """
    return layout_on(fabric_of_offer(offer), offer.num_gpus, num_nodes)


@cache
def layout_on(
    fabric: Fabric | None, gpus_per_node: int, num_nodes: int, power_limit_w: float | None = None
) -> Layout:
    """So many nodes with as much of a fabric as they use, and what each GPU may draw."""
    used = None if fabric is None else _used_of(fabric, gpus_per_node, num_nodes)
    return Layout(gpus_per_node=gpus_per_node, num_nodes=num_nodes, fabric=used, power_limit_w=power_limit_w)


def _used_of(fabric: Fabric, gpus_per_node: int, num_nodes: int) -> Fabric | None:
    """No network within one node, and nothing at all for one GPU."""
    if num_nodes > 1:
        return fabric
    return replace(fabric, network=None, network_bytes_per_s=None) if gpus_per_node > 1 else None
