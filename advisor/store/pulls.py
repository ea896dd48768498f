"""What is for rent now, by source and scope, and how the last pull of each scope went."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, delete, func, insert, select

from advisor.core.values import Interval, Market, Offer, PricePoint
from advisor.store import schema
from advisor.store.handle import Store
from advisor.store.points import append_points, check_quote, forget_points, price_points
from advisor.store.transactions import insert_into, reading, writing

__all__ = [
    "Pull", "covered_places", "current_offers", "forget_points", "price_points", "pulls", "save_failure",
    "save_part",
]  # fmt: skip

LONGEST_REFRESH = timedelta(hours=1)
"""No two refreshes that overtake each other begin further apart."""
_OFFERS = schema.offers.c
_PULLS = schema.pulls.c
# Kept as they are; the quantiles of a spot price have a column each.
_PLAIN = tuple(field.name for field in dataclasses.fields(Offer) if field.name != "spot_usd_per_h")
_SPOT = ("spot_p10_usd_per_h", "spot_p50_usd_per_h", "spot_p90_usd_per_h")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """How asking a source about a scope went.

    Attributes:
        num_offers: of the last success; these are the current ones.
        succeeded_at: when that was; None if it never did.
        failed_at: the last failure since then, None if there was none.
        failure: why, in words.
        gaps: what the last success lacked and why, in words.
        place: provider, region and market that the scope is, whole; None if it is something else.
        unpriced: instance types that are for rent there without a known price.
    """

    source: str
    scope: str
    num_offers: int
    succeeded_at: datetime | None
    failed_at: datetime | None
    failure: str | None
    gaps: tuple[str, ...]
    place: tuple[str, str, Market] | None = None
    unpriced: tuple[str, ...] = ()


def save_part(
    store: Store,
    source: str,
    scope: str,
    offers: Sequence[Offer],
    history: Sequence[PricePoint],
    gaps: Sequence[str],
    at: datetime,
    *,
    place: tuple[str, str, Market] | None = None,
    unpriced: Sequence[str] = (),
) -> None:
    """Replace what a scope held, remember its prices and note the success: all of it or nothing.

    On-demand and spot offers add to the history where their price is a new one. Saving twice is saving once.

    ``place`` is what the scope is, whole, if it is one place; ``unpriced`` what is for rent there without a
    price. Prices in ``history`` that are known already stay as they are; ``at`` is when the source was asked.
    Nothing is done where the scope holds the answer to a later question, of up to an hour later.

    Raises:
        StoreError: a price is not above 0 or a time has no zone; or the database cannot be written.
    """
    for offer in offers:
        _check(offer)
    noted = {"num_offers": len(offers), "succeeded_at": at, "failed_at": None, "failure": None}
    with writing(store) as connection:
        if _is_overtaken(connection, source, scope, at):
            return
        details = {"gaps": tuple(gaps), "place": place or (), "unpriced": tuple(unpriced)}
        _note(connection, source, scope, noted | details)
        held = (_OFFERS.pull_source == source) & (_OFFERS.pull_scope == scope)
        connection.execute(delete(schema.offers).where(held))
        key = {"pull_source": source, "pull_scope": scope}
        rows = [key | {"position": position} | _columns(offer) for position, offer in enumerate(offers)]
        if rows:
            connection.execute(insert(schema.offers), rows)
        append_points(connection, source, offers, history)


def save_failure(store: Store, source: str, scope: str, failure: str, at: datetime) -> None:
    """Note that a scope could not be pulled; its offers stay, with the age they have.

    ``failure`` tells why, in words and without secrets; ``at`` is when the source was asked. It is not noted
    where a later question was answered.

    Raises:
        StoreError: the time has no zone, or the database cannot be written.
    """
    with writing(store) as connection:
        if not _is_overtaken(connection, source, scope, at):
            _note(connection, source, scope, {"failed_at": at, "failure": failure})


def current_offers(
    store: Store, source: str, *, providers: Sequence[str] = (), gpus: Sequence[str] = ()
) -> tuple[Offer, ...]:
    """What a source last said is for rent, scopes in alphabetical order, each in the order of its part.

    Only of the given providers, letter case aside, and GPUs, named as in the offers; empty for all.

    Raises:
        StoreError: the database cannot be read.
    """
    columns = [_OFFERS[name] for name in (*_PLAIN, *_SPOT)]
    wanted = select(*columns).where(_OFFERS.pull_source == source)
    if providers:
        wanted = wanted.where(func.lower(_OFFERS.provider).in_(map(str.lower, providers)))
    if gpus:
        wanted = wanted.where(_OFFERS.gpu.in_(gpus))
    ordered = wanted.order_by(_OFFERS.pull_scope, _OFFERS.position)
    with reading(store) as connection:
        rows = connection.execute(ordered).all()
    return tuple(
        Offer(**dict(zip(_PLAIN, row, strict=False)), spot_usd_per_h=_quantiles(*row[-len(_SPOT) :]))
        for row in rows
    )


def covered_places(store: Store, source: str) -> frozenset[tuple[str, str, Market]]:
    """Provider, region and market of the current offers of a source.

    Raises:
        StoreError: the database cannot be read.
    """
    places = select(_OFFERS.provider, _OFFERS.region, _OFFERS.market).distinct()
    with reading(store) as connection:
        rows = connection.execute(places.where(_OFFERS.pull_source == source))
        return frozenset((provider, region, market) for provider, region, market in rows)


def pulls(store: Store, source: str | None = None) -> tuple[Pull, ...]:
    """The last pull of each scope of one source or all, in alphabetical order.

    Raises:
        StoreError: the database cannot be read.
    """
    wanted = select(schema.pulls).order_by(_PULLS.source, _PULLS.scope)
    if source is not None:
        wanted = wanted.where(_PULLS.source == source)
    with reading(store) as connection:
        return tuple(map(_pull, connection.execute(wanted).mappings()))


def _pull(row: RowMapping) -> Pull:
    place = None
    if row["place"]:
        provider, region, market = row["place"]
        place = (provider, region, Market(market))
    return Pull(**{**row, "place": place})


def _is_overtaken(connection: Connection, source: str, scope: str, at: datetime) -> bool:
    """Whether a question asked after ``at`` was answered already; true until the writer commits.

    An answer from much later tells of a wrong clock, and must not keep the truth out.
    """
    own = (_PULLS.source == source) & (_PULLS.scope == scope)
    later = select(_PULLS.scope).where(
        own, _PULLS.succeeded_at > at, _PULLS.succeeded_at <= at + LONGEST_REFRESH
    )
    return connection.scalar(later) is not None


def _note(connection: Connection, source: str, scope: str, values: dict[str, object]) -> None:
    first: dict[str, object] = {"source": source, "scope": scope, "num_offers": 0}
    first |= dict.fromkeys(("gaps", "place", "unpriced"), ())
    noted = insert_into(connection, schema.pulls).values(first | values)
    connection.execute(noted.on_conflict_do_update(index_elements=["source", "scope"], set_=values))


def _check(offer: Offer) -> None:
    what = f"{offer.provider} {offer.instance_type} in {offer.region}"
    for price in (offer.list_usd_per_h, offer.usd_per_h):
        check_quote(price, offer.retrieved_at, what)


def _columns(offer: Offer) -> dict[str, object]:
    spot = offer.spot_usd_per_h
    quantiles = (None, None, None) if spot is None else (spot.p10, spot.p50, spot.p90)
    return {name: getattr(offer, name) for name in _PLAIN} | dict(zip(_SPOT, quantiles, strict=True))


def _quantiles(p10: float | None, p50: float | None, p90: float | None) -> Interval | None:
    return None if p10 is None or p50 is None or p90 is None else Interval(p10=p10, p50=p50, p90=p90)
