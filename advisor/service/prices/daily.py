"""The pull of a day: the first command that needs prices starts it, waits a little, and goes on without it.

A process of its own pulls, so that a network that stalls holds up no answer and its prices serve the next
one. The process that starts it and those that come meanwhile see in the database alone how far it is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from advisor.core.errors import LockedError, StoreError
from advisor.core.processes import start
from advisor.core.units import format_duration
from advisor.service.listening import Listener
from advisor.service.prices import live as live_prices
from advisor.service.prices.account_quotas import read_account_quotas
from advisor.service.prices.book import PriceBook
from advisor.store.database import open_store
from advisor.store.handle import Store

if TYPE_CHECKING:
    from advisor.config.settings import PriceSettings
    from advisor.pricing.answers import Answer
    from advisor.pricing.refresh import RefreshedPart
    from advisor.pricing.sources.protocol import OfferQuery, PriceSource

_COMMAND = (sys.executable, "-P", "-m", "advisor.service.prices.daily")
_LOOK_EVERY_S = 0.05
# For imports and credentials, beside what `prices.refresh_within` gives the sources.
_MORE_S = 60


def current_answers(
    book: PriceBook, query: OfferQuery, listener: Listener, *, may_refresh: bool
) -> list[Answer]:
    """What all sources know; live prices are refreshed first where they are due and credentials were found.

    Raises:
        ConfigError: a source that the settings name is not there or refuses its options.
        CatalogError: the data of a source cannot be read.
        StoreError: the database of the settings cannot be reached or read, unless prices may be refreshed.
    """
    from advisor.pricing.source_registry import answers_of

    listener.warn(book.sources.warnings)
    if may_refresh:
        pull_due(book, listener)
    try:
        return book.known(query)
    except StoreError as error:
        if not may_refresh:
            raise
        # Who wants a recommendation can go on with dated prices, and sees how old they are.
        listener.warn([f"prices that were pulled cannot be read: {error}"])
        return answers_of(book.sources.sources, query, None)


def pull_due(book: PriceBook, listener: Listener) -> None:
    """Start the pull of what is due, or join one that has just begun; trouble is a warning.

    Prices that do not come within ``prices.refresh_wait`` serve the next command.
    """
    live = [source for source in book.sources.sources if source.capabilities.is_live]
    if not live or not may_pull(book.settings.prices):
        return
    try:
        with open_store(book.settings.store.url) as store:
            child = _started(book, live, store)
            _follow(book.settings.prices, live, store, listener, child)
    except StoreError as error:
        listener.warn([f"new prices were not pulled: {error}"])


def may_pull(prices: PriceSettings) -> bool:
    """Whether a command pulls prices by itself: runs of CI are to be the same again."""
    is_automated = prices.refresh == "auto" and os.environ.get("CI", "").lower() not in ("", "0", "false")
    return not (prices.offline or prices.refresh == "never" or is_automated)


def _started(book: PriceBook, live: Sequence[PriceSource], store: Store) -> subprocess.Popen[bytes] | None:
    """The process that pulls what is due; None where nothing is, or another process is about it."""
    from advisor.pricing.refresh import LOCK, due_sources, note_under_way
    from advisor.store.locks import lock

    prices = book.settings.prices
    after_s = min(prices.refresh_after, prices.max_age or prices.refresh_after)
    due = due_sources(live, store, live_prices.now(), after_s, book.regions)
    if not due:
        return None
    try:
        with lock(store, LOCK, f"process {os.getpid()}"):
            due = due_sources(due, store, live_prices.now(), after_s, book.regions)
            note_under_way(due, store, live_prices.now())
    except LockedError:
        return None
    return _process(book, [source.name for source in due]) if due else None


def _process(book: PriceBook, names: Sequence[str]) -> subprocess.Popen[bytes]:
    """Settings may hold passwords: they go through a pipe, not by arguments or the environment."""
    settings = TypeAdapter(type(book.settings)).dump_python(book.settings, mode="json")
    process = start(
        _COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None  # noqa: S101 - a pipe
    with suppress(BrokenPipeError), process.stdin as pipe:
        pipe.write(json.dumps({"names": list(names), "pricing": settings}).encode())
    # Its caller may never wait for its end; in a long Python session it would stay a zombie.
    threading.Thread(target=process.wait, daemon=True).start()
    return process


def _follow(
    prices: PriceSettings,
    live: Sequence[PriceSource],
    store: Store,
    listener: Listener,
    child: subprocess.Popen[bytes] | None,
) -> None:
    """Wait for what is under way until its time is over, and tell what came of it."""
    from advisor.pricing.refresh import came_since, under_way

    names = [source.name for source in live]
    awaited = under_way(store, names)
    if not awaited:
        return
    began_at = max(awaited.values())
    left_s = prices.refresh_wait - max((live_prices.now() - began_at).total_seconds(), 0.0)
    if child is None and left_s <= 0:
        return
    with listener.step(f"pulling prices of {', '.join(awaited)}"):
        end_s = monotonic() + left_s
        while monotonic() < end_s and (child is None or child.poll() is None) and under_way(store, awaited):
            sleep(_LOOK_EVERY_S)
    still = under_way(store, awaited)
    _tell(came_since(store, awaited, began_at), sorted(still), prices, listener)


def _tell(
    kept: Sequence[RefreshedPart], still: Sequence[str], prices: PriceSettings, listener: Listener
) -> None:
    num_offers = sum(part.num_offers for part in kept)
    came = sorted({part.source for part in kept if part.failure is None})
    parts = [f"pulled {num_offers:,} prices of {', '.join(came)}"] if num_offers else []
    if still:
        wait = format_duration(prices.refresh_wait)
        parts.append(
            f"{', '.join(still)} did not answer within {wait}: the pull goes on for the next command"
        )
    failures = live_prices.failures_in_words(kept)
    if failures:
        more = f" (and {len(failures) - 1} more: `advisor prices sources`)" if failures[1:] else ""
        listener.warn(["; ".join([*parts, failures[0] + more])])
    elif parts:
        listener.note("; ".join(parts))


def main() -> None:
    """The process that pulls: its parent may be gone, and what it prints is not read."""
    from advisor.config.layers import PricingSettings

    given = json.load(sys.stdin.buffer)
    book = PriceBook(settings=TypeAdapter(PricingSettings).validate_python(given["pricing"]))
    signal.alarm(int(book.settings.prices.refresh_within) + _MORE_S)
    pull(book, given["names"])


def pull(book: PriceBook, names: Sequence[str]) -> None:
    """Refresh sources that would let us in, and note who would not.

    Raises StoreError: the database cannot be written, or another process refreshes it.
    """
    from advisor.pricing.refresh import with_credentials

    with open_store(book.settings.store.url) as store:
        open_ = with_credentials(book.named_sources(names).sources, store, live_prices.now())
        if open_:
            live_prices.run_refresh(book, open_, store, Listener())
            read_account_quotas(book, [source.name for source in open_], store)


if __name__ == "__main__":
    main()
