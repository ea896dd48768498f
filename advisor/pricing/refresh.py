"""Asking live sources at once, each in a thread with a time limit, and storing each part of their answers."""

from __future__ import annotations

import math
import os
import queue
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import compress
from time import monotonic
from typing import TYPE_CHECKING

from pydantic import ConfigDict, TypeAdapter, ValidationError

from advisor.core.plugins import error_in_words
from advisor.core.processes import user_name
from advisor.core.redaction import redact_message
from advisor.core.units import DAY_S, HOUR_S, format_duration
from advisor.core.values import Market, Offer, PricePoint
from advisor.pricing.price_checks import has_possible_prices, named, possible_points, prices_of
from advisor.pricing.price_history import with_quantiles
from advisor.pricing.sources.protocol import Credentials, OfferQuery, Part, PriceSource, credentials_of
from advisor.store.handle import Store

if TYPE_CHECKING:
    from advisor.store.pulls import Pull

EVERYTHING = "all"
"""Scope of a failure that belongs to no part."""
_ADVICE = "update the plug-in"


def checked(part: object) -> Part:
    """The part as it can be kept; a plug-in may say anything, and what it says wrong fails alone."""
    if not isinstance(part, Part):
        return Part(scope=EVERYTHING, failure=f"it gave no Part but {type(part).__name__!r}: {_ADVICE}")
    scope: object = part.scope
    if not isinstance(scope, str):
        return Part(scope=EVERYTHING, failure=f"it gave a Part whose scope is no text: {_ADVICE}")
    scope = redact_message(scope)
    try:
        return _checked(part, scope)
    except ValidationError as error:
        # Where the first wrong value stands; the value itself may be anything, secrets included.
        first = error.errors(include_input=False)[0]
        fault = f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}"
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it is this part's fault
        fault = error_in_words(error)
    return Part(scope=scope, failure=f"its values are wrong ({fault}): {_ADVICE}")


def _checked(answer: Part, scope: str) -> Part:
    if answer.failure is not None:
        return Part(scope=scope, failure=redact_message(str(answer.failure)))
    whole = [not isinstance(one, Offer) or all(map(_is_price, prices_of(one))) for one in answer.offers]
    offers = tuple(compress(answer.offers, whole))
    unpriced = [one for one, is_whole in zip(answer.offers, whole, strict=True) if not is_whole]
    history = tuple(p for p in answer.history if not isinstance(p, PricePoint) or _is_price(p.usd_per_h))
    num_lost = len(unpriced) + len(answer.history) - len(history)
    lost = [f"{num_lost} prices that are not above 0 left out"] if num_lost else []
    troubles = tuple(redact_message(str(trouble)) for trouble in answer.troubles)
    gaps = dict.fromkeys((*(redact_message(str(gap)) for gap in answer.gaps), *troubles, *lost))
    names = (*(one.instance_type for one in unpriced), *map(redact_message, answer.unpriced))
    known = replace(
        answer,
        scope=scope,
        offers=offers,
        history=history,
        gaps=tuple(gaps),
        unpriced=tuple(dict.fromkeys(names)),
        troubles=troubles,
    )
    part: Part = _plausible(_adapter().validate_python((known,))[0])
    times = [offer.retrieved_at for offer in part.offers] + [point.observed_at for point in part.history]
    if any(time.tzinfo is None for time in times):
        return Part(scope=scope, failure=f"its times have no time zone: {_ADVICE}")
    return part


def _plausible(part: Part) -> Part:
    """Without prices that no such machine can have: those are unknown, and reported."""
    offers = tuple(filter(has_possible_prices, part.offers))
    history = tuple(possible_points(part.history, part.offers))
    lost = [offer for offer in part.offers if not has_possible_prices(offer)]
    gaps = [f"prices that no such machine can have left out: {redact_message(named(lost))}"] if lost else []
    if num_points := len(part.history) - len(history):
        gaps.append(f"{num_points} earlier prices that no such machine can have had left out")
    unpriced = dict.fromkeys((*part.unpriced, *(offer.instance_type for offer in lost)))
    return replace(
        part,
        offers=offers,
        history=history,
        gaps=(*part.gaps, *gaps),
        troubles=(*part.troubles, *gaps),
        unpriced=tuple(unpriced),
    )


def _is_price(usd_per_h: object) -> bool:
    is_number = isinstance(usd_per_h, int | float) and not isinstance(usd_per_h, bool)
    return is_number and 0 < usd_per_h < math.inf  # type: ignore[operator]


@cache
def _adapter() -> TypeAdapter[tuple[Part]]:
    """Checks the type of every value; a number in quotes is none."""
    return TypeAdapter(tuple[Part], config=ConfigDict(strict=True, revalidate_instances="always"))


# A plug-in may yield anything, None included.
_END: object = object()
# Name of the source, what it said, and when.
_Came = queue.SimpleQueue[tuple[str, object, float]]


