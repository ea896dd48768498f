"""What was seen of one spot machine: hours it was there and hours it was not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise

from advisor.core.limits import check_number
from advisor.core.units import HOUR_S
from advisor.core.values import StartWait
from advisor.pricing.spot_odds import SpotOdds


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Hours in which nothing changed."""

    start_h: float
    """On the log's own clock."""
    hours: float
    is_up: bool
    """The machine ran, or would have started."""

    @property
    def end_h(self) -> float:
        """When it was over."""
        return self.start_h + self.hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Sums over stretches: all that rates are made of."""

    up_h: float = 0.0
    down_h: float = 0.0
    num_losses: int = 0
    """Times it went away while it was watched."""
    num_outages: int = 0
    """Stretches without a machine, also those in which the watch began."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            check_number(name, getattr(self, name), least=0)

    @property
    def share_down(self) -> float:
        """Of all the time: the odds that a start at any moment has to wait."""
        return self.down_h / (self.up_h + self.down_h)

    def __add__(self, other: Watched) -> Watched:
        """Of both together."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Watched(**dict(zip(self.__slots__, map(sum, pairs), strict=True)))


def joined(states: Iterable[tuple[float, bool | None]]) -> list[list[Stretch]]:
    """Stretches between moments at which a state was seen; None ends the watch until the next one.

    ``states`` are hours in ascending order, each with what holds from then on. There is a list for each time
    it was watched without a break; stretches take turns within it. Where the last state seen is that the
    machine is gone, that is a stretch of no hours: it was lost, but nobody saw for how long.
    """
    watches: list[list[Stretch]] = [[]]
    known = [*states]
    known += [(last_h, None) for last_h, _ in known[-1:]]
    for (start_h, is_up), (end_h, after) in pairwise(known):
        if is_up is None:
            watches.append([])
            continue
        hours, current = end_h - start_h, watches[-1]
        if current and current[-1].is_up == is_up:
            start_h, hours = current[-1].start_h, current[-1].hours + hours
            current.pop()
        is_lost_at_the_end = after is None and not is_up and any(one.is_up for one in current[-1:])
        if hours > 0 or is_lost_at_the_end:
            current.append(Stretch(start_h=start_h, hours=hours, is_up=is_up))
    return [watch for watch in watches if watch]


def watched(stretches: Sequence[Stretch]) -> Watched:
    """Sums of one unbroken watch."""
    return Watched(
        up_h=sum(stretch.hours for stretch in stretches if stretch.is_up),
        down_h=sum(stretch.hours for stretch in stretches if not stretch.is_up),
        num_losses=sum(one.is_up and not two.is_up for one, two in pairwise(stretches)),
        num_outages=sum(not stretch.is_up and stretch.hours > 0 for stretch in stretches),
    )


# The odds of a class of machines, corrected by what was seen of one: little seen counts for little

# Nothing shorter is distinguished: no provider hands out a machine faster.
_LEAST_OUTAGE_H = 1 / 60


def with_history(odds: SpotOdds, seen: Watched) -> SpotOdds:
    """Odds of one machine: the class as prior, the log as evidence, both log-normal.

    A log of n preemptions is off by ``drift^2 + dispersion / n`` of variance, where n is what was seen or was
    to be expected, whichever is more: none in a long time says much. What comes next drifts once more.
    """
    rate, sigma_rate = _updated(
        math.log(odds.preemptions_per_h),
        odds.sigma_rate,
        math.log((seen.num_losses + 0.5) / max(seen.up_h, _LEAST_OUTAGE_H)),
        error=_error(odds, seen),
        drift=odds.drift_rate,
    )
    outage, sigma_outage = math.log(odds.outage_h), odds.sigma_outage
    if seen.num_outages:
        outage, sigma_outage = _updated(
            outage,
            sigma_outage,
            math.log(max(seen.down_h / seen.num_outages, _LEAST_OUTAGE_H)),
            error=odds.dispersion_down / seen.num_outages,
            drift=odds.drift_outage,
        )
    return replace(
        odds,
        preemptions_per_h=math.exp(rate),
        sigma_rate=sigma_rate,
        most_per_h=max(odds.most_per_h, 2 * math.exp(rate)),
        outage_h=math.exp(outage),
        sigma_outage=sigma_outage,
        most_away_h=max(odds.most_away_h, 2 * math.exp(rate + outage)),
    )


def start_with_history(wait: StartWait, odds: SpotOdds, seen: Watched) -> StartWait:
    """How long a start of one spot machine waits: as often as its log says, as far as that says anything."""
    error = odds.drift_rate**2 + _error(odds, seen)
    weight = odds.sigma_rate**2 / (odds.sigma_rate**2 + error)
    p_at_once = wait.p_at_once + weight * (1 - seen.share_down - wait.p_at_once)
    longer = 1.0
    if seen.num_outages:
        # A start falls into a long outage sooner than into a short one, and sees what is left of it. The
        # class's waits are those of all its places, so most are of the worst ones.
        known_h = max(seen.down_h / seen.num_outages, _LEAST_OUTAGE_H) * (1 + odds.dispersion_down) / 2
        of_class_s = wait.later_p50_s / math.log(2) ** wait.bend * math.gamma(1 + wait.bend)
        error = odds.drift_outage**2 + odds.dispersion_down / seen.num_outages
        longer = (known_h * HOUR_S / of_class_s) ** (odds.sigma_outage**2 / (odds.sigma_outage**2 + error))
    return StartWait.of(
        p_at_once=min(max(p_at_once, 0.001), 0.999),
        at_once_s=wait.at_once_s,
        later_p50_s=wait.later_p50_s * longer,
        later_p90_s=wait.later_p90_s * longer,
    )


def _error(odds: SpotOdds, seen: Watched) -> float:
    """Variance of the logarithm of a logged rate that chance alone explains."""
    return odds.dispersion_up / (max(seen.num_losses, odds.preemptions_per_h * seen.up_h) + 0.5)


def _updated(prior: float, sigma: float, seen: float, *, error: float, drift: float) -> tuple[float, float]:
    """Mean and standard deviation of what comes next, normal prior and evidence."""
    variance = drift**2 + error
    weight = sigma**2 / (sigma**2 + variance)
    return prior + weight * (seen - prior), math.sqrt(weight * variance + drift**2)
