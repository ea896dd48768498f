"""Asking live sources and keeping their answers: each part as it comes, so that nothing known is lost."""

from __future__ import annotations

import getpass
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
from advisor.types import Market, Offer, PricePoint
from advisor.units import DAY_S, HOUR_S

if TYPE_CHECKING:
    from advisor.store import Store
    from advisor.store.prices import Pull

EVERYWHERE = "*"
LEASE = "prices refresh"
ASKED = "asked"
"""How the scope begins under which it is noted that a source was asked as a whole, and by whom if in vain."""
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
    done: list[Kept] = []
    with lease(store, LEASE, _holder(), for_s=LEASE_S, now=now()):
        for name, part in _parts(live, query):
            kept = _keep(store, name, part, now())
            done.append(kept)
            if progress is not None:
                progress(kept)
        for source in live:
            _note_asked(store, source.name, query, done, now())
    return tuple(done)


def _note_asked(store: Store, source: str, query: OfferQuery, done: Sequence[Kept], at: datetime) -> None:
    """Remember that a source answered for these regions, or that nothing of it could be had."""
    from advisor.store.prices import save_failure, save_part

    own = [kept for kept in done if kept.source == source]
    if any(kept.failure is None for kept in own):
        save_part(store, source, _asked(query.regions), (), (), (), at)
    else:
        save_failure(store, source, _refused(), "nothing could be pulled", at)


def _asked(regions: Sequence[str]) -> str:
    return f"{ASKED} {', '.join(sorted(regions)) or EVERYWHERE}"


def _refused() -> str:
    """Credentials are a person's and a machine's: what fails for one says nothing of a colleague's."""
    return f"{ASKED} by {getpass.getuser()} on {socket.gethostname()}"


def due_sources(
    sources: Sequence[PriceSource],
    store: Store,
    now: datetime,
    refresh_after_s: float,
    regions: Sequence[str] = (),
) -> tuple[PriceSource, ...]:
    """Sources to ask again that would let us in; that one would not is noted, so as not to look each time.

    Args:
        sources: live ones.
        store: what was pulled.
        now: the time.
        refresh_after_s: prices older than this are due.
        regions: which ones count; empty for all.

    Raises:
        StoreError: the database cannot be read or written.
    """
    from advisor.store.prices import pulls, save_failure

    due = []
    for source in sources:
        if not is_due(pulls(store, source.name), now, refresh_after_s, regions):
            continue
        if source.credentials() is Credentials.MISSING:
            save_failure(store, source.name, _refused(), "no credentials found", now)
        else:
            due.append(source)
    return tuple(due)


def is_due(pulls: Sequence[Pull], now: datetime, refresh_after_s: float, regions: Sequence[str] = ()) -> bool:
    """Whether a source should be asked again: its last whole answer is old, and we were not refused just now.

    Prices from the future say that a clock is wrong, and count as old.
    """
    whole = (_asked(regions), _asked(()))
    succeeded = [p.succeeded_at for p in pulls if p.scope in whole and p.succeeded_at is not None]
    failed = [p.failed_at for p in pulls if p.scope == _refused() and p.failed_at is not None]
    is_fresh = any(-_AHEAD_S <= _age_s(moment, now) <= refresh_after_s for moment in succeeded)
    was_refused = any(-_AHEAD_S <= _age_s(moment, now) <= RETRY_S for moment in failed)
    return not is_fresh and not was_refused


def _age_s(moment: datetime, now: datetime) -> float:
    return (now - moment).total_seconds()


def _keep(store: Store, source: str, part: Part, at: datetime) -> Kept:
    from advisor.store.prices import save_failure, save_part

    part = _checked(part)
    if part.failure is not None:
        save_failure(store, source, part.scope, part.failure, at)
    else:
        offers = _with_quantiles(store, part.offers, part.history, at)
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


def _with_quantiles(
    store: Store, offers: tuple[Offer, ...], history: Sequence[PricePoint], at: datetime
) -> tuple[Offer, ...]:
    """Spot offers whose source gives no quantiles get them from what is remembered."""
    bare = [o for o in offers if o.market is Market.SPOT and o.spot_usd_per_h is None]
    if not bare:
        return offers
    from advisor.store.prices import price_points

    start = at - timedelta(seconds=RECENT_S)
    points = price_points(
        store,
        providers=tuple({offer.provider for offer in bare}),
        regions=tuple({offer.region for offer in bare}),
        markets=(Market.SPOT,),
        since=start,
    )
    return with_quantiles(offers, (*points, *history), start=start, end=at)


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
