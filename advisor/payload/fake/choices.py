"""Which of several a script chooses by scores that nobody computes, such as a router its experts.

Each is taken to be chosen equally often: what trainings of routed models aim at, with a loss for it. So the
sizes that follow from a choice, such as the tokens of an expert, add up to what the real ones add up to. And
who generates text until it is long enough, or at its end, comes to an end.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, cast

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch._ops import OpOverload

    from ..dispatch import Args, Kwargs

aten = torch.ops.aten
ASSUMPTION = "what scores decide is chosen equally often"
# The place of the dimension among the arguments, None where it is the last.
_DIMENSION = {aten.topk.default: 2, aten.argmax.default: 1, aten.max.dim: 1, aten.multinomial.default: None}


def is_choice(func: OpOverload) -> bool:
    """Whether the operator chooses along a dimension."""
    return func in _DIMENSION


def spread(func: OpOverload, args: Args, kwargs: Kwargs, result: object) -> tuple[torch.Tensor, torch.Tensor]:
    """The indices that an operator chose, and the same as a CPU tensor in which all are equally often.

    Args:
        func: for which ``is_choice`` holds.
        args: of its call.
        kwargs: of its call.
        result: of its call: indices, or values and indices.
    """
    chosen = cast("torch.Tensor", result[-1] if isinstance(result, (list, tuple)) else result)
    scores, place = cast("torch.Tensor", args[0]), _DIMENSION[func]
    given = args[place] if place is not None and place < len(args) else kwargs.get("dim")
    dim = -1 if given is None and func is not aten.argmax.default else cast("int | None", given)
    num_choices = scores.numel() if dim is None else scores.shape[dim] if scores.dim() else 1
    return chosen, _in_turn(chosen.shape, num_choices, dim if chosen.dim() == scores.dim() else None)


def _in_turn(shape: Sequence[int], num_choices: int, dim: int | None) -> torch.Tensor:
    """0, 1, 2, ... and from 0 again after the last choice, along the dimension: no row has one twice."""
    numbers = torch.arange(prod(shape), device="cpu").remainder(max(1, num_choices))
    if dim is None or not shape:
        return numbers.view(tuple(shape))
    rows = list(shape)
    chosen_of_row = rows.pop(dim)
    return numbers.view(*rows, chosen_of_row).movedim(-1, dim)
