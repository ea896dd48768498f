"""Numbers of GPUs that are to be predicted -> layouts, as machines that clouds rent would have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.core.gpus import load_gpus, parse_gpu_request
from advisor.core.values import Fabric, Layout

if TYPE_CHECKING:
    from advisor.config.settings import Settings
    from advisor.pricing.instance_types import InstanceType
    from advisor.service.listening import Listener

ONE = Layout(gpus_per_node=1)


def layouts_of(texts: Sequence[str], settings: Settings, listener: Listener) -> dict[str, dict[Layout, None]]:
    """GPU name -> layouts to predict, of texts such as ``A100:1..8``, ``A100:16`` or ``H100:8x4``.

    What a machine of one's own has is one node, whatever clouds rent. Of a family those count that do it.

    Raises:
        UnknownGpuError: a name that no GPU and no family has.
        InputError: a number that cannot be read.
    """
    layouts: dict[str, dict[Layout, None]] = {}
    most_own, most = max(_own_sizes(settings)), most_in_one(settings)
    for request in map(parse_gpu_request, texts):
        if len(request.gpus) > 1:
            listener.note(f"{request.text!r} means {', '.join(spec.name for spec in request.gpus)}")
        for spec in request.gpus:
            of_gpu = layouts.setdefault(spec.name, {})
            for count in request.counts or (1,):
                num_nodes = request.num_nodes or (1 if count <= most_own else None)
                layout = layout_of(spec.name, count, num_nodes)
                if len(request.gpus) == 1 or layout.gpus_per_node <= most:
                    of_gpu[layout] = None
    return {gpu: of_gpu for gpu, of_gpu in layouts.items() if of_gpu}


def most_in_one(settings: Settings) -> int:
    """GPUs of the largest machine, rented or of one's own."""
    from advisor.pricing.instance_types import load_instances

    return max(*_own_sizes(settings), *(machine.num_gpus for machine in load_instances().values()))


def _own_sizes(settings: Settings) -> list[int]:
    return [settings.local.num_gpus, *(cluster.num_gpus for cluster in settings.clusters)]


def layout_of(gpu: str, num_gpus: int, num_nodes: int | None = None) -> Layout:
    """So many GPUs: in one machine, or where none has as many, in whole ones of the largest.

    Args:
        gpu: its name.
        num_gpus: of all nodes.
        num_nodes: how many there shall be; None for as few as will do.
    """
    machines = _machines(gpu)
    if num_nodes is None:
        num_nodes = _fewest_nodes([machine.num_gpus for machine in machines], num_gpus)
    gpus_per_node = num_gpus // num_nodes
    fabrics = [_fabric(machine) for machine in machines if machine.num_gpus == gpus_per_node]
    fabric = min(fabrics, key=_network_rate, default=None) if num_nodes > 1 else None
    return Layout(gpus_per_node=gpus_per_node, num_nodes=num_nodes, fabric=fabric)


def _fewest_nodes(sizes: Sequence[int], num_gpus: int) -> int:
    largest = max(sizes, default=num_gpus)
    return num_gpus // largest if num_gpus > largest and num_gpus % largest == 0 else 1


def _machines(gpu: str) -> list[InstanceType]:
    from advisor.pricing.instance_types import load_instances

    return [machine for machine in load_instances().values() if machine.gpu == gpu]


def _fabric(machine: InstanceType) -> Fabric:
    from advisor.pricing.node_counts import fabric_of

    return fabric_of(machine.provider, machine.instance_type, load_gpus()[machine.gpu])


def _network_rate(fabric: Fabric) -> float:
    """Of machines alike the slowest network counts, and of networks one that nobody knows last."""
    return fabric.network_bytes_per_s or float("inf")
