"""Asking all sources at once, each in a thread of its own, for as long as there is patience."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from time import monotonic

from advisor.core.redaction import error_in_words
from advisor.core.units import format_duration
from advisor.pricing.refresh.parts import EVERYTHING
from advisor.pricing.sources.protocol import Part, PriceSource
from advisor.pricing.sources.query import OfferQuery

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

    Args:
        sources: all are asked at once.
        query: what they are asked.
        within_s: a source that still runs after this many seconds fails, and what it says later is lost.
        missing: scopes that a source has not answered for, as far as anybody knows; these fail then.
        clock: seconds that only go forward.
    """
    came: _Came = queue.SimpleQueue()
    end_s = clock() + within_s
    stopped = threading.Event()
    for source in sources:
        # A source that hangs must not keep the command from ending.
        threading.Thread(target=_ask, args=(source, query, came, stopped, clock), daemon=True).start()
    try:
        late = yield from _until(end_s, came, [source.name for source in sources], clock)
        failure = f"gave no answer within {format_duration(within_s)} (prices.refresh_within)"
        for name in late:
            scopes = missing(name) or (EVERYTHING,)
            yield from ((name, Part(scope=scope, failure=failure)) for scope in scopes)
    finally:
        stopped.set()


def _until(
    end_s: float, came: _Came, running: list[str], clock: Callable[[], float]
) -> Generator[tuple[str, object], None, list[str]]:
    """What comes in time, however long keeping it takes; returns the sources that still run then."""
    while running:
        try:
            name, part, at_s = came.get(timeout=max(end_s - clock(), 0.0))
        except queue.Empty:
            break
        if at_s > end_s:  # a source that never stops would be listened to for ever
            break
        if part is _END:
            running.remove(name)
        else:
            yield name, part
    return running


def _ask(
    source: PriceSource,
    query: OfferQuery,
    came: _Came,
    stopped: threading.Event,
    clock: Callable[[], float],
) -> None:
    def say(what: object) -> None:
        came.put((source.name, what, clock()))

    try:
        for part in source.offers(query):
            say(part)
            if stopped.is_set():  # nobody listens any more
                return
    except BaseException as error:  # noqa: BLE001 - a plug-in may raise anything, an exit included
        say(Part(scope=EVERYTHING, failure=error_in_words(error)))
    finally:
        say(_END)
