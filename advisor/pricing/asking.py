"""Asking all sources at once, each in a thread of its own, for as long as there is patience."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any

from advisor.pricing.parts import EVERYTHING
from advisor.pricing.query import OfferQuery
from advisor.pricing.source import Part, PriceSource
from advisor.redaction import error_in_words
from advisor.units import format_duration

# A plug-in may yield anything, None included.
_END: Any = object()
_Came = queue.SimpleQueue[tuple[str, Any]]


def parts_of(
    sources: Sequence[PriceSource],
    query: OfferQuery,
    *,
    within_s: float,
    clock: Callable[[], float] = monotonic,
) -> Iterator[tuple[str, Part]]:
    """What all sources say as they say it, with the source's name; `checked` makes sure that it is a part.

    Args:
        sources: all are asked at once.
        query: what they are asked.
        within_s: a source that still runs after this many seconds fails, and what it says later is lost.
        clock: seconds that only go forward.
    """
    came: _Came = queue.SimpleQueue()
    for source in sources:
        # A source that hangs must not keep the command from ending.
        threading.Thread(target=_ask, args=(source, query, came), daemon=True).start()
    running = [source.name for source in sources]
    end_s = clock() + within_s
    while running:
        try:
            name, part = came.get(timeout=max(end_s - clock(), 0.0))
        except queue.Empty:
            failure = f"gave no answer within {format_duration(within_s)}"
            yield from ((name, Part(scope=EVERYTHING, failure=failure)) for name in running)
            return
        if part is _END:
            running.remove(name)
        else:
            yield name, part


def _ask(source: PriceSource, query: OfferQuery, came: _Came) -> None:
    try:
        for part in source.offers(query):
            came.put((source.name, part))
    except BaseException as error:  # noqa: BLE001 - a plug-in may raise anything, an exit included
        came.put((source.name, Part(scope=EVERYTHING, failure=error_in_words(error))))
    finally:
        came.put((source.name, _END))
