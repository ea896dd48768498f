"""What a caller asks of offers, and numbers of GPUs that nothing has."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from advisor.core.errors import InputError
from advisor.core.gpus import GpuRequest, parse_gpu_request
from advisor.core.values import Offer
from advisor.pricing.node_counts import ALONE, NodeCounts, NodeLimits, node_counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least that a machine must have.

    Attributes:
        argument: what its caller names, such as ``min_vcpus``.
        least: in the argument's unit.
        of: what an offer has, in the same unit; None where that is unknown, which is not enough.
    """

    argument: str
    least: float
    of: Callable[[Offer], float | None]

    def keeps(self, offer: Offer) -> bool:
        """Whether the offer is known to have as much."""
        has = self.of(offer)
        return has is not None and has >= self.least


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferFilter:
    """What a caller limits offers to, besides the settings.

    Attributes:
        gpus: as they were asked for, such as ``A100:8``.
        wanted: the GPUs that they mean, each with the counts asked for; an empty set is any count.
        max_usd_per_h: most that a machine may cost.
        floors: the least that a machine must have.
        max_gpus: most GPUs that a machine may have.
        nodes: how many machines may be taken together; each alone by default.
        opens: whether an offer's region is open to the account; None where that does not matter.
        own: GPU and count of machines of one's own, which ``gpus`` may mean as well.
    """

    gpus: Sequence[str] = ()
    wanted: Mapping[str, set[int]]
    max_usd_per_h: float | None = None
    floors: tuple[Floor, ...] = ()
    max_gpus: int | None = None
    nodes: NodeLimits = ALONE
    opens: Callable[[Offer], bool] | None = None
    own: Collection[tuple[str, int]] = ()

    def node_counts(self, offers: Sequence[Offer]) -> NodeCounts:
        """How many machines of each of these offers make what is asked for."""
        beyond: dict[str, set[int]] = {}
        sizes = {(offer.gpu, offer.num_gpus) for offer in offers}
        for request in self.counted() if self.nodes.most is None else ():
            if not sizes_of(request, sizes) & {*request.counts}:
                for spec in request.gpus:
                    beyond.setdefault(spec.name, set()).update(request.counts)
        return node_counts(offers, self.nodes, self.wanted, beyond)

    def counted(self) -> list[GpuRequest]:
        """What names numbers of GPUs."""
        return [request for request in map(parse_gpu_request, self.gpus) if request.counts]


def is_wanted(wanted: Mapping[str, set[int]], gpu: str, num_gpus: int) -> bool:
    """Whether a machine is among those asked for; nothing asked for means any."""
    return not wanted or (gpu in wanted and (not wanted[gpu] or num_gpus in wanted[gpu]))


def sizes_of(request: GpuRequest, machines: Collection[tuple[str, int]]) -> set[int]:
    """Numbers of GPUs of those machines, each a GPU and its number, that the request may mean."""
    names = {spec.name for spec in request.gpus}
    return {count for gpu, count in machines if gpu in names}


def check_counts(
    asked: OfferFilter, known: Callable[[], Iterable[Offer]], offers: Iterable[Offer] = ()
) -> None:
    """Refuse numbers of GPUs that nothing has, wherever it is; of several numbers one will do.

    Args:
        asked: which numbers, and machines of one's own.
        known: all offers there are; asked only for numbers that ``offers`` lacks.
        offers: offers at hand.

    Raises InputError: names those there are.
    """
    requests = asked.counted()
    at_hand = {*asked.own, *_sizes(asked, offers)}
    strange = [request for request in requests if not sizes_of(request, at_hand) & {*request.counts}]
    if not strange:
        return
    everything = tuple(known())
    machines = {*asked.own, *_sizes(asked, everything)}
    single = {(offer.gpu, offer.num_gpus) for offer in everything}
    for request in strange:
        sizes = sizes_of(request, machines)
        if sizes_of(request, single) and not sizes & {*request.counts}:
            raise InputError(_no_such_number(request.text, asked.nodes, sizes_of(request, single), sizes))


def _sizes(asked: OfferFilter, offers: Iterable[Offer]) -> Iterator[tuple[str, int]]:
    """GPU and number of GPUs, of all nodes, of what may be taken, whatever number is asked for."""
    offers = tuple(offers)
    counts = asked.node_counts(offers)
    return ((offer.gpu, number * offer.num_gpus) for offer in offers for number in counts.possible(offer))


def _no_such_number(text: str, nodes: NodeLimits, single: Collection[int], sizes: Collection[int]) -> str:
    """What there is instead: machines, or so many nodes of them."""
    if nodes.exactly not in (None, 1) and sizes:
        together = _listed(sorted(sizes))
        return f"{text!r} counts the GPUs of all nodes, and {nodes.exactly} nodes have {together} of them."
    return (
        f"no machine has as many GPUs as {text!r} asks for{_nor_nodes(nodes)}: there are machines with"
        f" {_listed(sorted(single))} of them."
    )


def _nor_nodes(nodes: NodeLimits) -> str:
    if nodes.exactly is not None:
        return ""
    most = "" if nodes.most is None else f" up to {nodes.most}"
    return "" if nodes.most == 1 else f", nor do{most} whole ones together"


def _listed(numbers: Sequence[int]) -> str:
    *first, last = map(str, numbers)
    return f"{', '.join(first)} or {last}" if first else last
