"""How many machines make one plan, and over what they exchange: alone, or several over a network."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from advisor.core.fabrics import linked, machine_of
from advisor.core.gpus import load_gpus
from advisor.core.values import Fabric, GpuSpec, Link, Network, Offer
from advisor.pricing.instance_types import load_instances


def fabric_of(provider: str, instance_type: str, gpu: GpuSpec) -> Fabric:
    """What the catalogs know: the link of the machine or of the GPU's NVLink, and the network if any tells.

    Peer access over PCIe is the machine's to grant, and a virtual one without a row may not.

    >>> from advisor.core.gpus import resolve_gpu
    >>> p4d = fabric_of("aws", "p4d.24xlarge", resolve_gpu("A100-SXM-40GB"))
    >>> p4d.network, p4d.network_bytes_per_s
    (<Network.EFA: 'efa'>, 50000000000.0)
    """
    machine, bits_per_s = machine_of(provider, instance_type), network_rate(provider, instance_type)
    own = None if gpu.nvlink_bytes_per_s else Link.HOST
    if machine is None:
        within, network = linked(gpu, own), Network.TCP
    else:
        within, network = linked(gpu, machine.link or own, machine.link_bytes_per_s), machine.network
    if bits_per_s is None:
        return within
    return replace(within, network=network, network_bytes_per_s=bits_per_s / 8)


@cache
def network_rate(provider: str, instance_type: str) -> float | None:
    """Bits per second of a machine's network, by either catalog; None where neither tells.

    >>> network_rate("gcp", "a2-highgpu-1g")
    24000000000.0
    """
    machine = machine_of(provider, instance_type)
    if machine is not None and machine.network_bits_per_s is not None:
        return machine.network_bits_per_s
    instance = load_instances().get((provider, instance_type))
    return instance.network_bits_per_s if instance else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLimits:
    """How many nodes a plan may have."""

    most: int | None = 1
    """None where unknown: then one, but where no machine has the GPUs asked for."""
    exactly: int | None = None
    """None for any number up to ``most``."""

    @property
    def is_one(self) -> bool:
        """Whether machines stay alone."""
        return self.exactly == 1 or (self.exactly is None and self.most == 1)


ALONE = NodeLimits()
USEFUL = NodeLimits(most=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCounts:
    """How many machines of an offer make what is asked for.

    Only whole machines with the most GPUs of their kind are put together: smaller ones would leave GPUs that
    could exchange within a machine to a network. Of a machine without a known network it is unknown how
    its nodes would exchange.
    """

    limits: NodeLimits
    wanted: Mapping[str, Collection[int]]
    """GPUs with the numbers asked for, of all nodes; an empty set is any, and no GPU means any GPU."""
    beyond: Mapping[str, Collection[int]]
    """By GPU, numbers asked for that no machine has."""
    largest: Mapping[tuple[str, str], int]
    """GPUs of the largest machine with a network, by provider and GPU."""

    def of(self, offer: Offer) -> tuple[int, ...]:
        """Numbers of nodes, in ascending order; none where no number will do."""
        if self.wanted and offer.gpu not in self.wanted:
            return ()
        asked, possible = self.wanted.get(offer.gpu), self.possible(offer)
        return tuple(n for n in possible if n * offer.num_gpus in asked) if asked else possible

    def possible(self, offer: Offer) -> tuple[int, ...]:
        """The same whatever number of GPUs is asked for."""
        is_largest = self.largest and self.largest.get((offer.provider, offer.gpu)) == offer.num_gpus
        if not is_largest or not _has_network(offer):
            return () if self.limits.exactly not in (None, 1) else (1,)
        beyond, asked = (whose.get(offer.gpu, ()) for whose in (self.beyond, self.wanted))
        most = self.limits.exactly or self.limits.most or 1
        numbers = numbers_of_nodes(self.limits, most, offer.num_gpus, asked)
        if self.limits.most is None and self.limits.exactly is None:
            numbers |= _quotients(beyond, offer.num_gpus)
        return tuple(sorted(numbers))


def node_counts(
    offers: Iterable[Offer],
    limits: NodeLimits,
    wanted: Mapping[str, Collection[int]],
    beyond: Mapping[str, Collection[int]],
) -> NodeCounts:
    """For offers of which the largest machines may be put together; arguments as the attributes."""
    largest: dict[tuple[str, str], int] = {}
    is_unasked = limits.most is None and limits.exactly is None and not beyond
    for offer in () if limits.is_one or is_unasked else offers:
        if _has_network(offer):
            key = offer.provider, offer.gpu
            largest[key] = max(offer.num_gpus, largest.get(key, 0))
    return NodeCounts(limits=limits, wanted=wanted, beyond=beyond, largest=largest)


def numbers_of_nodes(limits: NodeLimits, most: int, gpus_per_node: int, asked: Collection[int]) -> set[int]:
    """Of whole nodes: the limits' own number, or useful ones and those that make what is asked."""
    if limits.exactly is not None:
        return {limits.exactly} if limits.exactly <= most else set()
    return {*useful_counts(most), *(n for n in _quotients(asked, gpus_per_node) if n <= most)}


def useful_counts(num_gpus: int) -> list[int]:
    """Powers of two up to ``num_gpus``, and ``num_gpus`` itself.

    >>> useful_counts(6)
    [1, 2, 4, 6]
    """
    most = int(num_gpus)  # numpy's integers, too
    return sorted({*(2**i for i in range(most.bit_length())), most})


def _quotients(totals: Collection[int], divisor: int) -> set[int]:
    return {total // divisor for total in totals if total % divisor == 0}


def fabric_of_offer(offer: Offer) -> Fabric | None:
    """Over what its machines exchange; None for a GPU that the catalog lacks."""
    return _fabric(offer.provider, offer.instance_type, offer.gpu)


@cache
def _fabric(provider: str, instance_type: str, gpu: str) -> Fabric | None:
    spec = load_gpus().get(gpu)
    return None if spec is None else fabric_of(provider, instance_type, spec)


def _has_network(offer: Offer) -> bool:
    fabric = fabric_of_offer(offer)
    return fabric is not None and fabric.network is not None
