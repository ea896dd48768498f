"""Which limits have to give way where a query leaves no offer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from advisor.core.values import Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit of a query.

    Attributes:
        name: what a person leaves out to be rid of it, such as ``"--region"``.
        text: as it was set, such as ``"--region eu-*"``.
        keeps: whether an offer is within it.
        is_default: nobody set it.
        is_subject: it says what is looked for rather than where or at what price, so it gives way last.
    """

    name: str
    text: str
    keeps: Callable[[Offer], bool]
    is_default: bool = False
    is_subject: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The smallest set of limits without which offers are left, and those offers."""

    limits: tuple[Limit, ...]
    offers: tuple[Offer, ...]


def way_out(limits: Sequence[Limit], offers: Iterable[Offer]) -> Way:
    """What has to give way: as few limits as possible, of those the ones that let in the fewest offers.

    The fewest, since they are what comes nearest to what was asked. Of equally many limits those without a
    subject go first: who asks for a GPU in Europe wants to know where it is rather than what else is there.

    Raises:
        ValueError: there is no offer at all.
    """
    by_failed: dict[tuple[Limit, ...], list[Offer]] = {}
    for offer in offers:
        failed = tuple(limit for limit in limits if not limit.keeps(offer))
        by_failed.setdefault(failed, []).append(offer)
    if not by_failed:
        raise ValueError("there is no offer at all, so no limit is in the way")

    def rank(failed: tuple[Limit, ...]) -> tuple[int, bool, int]:
        return len(failed), any(limit.is_subject for limit in failed), len(by_failed[failed])

    failed = min(by_failed, key=rank)
    return Way(limits=failed, offers=tuple(by_failed[failed]))
