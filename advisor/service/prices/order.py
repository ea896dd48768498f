"""By what offers are sorted; apart, since the command line needs it before it knows which command runs."""

from __future__ import annotations

from enum import StrEnum


class PriceOrder(StrEnum):
    """By what offers are sorted: then by price and place, so that the order is always the same."""

    PRICE = "price"
    GPU_PRICE = "gpu-price"
    AGE = "age"
    PLACE = "place"
