"""What the backward pass reads of the forward pass."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

from advisor.core.values import Op, TensorSpec

Shape = tuple[int, ...]
FULL_BYTES = 4
Kind = TypeVar("Kind", bound=Hashable)


class Read(NamedTuple, Generic[Kind]):
    """Of one call: tensors that are alike, the bytes of one, and the share of such calls that reads one."""

    kind: Kind
    num_bytes: int
    weight: float


class Saved(Protocol[Kind]):
    """What autograd keeps for backward operators."""

    def reads(self, op: Op) -> Iterator[Read[Kind]]:
        """What a backward operator reads of it."""
        ...

    def num_tensors(self, kind: Kind) -> float:
        """How many tensors of a kind one pass keeps; several operators may read one."""
        ...


def is_of(parameters: frozenset[Shape], tensor: TensorSpec) -> bool:
    """Whether a tensor has the shape of a parameter, whichever way round; those are sorted."""
    return tuple(sorted(tensor.shape)) in parameters
