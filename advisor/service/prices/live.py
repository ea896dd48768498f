"""Refreshing live prices with progress, and what their sources hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import InputError, StoreError, did_you_mean
from advisor.service.listening import Listener
from advisor.service.prices.account_quotas import read_account_quotas
from advisor.service.prices.book import PriceBook
from advisor.store.database import existing_store, open_store
from advisor.store.handle import Store

if TYPE_CHECKING:
    from advisor.config.layers import PricingSettings
    from advisor.config.settings import StoreSettings
    from advisor.pricing.refresh import RefreshedPart
    from advisor.pricing.source_registry import SourceState
    from advisor.pricing.sources.protocol import PriceSource
    from advisor.pricing.sources.snapshot import Built


def now() -> datetime:
    """This moment, with a time zone."""
    return datetime.now(UTC)


def moment_ago(ago_s: float) -> datetime:
    """The moment so many seconds ago, 1970 at the earliest."""
    end = now()
    return end - timedelta(seconds=min(ago_s, end.timestamp()))


def run_refresh(
    book: PriceBook,
    sources: Sequence[PriceSource],
    store: Store,
    listener: Listener,
    providers: tuple[str, ...] = (),
) -> tuple[RefreshedPart, ...]:
    """Refresh, of all providers or of some, and forget what is too old.

    Raises LockedError: another refresh of the same database is under way.
    """
    from advisor.pricing.refresh import refresh
    from advisor.pricing.sources.protocol import OfferQuery
    from advisor.store.pulls import forget_points

    query = OfferQuery(regions=book.regions, providers=providers)
    names = ", ".join(source.name for source in sources)
    num_offers = 0
    with listener.step(f"pulling prices of {names}", at_once=True) as step:

        def progress(part: RefreshedPart) -> None:
            nonlocal num_offers
            num_offers += part.num_offers
            step.update(f"{num_offers:,} offers, last {part.source} {part.scope}")

        within_s = book.settings.prices.refresh_within
        kept = refresh(sources, query, store, now=now, progress=progress, within_s=within_s)
    forget_points(store, moment_ago(book.settings.store.retention))
    return kept


def refresh_prices(
    names: Sequence[str], pricing: PricingSettings, listener: Listener, *, providers: tuple[str, ...] = ()
) -> tuple[RefreshedPart, ...]:
    """Pull live prices now, of all live sources of the settings or of those named, and remember them.

    Sources without credentials are skipped unless they are the only ones.

    Raises:
        ConfigError: a name that no source has, or a source that refuses its options.
        InputError: a name of a source that is not live, or there is no live one.
        LockedError: another refresh of the same database is under way.
    """
    book = PriceBook(settings=pricing)
    sources = _of_providers(live_sources(book, names, listener), providers, listener)
    if not names:
        sources = _with_credentials(sources, listener)
    with open_store(book.settings.store.url) as store:
        kept = run_refresh(book, sources, store, listener, providers)
        problems = read_account_quotas(book, [source.name for source in sources], store)
    listener.warn(failures_in_words(kept))
    for problem in problems:
        listener.note(problem)
    return kept


def _of_providers(
    sources: tuple[PriceSource, ...], providers: Sequence[str], listener: Listener
) -> tuple[PriceSource, ...]:
    """The sources that may have prices of one of these providers; one that says none may have any."""
    known = {name for source in sources for name in source.capabilities.providers}
    wanted = {name.lower() for name in providers}
    for name in providers:
        if name.lower() not in known and all(source.capabilities.providers for source in sources):
            near = did_you_mean(name, known)
            raise InputError(
                f"{listener.name_of('cloud.providers')}: no source that can be refreshed has prices of"
                f" {name!r}.{near} There are {', '.join(sorted(known))}."
            )
    return tuple(
        source
        for source in sources
        if not (wanted and source.capabilities.providers) or wanted & {*source.capabilities.providers}
    )


def _with_credentials(sources: tuple[PriceSource, ...], listener: Listener) -> tuple[PriceSource, ...]:
    """The sources that have credentials or need none; all of them if none would be left."""
    from advisor.pricing.sources.protocol import Credentials, credentials_of

    closed = [source for source in sources if credentials_of(source)[0] is Credentials.MISSING]
    if not closed or len(closed) == len(sources):
        return sources
    names = ", ".join(source.name for source in closed)
    listener.note(f"no credentials found for {names}: refreshing the sources that need none")
    return tuple(source for source in sources if source not in closed)


def write_snapshot(
    folder: Path, pricing: PricingSettings, listener: Listener, *, is_forced: bool = False
) -> Built:
    """Write the live prices that were pulled last as a dated snapshot.

    Raises:
        CatalogError: nothing to write, it looks wrong beside the last one, or the folder cannot be written.
        AdvisorError: as ``PriceBook.known``.
    """
    from advisor.pricing.sources.protocol import OfferQuery
    from advisor.pricing.sources.snapshot import build_snapshot

    book = PriceBook(settings=pricing)
    listener.warn(book.sources.warnings)
    answers = book.known(OfferQuery())
    listener.warn([warning for answer in answers for warning in answer.warnings])
    live = [offer for answer in answers if answer.is_live for offer in answer.offers]
    return build_snapshot(live, folder, is_forced=is_forced)


def live_sources(book: PriceBook, names: Sequence[str], listener: Listener) -> tuple[PriceSource, ...]:
    """The sources that a refresh asks: all live ones of the settings, or those named.

    Raises:
        ConfigError: a name that no source has, or a source that refuses its options.
        InputError: a name of a source that is not live, or there is no live one.
    """
    if book.settings.prices.offline:
        raise InputError("prices.offline is set: without a network there is nothing to refresh.")
    sources = book.named_sources(names)
    listener.warn(sources.warnings)
    dated = [source.name for source in sources.sources if not source.capabilities.is_live]
    live = tuple(source for source in sources.sources if source.capabilities.is_live)
    if (names and dated) or not live:
        raise InputError(
            f"{', '.join(dated)} cannot be refreshed: its prices are read from files each time."
            " Live sources are such as aws and gcp: `advisor prices sources` lists them."
        )
    return live


def source_states(pricing: PricingSettings) -> tuple[list[SourceState], tuple[str, ...]]:
    """What each source holds and lacks, and warnings.

    Raises:
        ConfigError: a source that the settings name is not there or refuses its options.
        CatalogError: the data of a source cannot be read.
    """
    from advisor.pricing.source_registry import state_of

    sources = PriceBook(settings=pricing).sources
    with existing_store(pricing.store.url) as store:
        return [state_of(source, store) for source in sources.sources], sources.warnings


def why_not_refreshed(settings: StoreSettings, provider: str) -> str | None:
    """Why the last pull of a provider's prices failed; None where none failed, or this is unknown."""
    from advisor.store.pulls import pulls

    try:
        with existing_store(settings.url) as store:
            failures = (one.failure for one in (pulls(store) if store else ()) if one.scope == provider)
            return next(filter(None, failures), None)
    except StoreError:
        return None  # who reads prices from it tells that


def failures_in_words(kept: Sequence[RefreshedPart]) -> list[str]:
    """One line for each reason: which parts failed, or lack something because of trouble, and why."""
    failed: dict[tuple[str, str], list[str]] = {}
    troubled: dict[tuple[str, str], list[str]] = {}
    for part in kept:
        if part.failure is not None:
            failed.setdefault((part.source, part.failure), []).append(part.scope)
        for trouble in part.troubles:
            troubled.setdefault((part.source, trouble), []).append(part.scope)
    lost = "not refreshed, older prices are kept"
    return [
        *(f"{source}: {_some(scopes)} {lost}: {why}" for (source, why), scopes in failed.items()),
        *(f"{source}: {_some(scopes)}: {why}" for (source, why), scopes in troubled.items()),
    ]


def _some(scopes: Sequence[str]) -> str:
    return ", ".join(scopes) if len(scopes) <= 3 else f"{', '.join(scopes[:2])} and {len(scopes) - 2} more"
