"""How long the start of a rented machine waits: what is configured, else its own log, else its class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from advisor.core.findings import Finding
from advisor.core.findings.about_options import GangAssumed, WaitAssumed, WaitOfStarts
from advisor.core.values import EmpiricalWait, Market, Offer, Quantiles, StartWait
from advisor.pricing.spot import spot_odds, start_odds
from recommender.availability.series import Watched, start_with_history
from recommender.outcome.nodes import all_at_once, times_of_one


def wait_of(
    offer: Offer, *, configured: Quantiles | None, history: Mapping[str, Watched], num_nodes: int = 1
) -> tuple[Quantiles, tuple[Finding, ...]]:
    """The wait for machines, and what it rests on; nothing is said of what was configured.

    Args:
        offer: the machine.
        configured: of any cloud machine, by its user.
        history: what was seen of spot machines, by instance type; ``""`` is any.
        num_nodes: how many of it must be there before the job starts.
    """
    of_one, notes = (configured, ()) if configured is not None else _of_one(offer, history)
    if num_nodes == 1:
        return of_one, notes
    wait = together(of_one, num_nodes)
    return wait, (*notes, nodes_note(wait, num_nodes))


def _of_one(offer: Offer, history: Mapping[str, Watched]) -> tuple[StartWait, tuple[Finding, ...]]:
    seen = history.get(offer.instance_type) or history.get("")
    if seen is None or offer.market is not Market.SPOT:
        return _assumed(offer.gpu, offer.num_gpus, offer.market)
    of_class = start_odds(offer.gpu, offer.num_gpus, Market.SPOT).wait_s
    wait = start_with_history(of_class, spot_odds(offer.gpu, offer.num_gpus), seen)
    hours = seen.up_h + seen.down_h
    return wait, (WaitOfStarts(p_at_once=wait.p_at_once, watched_h=hours),)


@cache
def together(of_one: Quantiles, num_nodes: int) -> Quantiles:
    """The wait until the last of so many machines is there, by that for one."""
    times = times_of_one(num_nodes)
    if isinstance(of_one, StartWait):
        return StartWait.of(
            p_at_once=all_at_once(of_one.p_at_once, num_nodes),
            at_once_s=of_one.at_once_s,
            later_p50_s=of_one.later_p50_s * times,
            later_p90_s=of_one.later_p90_s * times,
        )
    longer = replace(of_one, p50=of_one.p50 * times, p90=of_one.p90 * times)
    if isinstance(longer, EmpiricalWait):
        return replace(longer, waits_s=tuple(wait_s * times for wait_s in longer.waits_s))
    return longer


def nodes_note(wait_s: Quantiles, num_nodes: int) -> Finding:
    """What the wait for all of them is taken to be."""
    p_at_once = wait_s.p_at_once if isinstance(wait_s, StartWait) else None
    times = times_of_one(num_nodes)
    return GangAssumed(num_nodes=num_nodes, p_at_once=p_at_once, times_of_one=times)


@cache
def _assumed(gpu: str, num_gpus: int, market: Market) -> tuple[StartWait, tuple[Finding, ...]]:
    """Of a class: thousands of offers share a few."""
    odds = start_odds(gpu, num_gpus, market)
    wait = odds.wait_s
    note = WaitAssumed(
        p_at_once=wait.p_at_once,
        later_p50_s=wait.later_p50_s,
        later_p90_s=wait.later_p90_s,
        basis=odds.basis,
        num_traces=odds.num_traces,
        source=odds.source,
        as_of=str(odds.as_of),
    )
    return wait, (note,)
