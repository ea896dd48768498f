"""The grid of cases: every family at each point of its sequence, point after point.

A smaller grid is the beginning of a larger one, so what a quick recording holds is not measured again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

from advisor.core.errors import InputError, did_you_mean
from advisor.measure.case import Caps, Case
from advisor.measure.convolution import convolutions
from advisor.measure.normalisation import losses, norms, softmaxes
from advisor.measure.optimizers import optimizer_steps
from advisor.measure.products import batched_products, products
from advisor.measure.sequences import attention, recurrent_layers
from advisor.measure.streaming import elementwise, lookups, pooling, reductions, transfers

FAMILIES: Mapping[str, Callable[[int, Caps], Iterator[Case]]] = {
    "gemm": products,
    "bmm": batched_products,
    "conv": convolutions,
    "rnn": recurrent_layers,
    "attention": attention,
    "norm": norms,
    "softmax": softmaxes,
    "loss": losses,
    "elementwise": elementwise,
    "reduction": reductions,
    "pooling": pooling,
    "embedding": lookups,
    "optimizer": optimizer_steps,
    "transfer": transfers,
}
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
    for family in only:
        if family not in FAMILIES:
            raise InputError(
                f"--only takes no family {family!r}: choose from {', '.join(FAMILIES)}."
                + did_you_mean(family, FAMILIES)
            )
    caps = _CAPS[backend]
    cases = [
        case
        for index in range(_NUM_POINTS[extent])
        for family, generate in FAMILIES.items()
        if not only or family in only
        for case in generate(index, caps)
    ]
    return tuple({case.key: case for case in cases}.values())
