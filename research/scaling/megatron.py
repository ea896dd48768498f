"""One layer of a GPT as Megatron-LM runs it on one of several tensor-parallel ranks, in fp16.

Source: Shoeybi et al., "Megatron-LM", arXiv 1909.08053: heads and the inner width are split over the ranks,
and each rank all-reduces the layer's activations twice in the forward and twice in the backward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from advisor.profile import profile_callable

if TYPE_CHECKING:
    from advisor.core.values import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShape:
    """What the operators of a layer depend on."""

    hidden: int
    heads: int
    length: int
    batch: int
    ranks: int
    dtype: str = "float16"


@cache
def layer(shape: LayerShape) -> Trace:
    """Forward and backward of one layer on one rank.

    Raises:
        ProfileError: it cannot be profiled here.
    """

    def build() -> tuple[Any, Any]:
        import torch

        from research.scaling.megatron_layer import Layer

        dtype = getattr(torch, shape.dtype)
        with torch.device("cuda"):
            model = Layer(shape.hidden, shape.heads // shape.ranks, shape.ranks).to(dtype)
            states = torch.rand(shape.length, shape.batch, shape.hidden, dtype=dtype, requires_grad=True)
        return model, states

    def step(state: tuple[Any, Any]) -> None:
        model, states = state
        model(states).sum().backward()

    return profile_callable(step, setup=build, batch_size=shape.batch)