def parts_of(
    sources: Sequence[PriceSource],
    query: OfferQuery,
    *,
    within_s: float,
    missing: Callable[[str], Sequence[str]] = lambda _: (),
    clock: Callable[[], float] = monotonic,
) -> Iterator[tuple[str, object]]:
    """What all sources say as they say it, with the source's name; `checked` makes sure that it is a part.

    A source that still runs after ``within_s`` fails with its scopes that are ``missing``; what it says later
    is lost.
    """
    came: _Came = queue.SimpleQueue()
    end_s = clock() + within_s
    stopped = threading.Event()
    for source in sources:
        # A source that hangs must not keep the command from ending.
        threading.Thread(target=_ask, args=(source, query, came, stopped, clock), daemon=True).start()
    running = [source.name for source in sources]
    try:
        with suppress(queue.Empty):
            # However long keeping it takes. A source that never stops would be listened to for ever.
            while running:
                name, part, at_s = came.get(timeout=max(end_s - clock(), 0.0))
                if at_s > end_s:
                    break
                if part is _END:
                    running.remove(name)
                else:
                    yield name, part
        failure = f"gave no answer within {format_duration(within_s)} (prices.refresh_within)"
        for name in running:
            scopes = missing(name) or (EVERYTHING,)
            yield from ((name, Part(scope=scope, failure=failure)) for scope in scopes)
    finally:
        stopped.set()


def _ask(
    source: PriceSource, query: OfferQuery, came: _Came, stopped: threading.Event, clock: Callable[[], float]
) -> None:
    def say(what: object) -> None:
        came.put((source.name, what, clock()))

    try:
        for part in source.offers(query):
            say(part)
            if stopped.is_set():  # no one reads it any more
                return
    except BaseException as error:  # noqa: BLE001 - a plug-in may raise anything, an exit included
        say(Part(scope=EVERYTHING, failure=error_in_words(error)))
    finally:
        say(_END)


EVERYWHERE = "*"
LOCK = "refresh of prices"
ASKED = "asked"
"""How the scope begins under which it is noted that a source was asked as a whole, and by whom if in vain."""
# Longer than a refresh may take (`prices.refresh_within`).
LONGEST_S = 600.0
# A refresh takes ten seconds; who waits would rather have older prices than stare at a broken cloud.
ANSWER_WITHIN_S = 60.0
# A network that is down now may be up in a few minutes.
RETRY_S = 600.0
# Who has no credentials now will have none in a minute; looking for them takes a second.
NO_CREDENTIALS_S = HOUR_S
_NO_CREDENTIALS = "no credentials found"
_UNDER_WAY = "a pull that began then has not ended"
# Quantiles of spot prices are those of this long, which is what AWS remembers.
RECENT_S = 90 * DAY_S
# In case clocks of machines that share a database differ.
_AHEAD_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshedPart:
    """What became of one part of a source."""

    source: str
    scope: str
    num_offers: int
    num_points: int
    """Earlier prices that came with it."""
    gaps: tuple[str, ...]
    failure: str | None
    """Why it is not known; the offers from before are kept, with their age."""
    troubles: tuple[str, ...] = ()
    """Those of the gaps that come from trouble, not from what is for rent."""


def refresh(
    sources: Sequence[PriceSource],
    query: OfferQuery,
    store: Store,
    *,
    now: Callable[[], datetime],
    progress: Callable[[RefreshedPart], None] | None = None,
    within_s: float = ANSWER_WITHIN_S,
) -> tuple[RefreshedPart, ...]:
    """Ask every live source at once, and keep each part in a transaction of its own; ``progress`` gets each.

    The query's regions say which parts to ask for. A source that has not ended after ``within_s`` fails; its
    parts before stay.

    Raises:
        LockedError: another refresh of the same database is under way.
        StoreError: the database cannot be written; parts kept before stay.
    """
    from advisor.store.locks import lock
    from advisor.store.pulls import save_failure, save_part

    live = [source for source in sources if source.capabilities.is_live]
    done: list[RefreshedPart] = []
    asked_at = now()
    with lock(store, LOCK, f"process {os.getpid()} on {socket.gethostname()}"):
        missing = partial(_missing, store, query=query, done=done)
        for name, part in parts_of(live, query, within_s=within_s, missing=missing):
            kept = _keep(store, name, part, asked_at)
            done.append(kept)
            if progress is not None:
                progress(kept)
        # One that was asked about some providers alone is due for the others as it was before.
        for name in () if query.providers else (source.name for source in live):
            if any(kept.failure is None for kept in done if kept.source == name):
                save_part(store, name, _asked(query.regions), (), (), (), asked_at)
            else:
                save_failure(store, name, _refused(), "nothing could be pulled", asked_at)
    return tuple(done)


