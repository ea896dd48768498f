"""Asking live sources and keeping their answers: each part as it comes, so that nothing known is lost."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from advisor.core.redaction import error_in_words
from advisor.core.units import DAY_S, HOUR_S
from advisor.core.values import Market, Offer
from advisor.pricing.catalog.bounds import possible_points
from advisor.pricing.refresh.asking import parts_of
from advisor.pricing.refresh.parts import checked
from advisor.pricing.refresh.price_history import with_quantiles
from advisor.pricing.sources.protocol import Credentials, Part, PriceSource, credentials_of
from advisor.pricing.sources.query import OfferQuery

if TYPE_CHECKING:
    from advisor.store.handle import Store
    from advisor.store.pulls import Pull

EVERYWHERE = "*"
LOCK = "refresh of prices"
ASKED = "asked"
"""How the scope begins under which it is noted that a source was asked as a whole, and by whom if in vain."""
# Longer than a refresh may take (`prices.refresh_within`).
LONGEST_S = 600.0
# A refresh takes ten seconds; who waits would rather have older prices than stare at a broken cloud.
ANSWER_WITHIN_S = 60.0
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
        troubles: those of the gaps that come from trouble, not from what is for rent.
        failure: why it is not known; the offers from before are kept, with their age.
    """

    source: str
    scope: str
    num_offers: int
    num_points: int
    gaps: tuple[str, ...]
    failure: str | None
    troubles: tuple[str, ...] = ()


def refresh(
    sources: Sequence[PriceSource],
    query: OfferQuery,
    store: Store,
    *,
    now: Callable[[], datetime],
    progress: Callable[[Kept], None] | None = None,
    within_s: float = ANSWER_WITHIN_S,
) -> tuple[Kept, ...]:
    """Ask every live source at once, and keep each part in a transaction of its own.

    Args:
        sources: those that are not live are passed over.
        query: its regions say which parts to ask for.
        store: where the answers are kept.
        now: the clock.
        progress: is told of each part.
        within_s: a source that has not ended after this many seconds fails; its parts before stay.

    Raises:
        LockedError: another refresh of the same database is under way.
        StoreError: the database cannot be written; parts kept before stay.
    """
    from advisor.store.locks import lock

    live = [source for source in sources if source.capabilities.is_live]
    done: list[Kept] = []
    asked_at = now()
    with lock(store, LOCK, _holder()):

        def missing(source: str) -> list[str]:
            return _missing(store, source, query, done)

        for name, part in parts_of(live, query, within_s=within_s, missing=missing):
            kept = _keep(store, name, part, asked_at)
            done.append(kept)
            if progress is not None:
                progress(kept)
        for source in live:
            _note_asked(store, source.name, query, done, asked_at)
    return tuple(done)


def _missing(store: Store, source: str, query: OfferQuery, done: Sequence[Kept]) -> list[str]:
    """Scopes of a source that hold prices, were asked for, and have not been answered for."""
    from advisor.store.pulls import pulls

    came = {kept.scope for kept in done if kept.source == source}
    held = [pull for pull in pulls(store, source) if pull.num_offers and pull.place is not None]
    return [
        pull.scope for pull in held if pull.scope not in came and pull.place and query.covers(pull.place[1])
    ]


def _note_asked(store: Store, source: str, query: OfferQuery, done: Sequence[Kept], at: datetime) -> None:
    """Remember that a source answered for these regions, or that nothing of it could be had."""
    from advisor.store.pulls import save_failure, save_part

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
    from advisor.store.pulls import pulls, save_failure

    due = []
    for source in sources:
        if not is_due(pulls(store, source.name), now, refresh_after_s, regions):
            continue
        state, fault = credentials_of(source)
        if state is Credentials.MISSING:
            save_failure(store, source.name, _refused(), fault or "no credentials found", now)
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


def _keep(store: Store, source: str, answer: object, at: datetime) -> Kept:
    from advisor.store.pulls import save_failure, save_part

    part = checked(answer)
    if part.failure is None:
        try:
            offers = _with_quantiles(store, source, part, at)
            save_part(
                store,
                source,
                part.scope,
                offers,
                part.history,
                part.gaps,
                at,
                place=part.place,
                unpriced=part.unpriced,
            )
        except Exception as error:  # noqa: BLE001 - what one plug-in says must not stop the others
            part = Part(scope=part.scope, failure=f"cannot be kept: {error_in_words(error)}")
    if part.failure is not None:
        # Where the database is to blame, this fails, too, and ends the refresh.
        save_failure(store, source, part.scope, part.failure, at)
    return Kept(
        source=source,
        scope=part.scope,
        num_offers=len(part.offers),
        num_points=len(part.history),
        gaps=part.gaps,
        failure=part.failure,
        troubles=part.troubles,
    )


def _with_quantiles(store: Store, source: str, part: Part, at: datetime) -> tuple[Offer, ...]:
    """Spot offers whose source gives no quantiles get them from what is remembered of that source."""
    bare = [o for o in part.offers if o.market is Market.SPOT and o.spot_usd_per_h is None]
    if not bare:
        return part.offers
    from advisor.store.pulls import price_points

    start = at - timedelta(seconds=RECENT_S)
    points = price_points(
        store,
        sources=(source,),
        providers=tuple({offer.provider for offer in bare}),
        regions=tuple({offer.region for offer in bare}),
        markets=(Market.SPOT,),
        since=start,
    )
    possible = possible_points(points, part.offers)
    return with_quantiles(part.offers, (*possible, *part.history), start=start, end=at)


def _holder() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"
