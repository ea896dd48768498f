"""What was seen of one spot machine: hours it was there and hours it was not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from advisor.core.arguments import check_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Hours in which nothing changed.

    Attributes:
        start_h: on the log's own clock.
        is_up: the machine ran, or would have started.
    """

    start_h: float
    hours: float
    is_up: bool

    @property
    def end_h(self) -> float:
        """When it was over."""
        return self.start_h + self.hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Sums over stretches: all that rates are made of.

    Attributes:
        num_losses: times it went away while it was watched.
        num_outages: stretches without a machine, also those in which the watch began.
    """

    up_h: float = 0.0
    down_h: float = 0.0
    num_losses: int = 0
    num_outages: int = 0

    def __post_init__(self) -> None:
        for name in ("up_h", "down_h", "num_losses", "num_outages"):
            check_number(name, getattr(self, name), least=0)

    @property
    def share_down(self) -> float:
        """Of all the time: the odds that a start at any moment has to wait."""
        return self.down_h / (self.up_h + self.down_h)

    def __add__(self, other: Watched) -> Watched:
        """Of both together."""
        return Watched(
            up_h=self.up_h + other.up_h,
            down_h=self.down_h + other.down_h,
            num_losses=self.num_losses + other.num_losses,
            num_outages=self.num_outages + other.num_outages,
        )


def joined(states: Iterable[tuple[float, bool | None]]) -> list[list[Stretch]]:
    """Stretches between moments at which a state was seen; None ends the watch until the next one.

    Args:
        states: hours in ascending order, each with what holds from then on.

    Returns:
        A list for each time it was watched without a break; stretches take turns within it.
    """
    watches: list[list[Stretch]] = [[]]
    for (start_h, is_up), (end_h, _) in pairwise(states):
        if is_up is None:
            watches.append([])
            continue
        hours, current = end_h - start_h, watches[-1]
        if current and current[-1].is_up == is_up:
            start_h, hours = current[-1].start_h, current[-1].hours + hours
            current.pop()
        if hours > 0:
            current.append(Stretch(start_h=start_h, hours=hours, is_up=is_up))
    return [watch for watch in watches if watch]


def watched(stretches: Sequence[Stretch]) -> Watched:
    """Sums of one unbroken watch."""
    return Watched(
        up_h=sum(stretch.hours for stretch in stretches if stretch.is_up),
        down_h=sum(stretch.hours for stretch in stretches if not stretch.is_up),
        num_losses=sum(one.is_up and not two.is_up for one, two in pairwise(stretches)),
        num_outages=sum(not stretch.is_up for stretch in stretches),
    )
