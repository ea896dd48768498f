"""Which of several DataLoaders drives the training loop: its end is the end of an epoch.

``for a in big: b = next(small)`` draws the driving loader first. ``zip`` draws all its loaders from one
place of the script, so their order tells nothing: the shortest ends it, unless it is made endless.
"""

from __future__ import annotations

import gc
import itertools
import math
from collections.abc import Sequence

from .extent import length
from .loader_use import LoaderUse
from .places import Place


def lasting(uses: Sequence[LoaderUse]) -> list[LoaderUse]:
    """Those of the loaders that may drive, at least one.

    An inner loop has come to its end when the optimizer steps, and ``next(iter(loader))`` never does.
    """
    ongoing = [use for use in uses if not use.has_ended]
    return [use for use in ongoing if not use.is_renewed] or ongoing or list(uses)


def driving(uses: Sequence[LoaderUse]) -> LoaderUse:
    """The loader that drives, of lasting ones in the order in which the iteration drew from them."""
    together = [use for use in uses if _are_zipped(use.place, uses[0].place)]
    return together[0] if len(together) == 1 else min(together, key=_ends_a_zip)


def _are_zipped(one: Place, other: Place) -> bool:
    """Whether one instruction of the script asked for both, through any generators that pass them on."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    num_shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    own, others = one[: len(one) - num_shared], other[: len(other) - num_shared]
    if own and others and own[-1].code == others[-1].code:
        return False
    return all(caller.is_generator for caller in own + others)


def _ends_a_zip(use: LoaderUse) -> tuple[bool, int, float]:
    """The least of what is zipped ends it: what is not repeated, passed through no generator, short."""
    num_batches = length(use.loader)
    return _is_cycled(use.batches()), len(use.place), math.inf if num_batches is None else num_batches


def _is_cycled(batches: object) -> bool:
    return any(isinstance(holder, itertools.cycle) for holder in gc.get_referrers(batches))
