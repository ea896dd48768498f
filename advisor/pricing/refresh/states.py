"""What each source holds, how old it is, and what it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from advisor.core.errors import AdvisorError
from advisor.core.plugins import held_back
from advisor.core.redaction import error_in_words
from advisor.pricing.refresh.gap_words import joined
from advisor.pricing.refresh.pulling import ASKED, LONGEST_S
from advisor.pricing.sources.protocol import (
    Credentials,
    Freshness,
    PriceSource,
    credentials_of,
    freshness_of,
)

if TYPE_CHECKING:
    from advisor.store.handle import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """One source as ``advisor prices sources`` tells of it.

    Attributes:
        oldest: of the offers held; None without any.
        gaps: what is missing, a line for each reason, and parts that could not be refreshed.
    """

    name: str
    is_live: bool
    providers: tuple[str, ...]
    num_offers: int
    oldest: datetime | None
    newest: datetime | None
    gaps: tuple[str, ...]
    credentials: Credentials


def state_of(source: PriceSource, store: Store | None) -> SourceState:
    """What a source holds: a live one what the store kept of its last refreshes.

    Raises:
        CatalogError: the data of a source that is not live cannot be read.
        StoreError: the database cannot be read.
    """
    credentials, fault = credentials_of(source)
    if not source.capabilities.is_live:
        held, gaps = _own_freshness(source)
    elif store is None:
        held, gaps = (), ("never refreshed",)
    else:
        from advisor.store.pulls import current_offers

        held, gaps = freshness_of(current_offers(store, source.name)), _gaps(source.name, store)
    return SourceState(
        name=source.name,
        is_live=source.capabilities.is_live,
        providers=source.capabilities.providers or tuple(one.provider for one in held),
        num_offers=sum(one.num_offers for one in held),
        oldest=min((one.oldest for one in held), default=None),
        newest=max((one.newest for one in held), default=None),
        gaps=gaps if fault is None else (*gaps, fault),
        credentials=credentials,
    )


def _own_freshness(source: PriceSource) -> tuple[tuple[Freshness, ...], tuple[str, ...]]:
    """What a source that is not live holds; that a plug-in cannot tell is a gap of it alone."""
    try:
        with held_back():
            return tuple(source.freshness()), ()
    except AdvisorError:
        raise
    except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
        return (), (f"it cannot tell what it holds: {error_in_words(error)}",)


def _gaps(name: str, store: Store) -> tuple[str, ...]:
    from advisor.store.pulls import pulls

    every = pulls(store, name)
    whole = [pull for pull in every if not pull.scope.startswith(ASKED)] or every
    gaps = [*joined((pull.scope, gap) for pull in whole for gap in pull.gaps)]
    newest = max((pull.succeeded_at for pull in whole if pull.succeeded_at is not None), default=None)
    for pull in whole:
        # What once failed as a whole, for want of credentials say, is over once anything was pulled since.
        is_over = newest is not None and pull.succeeded_at is None and _is_earlier(pull.failed_at, newest)
        if pull.failed_at is not None and not is_over:
            gaps.append(f"{pull.scope}: not refreshed on {pull.failed_at:%Y-%m-%d %H:%M}: {pull.failure}")
    return tuple(gaps) if whole else ("never refreshed",)


def _is_earlier(failed_at: datetime | None, newest: datetime) -> bool:
    """Whether it failed in an earlier refresh than that of the newest success."""
    return failed_at is None or (newest - failed_at).total_seconds() > LONGEST_S
