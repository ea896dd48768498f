"""The grid of cases: every family at each point of its sequence, point after point.

A smaller grid is the beginning of a larger one, so what a quick recording holds is not measured again.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from advisor.core.errors import InputError, did_you_mean
from advisor.operators.case import Caps, Case
from advisor.operators.registry import rows

# 0.4 TFLOP take 0.1 s on the slowest GPU of the catalog that anybody trains on; 1 GiB leaves room on 4 GB.
_CAPS = {"cuda": Caps(flops=4 * 10**11, num_bytes=2**30), "cpu": Caps(flops=10**7, num_bytes=2**19)}


class Extent(StrEnum):
    """How much is measured."""

    QUICK = "quick"
    DEFAULT = "default"
    FULL = "full"


_NUM_POINTS = {Extent.QUICK: 2, Extent.DEFAULT: 20, Extent.FULL: 90}


def grid(extent: Extent, *, only: Sequence[str] = (), backend: str = "cuda") -> tuple[Case, ...]:
    """All cases, each once.

    Args:
        extent: some 170, 1,700 or 7,800 cases.
        only: families, all if there is none.
        backend: ``cuda``, or ``cpu`` for calls that a CPU does in a moment.

    Raises:
        InputError: no such family.

    >>> len(grid(Extent.QUICK, only=["bmm"]))
    8
    """
    generators = rows().cases
    for family in only:
        if family not in generators:
            raise InputError(
                f"`only` takes no family {family!r}: choose from {', '.join(generators)}."
                + did_you_mean(family, generators)
            )
    caps = _CAPS[backend]
    cases = [
        case
        for index in range(_NUM_POINTS[extent])
        for family, generate in generators.items()
        if not only or family in only
        for case in generate(index, caps)
    ]
    return tuple({case.key: case for case in cases}.values())


def calibration_kernels() -> tuple[Case, ...]:
    """A few large kernels for each constant, for ``advisor calibrate``; a device skips what it cannot do."""
    return tuple(case for family in rows().families for case in family.calibration_cases())
