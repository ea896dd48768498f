"""Which calls made what a call reads, and of which forward call a backward call is.

Equal calls are counted together, whoever made their operands. Their flows tell them apart by the operators
that did: the first layer reads an embedding, all others read the layer before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Union

import torch

from ..protocol import GRADIENT, NUM_ROLES, OUTSIDE, PARAMETER, OperatorFlow
from .memory import MemoryTracker

_ROLES = {"parameter": PARAMETER, "gradient": GRADIENT}


class Entry:
    """Equal calls of one operator.

    Attributes:
        numbers: of the calls.
        nodes: these calls by the entries that made what they read.
        parameters: that they read, by the numbers of their storages.
    """

    __slots__ = ("nodes", "numbers", "parameters")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.parameters: set[int | None] = set()
        self.nodes: dict[object, Node] = {}

    def add(self, other: Entry) -> None:
        """Calls that were kept apart are of this entry."""
        self.numbers = sorted(self.numbers + other.numbers)
        self.nodes.update({node: node for node in other.nodes.values()})


class Node:
    """Calls of an entry that read what the same entries made.

    Attributes:
        reads: how many of them read what.
        new_parameters: of those reads, how many parameters no call of the entry had read before.
    """

    __slots__ = ("entry", "new_parameters", "reads")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.reads: Counter[Read] = Counter()
        self.new_parameters: Counter[Read] = Counter()


Source = Union[Node, int]  # what made a tensor, or the role of what nothing in the span made


class Forward(NamedTuple):
    """Whose gradient a node of the autograd graph computes: a call's, or a view's of what a call made."""

    node: Node
    is_of_view: bool


class Read(NamedTuple):
    """What one call reads, and the forward call that it is the backward call of."""

    sources: tuple[Source, ...]
    forward: Forward | None


class Flow:
    """Follows tensors by their storages, and calls by the autograd graph's sequence numbers."""

    def __init__(self, memory: MemoryTracker) -> None:
        self._memory = memory
        self.start_span()

    def start_span(self) -> None:
        """Forget who made what: what is there already comes from outside."""
        self._made: dict[int, Node] = {}
        self._forward: dict[int, Forward] = {}

    def call(self, entry: Entry, operands: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
        """One call of the entry has run."""
        sources, forward = tuple(map(self._source, operands)), self._forward_of_now()
        key = (
            None if forward is None else (forward.node.entry, forward.is_of_view),
            *(source if isinstance(source, int) else source.entry for source in sources),
        )
        node = entry.nodes.get(key)
        if node is None:
            node = entry.nodes[key] = Node(entry)
        read = Read(sources, forward)
        node.reads[read] += 1
        before = len(entry.parameters)
        pairs = zip(operands, sources)
        entry.parameters.update(self._memory.serial(one) for one, source in pairs if source == PARAMETER)
        node.new_parameters[read] += len(entry.parameters) - before
        for result in results:
            serial = self._memory.serial(result)
            if serial is not None:
                self._made[serial] = node
        is_in_place = any(result is operand for result in results for operand in operands)
        self._remember(Forward(node, is_of_view=False), is_in_place=is_in_place)

    def view(self, tensor: torch.Tensor) -> None:
        """The tensor was looked at in another way, which the backward pass has to undo."""
        source = self._source(tensor)
        if isinstance(source, Node):
            self._remember(Forward(source, is_of_view=True))

    def _source(self, tensor: torch.Tensor) -> Source:
        role = _ROLES.get(self._memory.kind(tensor) or "")
        if role is not None:
            return role
        serial = self._memory.serial(tensor)
        return OUTSIDE if serial is None else self._made.get(serial, OUTSIDE)

    def _remember(self, forward: Forward, *, is_in_place: bool = False) -> None:
        if not torch.is_grad_enabled():
            return
        # The autograd graph has its node before the operator runs; what has none finds the one before.
        number = torch.autograd._get_sequence_nr() - 1  # type: ignore[attr-defined]
        if is_in_place and number in self._forward:
            number -= 1  # what the backward pass needs was copied in between, which has a node of its own
        self._forward.setdefault(number, forward)

    def _forward_of_now(self) -> Forward | None:
        # With gradients recorded it is checkpointing, which runs the forward pass again.
        running = None if torch.is_grad_enabled() else torch._C._current_autograd_node()
        return None if running is None else self._forward.get(running._sequence_nr())


def flows(entries: Sequence[Entry]) -> Iterator[list[OperatorFlow]]:
    """The flows of each entry; what other entries made comes from outside."""
    nodes = [node for entry in entries for node in entry.nodes.values()]
    ids = {node: NUM_ROLES + index for index, node in enumerate(nodes)}

    def number(source: Source) -> int:
        return source if isinstance(source, int) else ids.get(source, OUTSIDE)

    for entry in entries:
        yield [
            {
                "id": ids[node],
                "count": count,
                "sources": list(map(number, read.sources)),
                "new_parameters": node.new_parameters[read],
                "forward": None if read.forward is None else ids.get(read.forward.node),
                "is_of_view": read.forward is not None and read.forward.is_of_view,
            }
            for node in entry.nodes.values()
            for read, count in node.reads.items()
        ]
