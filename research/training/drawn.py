"""Numbers that a text decides: which shapes, models and families only judge, the same on every machine."""

from __future__ import annotations

import hashlib


def fraction_of(text: str) -> float:
    """A number in [0, 1) by the hash of a text, even over many texts.

    >>> fraction_of("64 128") == fraction_of("64 128")
    True
    """
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
