"""Over what a machine exchanges that somebody rents."""

from __future__ import annotations

from dataclasses import replace

from advisor.core.fabrics import linked, machine_of
from advisor.core.values import Fabric, GpuSpec, Network
from advisor.pricing.catalog.instance_types import load_instances


def fabric_of(provider: str, instance_type: str, gpu: GpuSpec) -> Fabric:
    """What the catalogs know: the link of the machine or of the GPU's board, and the network if any tells.

    >>> from advisor.core.gpus import resolve_gpu
    >>> p4d = fabric_of("aws", "p4d.24xlarge", resolve_gpu("A100-SXM-40GB"))
    >>> p4d.network, p4d.network_bytes_per_s
    (<Network.EFA: 'efa'>, 50000000000.0)
    """
    machine = machine_of(provider, instance_type)
    instance = load_instances().get((provider, instance_type))
    bits_per_s = instance.network_bits_per_s if instance else None
    if machine is None:
        return _networked(linked(gpu, None), Network.TCP, bits_per_s)
    within = linked(gpu, machine.link, machine.link_bytes_per_s)
    return _networked(within, machine.network, machine.network_bits_per_s or bits_per_s)


def _networked(within: Fabric, network: Network, bits_per_s: float | None) -> Fabric:
    if bits_per_s is None:
        return within
    return replace(within, network=network, network_bytes_per_s=bits_per_s / 8)
