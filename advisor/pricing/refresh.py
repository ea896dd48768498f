"""Asking live sources and keeping their answers: each part as it comes, so that nothing known is lost."""

from __future__ import annotations

import math
import os
import queue
import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from advisor.pricing import OfferQuery, Part, PriceSource
from advisor.pricing.history import with_quantiles
from advisor.pricing.source import Credentials
from advisor.types import Market, Offer
from advisor.units import DAY_S, HOUR_S

if TYPE_CHECKING:
    from advisor.store import Store
    from advisor.store.prices import Pull

LEASE = "prices refresh"
CREDENTIALS = "credentials"
"""Scope under which it is noted that a source would not let us in."""
# A refresh takes a minute; one that was killed keeps the next from starting no longer than this.
LEASE_S = 600.0
# Who has no credentials now will have none in a minute.
RETRY_S = HOUR_S
# Quantiles of spot prices are those of this long, which is what AWS remembers.
RECENT_S = 90 * DAY_S
# In case clocks of machines that share a database differ.
_AHEAD_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What became of one part of a source.

    Attributes:
        num_points: earlier prices that came with it.
        failure: why it is not known; the offers from before are kept, with their age.
    """

    source: str
    scope: str
    num_offers: int
    num_points: int
    gaps: tuple[str, ...]
    failure: str | None


def refresh(
    sources: Sequence[PriceSource],
    query: OfferQuery,
    store: Store,
    *,
    now: Callable[[], datetime],
    progress: Callable[[Kept], None] | None = None,
) -> tuple[Kept, ...]:
    """Ask every live source at once, and keep each part in a transaction of its own.

    Args:
        sources: those that are not live are passed over.
        query: its regions say which parts to ask for.
        store: where the answers are kept.
        now: the clock.
        progress: is told of each part.

    Raises:
        LeaseTakenError: another refresh of the same database is under way.
        StoreError: the database cannot be written; parts kept before stay.
    """
    from advisor.store.lease import lease

    live = [source for source in sources if source.capabilities.is_live]
    done = []
    asked_at = now()
    with lease(store, LEASE, _holder(), for_s=LEASE_S, now=asked_at):
        for name, part in _parts(live, query):
            kept = _keep(store, name, part, asked_at)
            done.append(kept)
            if progress is not None:
                progress(kept)
    return tuple(done)


def due_sources(
    sources: Sequence[PriceSource], store: Store, now: datetime, refresh_after_s: float
) -> tuple[PriceSource, ...]:
    """Sources to ask again that would let us in; that one would not is noted, so as not to look each time.

    Raises:
        StoreError: the database cannot be read or written.
    """
    from advisor.store.prices import pulls, save_failure

    due = []
    for source in sources:
        if not is_due(pulls(store, source.name), now, refresh_after_s):
            continue
        if source.credentials() is Credentials.MISSING:
            save_failure(store, source.name, CREDENTIALS, "no credentials found", now)
        else:
            due.append(source)
    return tuple(due)


def is_due(pulls: Sequence[Pull], now: datetime, refresh_after_s: float) -> bool:
    """Whether a source should be asked again: its newest prices are old, and no attempt failed just now.

    Prices from the future say that a clock is wrong, and count as old.
    """
    succeeded = [_age_s(pull.succeeded_at, now) for pull in pulls if pull.succeeded_at is not None]
    failed = [_age_s(pull.failed_at, now) for pull in pulls if pull.failed_at is not None]
    is_fresh = any(-_AHEAD_S <= age <= refresh_after_s for age in succeeded)
    was_refused = any(-_AHEAD_S <= age <= RETRY_S for age in failed)
    return not is_fresh and not was_refused


def _age_s(moment: datetime, now: datetime) -> float:
    return (now - moment).total_seconds()


def _keep(store: Store, source: str, part: Part, at: datetime) -> Kept:
    from advisor.store.prices import save_failure, save_part

    part = _checked(part)
    if part.failure is not None:
        save_failure(store, source, part.scope, part.failure, at)
    else:
        offers = _with_quantiles(store, source, part, at)
        save_part(store, source, part.scope, offers, part.history, part.gaps, at)
    return Kept(
        source=source,
        scope=part.scope,
        num_offers=len(part.offers),
        num_points=len(part.history),
        gaps=part.gaps,
        failure=part.failure,
    )


def _checked(part: Part) -> Part:
    """The part as it can be kept; a plug-in may say anything."""
    times = [offer.retrieved_at for offer in part.offers] + [point.observed_at for point in part.history]
    if any(time.tzinfo is None for time in times):
        return Part(scope=part.scope, failure="its times have no time zone: update the plug-in")
    offers = tuple(offer for offer in part.offers if _is_price(offer.usd_per_h))
    history = tuple(point for point in part.history if _is_price(point.usd_per_h))
    num_lost = len(part.offers) + len(part.history) - len(offers) - len(history)
    lost = [f"{num_lost} prices that are not above 0 left out"] if num_lost else []
    return replace(part, offers=offers, history=history, gaps=(*part.gaps, *lost))


def _is_price(usd_per_h: float) -> bool:
    return 0 < usd_per_h < math.inf


def _with_quantiles(store: Store, source: str, part: Part, at: datetime) -> tuple[Offer, ...]:
    """Spot offers whose source gives no quantiles get them from what is remembered of that source."""
    bare = [o for o in part.offers if o.market is Market.SPOT and o.spot_usd_per_h is None]
    if not bare:
        return part.offers
    from advisor.store.prices import price_points

    start = at - timedelta(seconds=RECENT_S)
    points = price_points(
        store,
        sources=(source,),
        providers=tuple({offer.provider for offer in bare}),
        regions=tuple({offer.region for offer in bare}),
        markets=(Market.SPOT,),
        since=start,
    )
    return with_quantiles(part.offers, (*points, *part.history), start=start, end=at)


def _holder() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _parts(sources: Sequence[PriceSource], query: OfferQuery) -> Iterator[tuple[str, Part]]:
    """The parts of all sources as they come, each source in a thread of its own."""
    came: queue.SimpleQueue[tuple[str, Part | None]] = queue.SimpleQueue()

    def ask(source: PriceSource) -> None:
        try:
            for part in source.offers(query):
                came.put((source.name, part))
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
            came.put((source.name, Part(scope="all", failure=_in_words(error))))
        finally:
            came.put((source.name, None))

    for source in sources:
        # A source that hangs must not keep an interrupted command from ending.
        threading.Thread(target=ask, args=(source,), daemon=True).start()
    running = len(sources)
    while running:
        name, part = came.get()
        if part is None:
            running -= 1
        else:
            yield name, part


_SECRET = re.compile(r"(?<=://)[^/\s@]+@|\?\S*")


def _in_words(error: Exception) -> str:
    """An unforeseen error in a line, without what URLs may carry of passwords and keys."""
    text = " ".join(_SECRET.sub("", str(error)).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
