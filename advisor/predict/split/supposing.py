"""Whether a script's model can be divided as somebody supposes, and how sure its time would be."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.core.errors import InputError
from advisor.core.values import Layout, Split, Trace
from advisor.predict.exchange.collectives import sharded_over

# Log-normal, of an iteration of a script that was never profiled.
_SIGMA_SHARDED = 0.05
_SIGMA_DIVIDED = 0.1


def check_split(trace: Trace, split: Split, layouts: Iterable[Layout]) -> None:
    """Refuse what cannot be meant.

    Raises:
        InputError: the script divides its model itself, or a layout does not suit.
    """
    if split.is_none:
        return
    if sharded_over(trace) is not None:
        raise InputError(
            f"{trace.script!r} divides its model itself, among {trace.world_size} ranks: {split.name} cannot"
            " be supposed on top. Leave it out."
        )
    for layout in layouts:
        if not split.suits(layout):
            raise InputError(
                f"{split.name} does not divide {layout.num_gpus} GPUs into copies of the model: take a"
                f" multiple of {split.gpus_per_copy} GPUs, in nodes of a multiple of {split.tensor}."
            )


def sigma_of_split(split: Split, layout: Layout) -> float:
    """Log-normal, of the time of an iteration, by what dividing the model leaves unknown."""
    if split.divides_layers:
        return _SIGMA_DIVIDED
    return 0.0 if split.is_none or layout.num_gpus == 1 else _SIGMA_SHARDED
