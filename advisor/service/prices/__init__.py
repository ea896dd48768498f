"""Use cases about prices: offers and limits, refreshing live sources, history."""

from __future__ import annotations

from enum import StrEnum


# Here, since the command line needs it before it knows which command runs.
class PriceOrder(StrEnum):
    """By what offers are sorted: then by price and place, so that the order is always the same."""

    PRICE = "price"
    GPU_PRICE = "gpu-price"
    AGE = "age"
    PLACE = "place"
