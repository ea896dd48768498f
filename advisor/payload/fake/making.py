"""How operators without a shape rule of torch's come to their results on the pretended GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch
    from torch._ops import OpOverload

    from ..dispatch import Args, Kwargs, Types


class Maker(Protocol):
    """The part of the dispatch mode that makes results.

    Attributes:
        unknown_operators: names of those that nothing is known of, each with the error that said so.
        assumptions: what is taken for granted of values that nobody computes.
    """

    unknown_operators: dict[str, str]
    assumptions: dict[str, None]

    def empty(
        self, shape: Sequence[int], dtype: torch.dtype, stride: Sequence[int] | None = None
    ) -> torch.Tensor:
        """A new tensor on the pretended GPU."""

    def pretend(self, func: OpOverload, types: Types, args: Args, kwargs: Kwargs) -> object:
        """The operator's result by torch's own rule, its memory counted."""