def _missing(store: Store, source: str, *, query: OfferQuery, done: Sequence[RefreshedPart]) -> list[str]:
    """Scopes of a source that hold prices, were asked for, and have not been answered for."""
    from advisor.store.pulls import pulls

    came = {kept.scope for kept in done if kept.source == source}
    return [
        pull.scope
        for pull in pulls(store, source)
        if pull.num_offers
        and pull.scope not in came
        and pull.place
        and query.covers(pull.place[1])
        and (not query.providers or pull.place[0] in query.providers)
    ]


def _asked(regions: Sequence[str]) -> str:
    return f"{ASKED} {', '.join(sorted(regions)) or EVERYWHERE}"


def _refused() -> str:
    """Credentials are a person's and a machine's: what fails for one says nothing of a colleague's."""
    return f"{ASKED} by {user_name()} on {socket.gethostname()}"


def due_sources(
    sources: Iterable[PriceSource],
    store: Store,
    now: datetime,
    refresh_after_s: float,
    regions: Sequence[str] = (),
) -> tuple[PriceSource, ...]:
    """Sources to ask again of regions (all if empty), let in or not. Raises StoreError: no reading."""
    from advisor.store.pulls import pulls

    return tuple(
        source for source in sources if is_due(pulls(store, source.name), now, refresh_after_s, regions)
    )


def with_credentials(sources: Iterable[PriceSource], store: Store, now: datetime) -> tuple[PriceSource, ...]:
    """Sources that would let us in; that one would not is noted. Raises StoreError: it cannot be written."""
    from advisor.store.pulls import save_failure

    open_ = []
    for source in sources:
        state, fault = credentials_of(source)
        if state is Credentials.MISSING:
            save_failure(store, source.name, _refused(), fault or _NO_CREDENTIALS, now)
        else:
            open_.append(source)
    return tuple(open_)


def note_under_way(sources: Iterable[PriceSource], store: Store, now: datetime) -> None:
    """Note that sources are about to be asked: no other command of this user asks them, too.

    Of one that had no credentials when it was last looked at nothing is expected, so nothing is noted.

    Raises StoreError: the database cannot be written.
    """
    from advisor.store.pulls import pulls, save_failure

    for source in sources:
        if not any(map(_had_no_credentials, pulls(store, source.name))):
            save_failure(store, source.name, _refused(), _UNDER_WAY, now)


def _had_no_credentials(pull: Pull) -> bool:
    return pull.scope == _refused() and pull.failure == _NO_CREDENTIALS


def under_way(store: Store, sources: Iterable[str]) -> dict[str, datetime]:
    """Since when sources are being asked by this user on this machine; the others are left out.

    Raises StoreError: the database cannot be read.
    """
    from advisor.store.pulls import pulls

    began: dict[str, datetime] = {}
    for source in sources:
        notes = [pull for pull in pulls(store, source) if pull.scope.startswith(ASKED)]
        answers = [pull.succeeded_at for pull in notes if pull.succeeded_at is not None]
        for at in (p.failed_at for p in notes if p.failure == _UNDER_WAY and p.scope == _refused()):
            # An answer from much later was noted by a wrong clock.
            if at and not any(0 < _age_s(at, answer) <= LONGEST_S for answer in answers):
                began[source] = at
    return began


def came_since(store: Store, sources: Iterable[str], since: datetime) -> tuple[RefreshedPart, ...]:
    """What became of the parts that have answered since. Raises StoreError: the database cannot be read."""
    from advisor.store.pulls import pulls

    return tuple(
        RefreshedPart(
            source=source,
            scope=pull.scope,
            num_offers=0 if pull.failure else pull.num_offers,
            num_points=0,
            gaps=pull.gaps,
            failure=pull.failure,
        )
        for source in sources
        for pull in pulls(store, source)
        if not pull.scope.startswith(ASKED) and (pull.failed_at or pull.succeeded_at or since) > since
    )


def is_due(pulls: Sequence[Pull], now: datetime, refresh_after_s: float, regions: Sequence[str] = ()) -> bool:
    """Whether to ask anew: the last whole answer is old or of the future, and none refused us just now."""

    def is_recent(moment: datetime | None, most_s: float) -> bool:
        return moment is not None and -_AHEAD_S <= _age_s(moment, now) <= most_s

    whole = (_asked(regions), _asked(()))
    return not any(
        (pull.scope in whole and is_recent(pull.succeeded_at, refresh_after_s))
        or (
            pull.scope == _refused()
            and is_recent(pull.failed_at, NO_CREDENTIALS_S if _had_no_credentials(pull) else RETRY_S)
        )
        for pull in pulls
    )


def _age_s(moment: datetime, now: datetime) -> float:
    return (now - moment).total_seconds()


def _keep(store: Store, source: str, answer: object, at: datetime) -> RefreshedPart:
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
    return RefreshedPart(
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
