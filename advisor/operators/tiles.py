"""How sizes fill the tiles of a kernel."""

from __future__ import annotations

import math


def tiles(size: int, tile: int) -> int:
    """How many tiles cover a size."""
    return -(-size // tile)


def padding(size: int, tile: int) -> float:
    """Log of what a size grows by when it is rounded up to whole tiles.

    >>> padding(64, 32)
    0.0
    """
    return math.log(tiles(size, tile) * tile / size)


def alignment(size: int) -> float:
    """Log2 of the largest power of two up to 8 that divides a size: what vectorised loads need."""
    return math.log2(math.gcd(size, 8))
