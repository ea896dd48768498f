"""How long the start of a rented machine waits: what is configured, else its own log, else its class."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from advisor.core.findings import Finding
from advisor.core.findings.about_options import GangAssumed, PlaceContended, WaitAssumed, WaitOfStarts
from advisor.core.values import EmpiricalWait, Market, Offer, Price, Quantiles, StartWait
from advisor.pricing.spot import load_interruptions, rarest_start, spot_odds, start_odds
from recommender.availability.series import Watched, start_with_history
from recommender.outcome.nodes import all_at_once, times_of_one


def wait_of(
    offer: Offer,
    price: Price | None = None,
    *,
    configured: Quantiles | None,
    history: Mapping[str, Watched],
    num_nodes: int = 1,
) -> tuple[Quantiles, tuple[Finding, ...]]:
    """The wait for machines, and what it rests on; nothing is said of what was configured.

    Args:
        offer: the machine.
        price: what an hour of it will cost; None if nobody asked.
        configured: of any cloud machine, by its user.
        history: what was seen of spot machines, by instance type; ``""`` is any.
        num_nodes: how many of it must be there before the job starts.
    """
    of_one, notes = (configured, ()) if configured is not None else _of_one(offer, price, history)
    if num_nodes == 1:
        return of_one, notes
    wait = together(of_one, num_nodes)
    return wait, (*notes, nodes_note(wait, num_nodes))


# Of the machines of a place that AWS takes back within a month, in percent: the highest of its buckets.
_OFTEN_PCT = 20


def _of_one(
    offer: Offer, price: Price | None, history: Mapping[str, Watched]
) -> tuple[StartWait, tuple[Finding, ...]]:
    seen = history.get(offer.instance_type) or history.get("")
    if seen is None or offer.market is not Market.SPOT:
        contended = _contended(offer, price)
        wait_s, note = _assumed(offer.gpu, offer.num_gpus, offer.market, is_rare=contended is not None)
        return wait_s, (note,) if contended is None else (note, contended)
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


def _contended(offer: Offer, price: Price | None) -> Finding | None:
    """Why a place may have no machine: it asks its least price, or machines are often taken back there."""
    if offer.market is not Market.SPOT:
        return None
    taken_back = load_interruptions().get((offer.instance_type, offer.region))
    if offer.provider == "aws" and taken_back is not None and taken_back.low_pct >= _OFTEN_PCT:
        return PlaceContended(is_taken_back=True)
    is_near_floor = price is not None and price.is_near_floor
    return PlaceContended(is_taken_back=False) if is_near_floor else None


@cache
def _assumed(gpu: str, num_gpus: int, market: Market, *, is_rare: bool) -> tuple[StartWait, Finding]:
    """Of a class, since thousands of offers share a few; that which starts least often where it is rare."""
    odds = rarest_start(market) if is_rare else start_odds(gpu, num_gpus, market)
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
    return wait, note
