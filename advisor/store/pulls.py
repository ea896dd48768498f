"""What is for rent now, by source and scope, how the last pull of each scope went, and the history of prices.

The history is a list of points: times from which on a machine cost so much.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

import sqlalchemy as sa

from advisor.core.values import Interval, Market, Offer, PricePoint
from advisor.store import schema
from advisor.store.handle import Store
from advisor.store.transactions import insert_into, reading, selected, writing

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

LONGEST_REFRESH = timedelta(hours=1)
"""No two refreshes that overtake each other begin further apart."""
_OFFERS = schema.offers.c
_PULLS = schema.pulls.c
# Kept as they are; the quantiles of a spot price have a column each.
_PLAIN = tuple(field.name for field in dataclasses.fields(Offer) if field.name != "spot_usd_per_h")
_SPOT = ("spot_p10_usd_per_h", "spot_p50_usd_per_h", "spot_p90_usd_per_h")
_SERIES = schema.price_series.c
_POINTS = schema.price_points.c
_KEY = ("provider", "instance_type", "region", "zone", "market")
# A point to insert. Parameters must not be named like the columns.
_NEW = {column.name: sa.bindparam(f"new_{column.name}", type_=column.type) for column in _POINTS}
_REMEMBERED = (Market.ON_DEMAND, Market.SPOT)

_Key = tuple[str, str, str, str, Market]
"""Provider, instance type, region, zone ("" for the whole region), market."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """How asking a source about a scope went."""

    source: str
    scope: str
    num_offers: int
    """Of the last success; these are the current ones."""
    succeeded_at: datetime | None
    """When that was; None if it never did."""
    failed_at: datetime | None
    """The last failure since then, None if there was none."""
    failure: str | None
    """Why, in words."""
    gaps: tuple[str, ...]
    """What the last success lacked and why, in words."""
    place: tuple[str, str, Market] | None = None
    """Provider, region and market that the scope is, whole; None if it is something else."""
    unpriced: tuple[str, ...] = ()
    """Instance types that are for rent there without a known price."""


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
    price. `advisor.pricing.refresh.checked` has checked that prices can be some. Prices in ``history``
    that are known already stay as they are; ``at`` is when the source was asked. Nothing is done where the
    scope holds the answer to a later question, of up to an hour later.

    Raises StoreError: a time has no zone, or the database cannot be written.
    """
    noted = {"num_offers": len(offers), "succeeded_at": at, "failed_at": None, "failure": None}
    with writing(store) as connection:
        if _is_overtaken(connection, source, scope, at):
            return
        details = {"gaps": tuple(gaps), "place": place or (), "unpriced": tuple(unpriced)}
        _note(connection, source, scope, noted | details)
        held = (_OFFERS.pull_source == source) & (_OFFERS.pull_scope == scope)
        connection.execute(sa.delete(schema.offers).where(held))
        if offers:
            key = {"pull_source": source, "pull_scope": scope}
            rows = [key | {"position": position} | _columns(offer) for position, offer in enumerate(offers)]
            connection.execute(sa.insert(schema.offers), rows)
        _append_points(connection, source, offers, history)


def save_failure(store: Store, source: str, scope: str, failure: str, at: datetime) -> None:
    """Note that a scope could not be pulled; its offers stay, with the age they have.

    ``failure`` says why, in words and without secrets; ``at`` is when the source was asked. It is not noted
    where a later question was answered.

    Raises StoreError: the time has no zone, or the database cannot be written.
    """
    with writing(store) as connection:
        if not _is_overtaken(connection, source, scope, at):
            _note(connection, source, scope, {"failed_at": at, "failure": failure})


def current_offers(
    store: Store, source: str, *, providers: Sequence[str] = (), gpus: Sequence[str] = ()
) -> tuple[Offer, ...]:
    """What a source last said is for rent, scopes in alphabetical order, each in the order of its part.

    Only of the given providers, letter case aside, and GPUs, named as in the offers; empty for all.
    """
    columns = [_OFFERS[name] for name in (*_PLAIN, *_SPOT)]
    wanted = sa.select(*columns).where(_OFFERS.pull_source == source)
    if providers:
        wanted = wanted.where(sa.func.lower(_OFFERS.provider).in_(map(str.lower, providers)))
    if gpus:
        wanted = wanted.where(_OFFERS.gpu.in_(gpus))
    with reading(store) as connection:
        rows = connection.execute(wanted.order_by(_OFFERS.pull_scope, _OFFERS.position)).all()
    return tuple(
        Offer(**dict(zip(_PLAIN, row, strict=False)), spot_usd_per_h=_quantiles(*row[-len(_SPOT) :]))
        for row in rows
    )


def covered_places(store: Store, source: str) -> frozenset[tuple[str, str, Market]]:
    """Provider, region and market of the current offers of a source."""
    places = sa.select(_OFFERS.provider, _OFFERS.region, _OFFERS.market).distinct()
    wanted = places.where(_OFFERS.pull_source == source)
    return frozenset(selected(store, wanted, lambda row: (row["provider"], row["region"], row["market"])))


def pulls(store: Store, source: str | None = None) -> tuple[Pull, ...]:
    """The last pull of each scope of one source or all, in alphabetical order."""
    wanted = sa.select(schema.pulls).order_by(_PULLS.source, _PULLS.scope)
    if source is not None:
        wanted = wanted.where(_PULLS.source == source)

    def pull(row: sa.RowMapping) -> Pull:
        provider, region, market = row["place"] or ("", "", None)
        return Pull(**{**row, "place": (provider, region, Market(market)) if market else None})

    return selected(store, wanted, pull)


def _is_overtaken(connection: sa.Connection, source: str, scope: str, at: datetime) -> bool:
    """Whether a question asked after ``at`` was answered already; true until the writer commits.

    An answer from much later was noted by a wrong clock, and is replaced.
    """
    own = (_PULLS.source == source) & (_PULLS.scope == scope)
    later = sa.select(_PULLS.scope).where(
        own, _PULLS.succeeded_at > at, _PULLS.succeeded_at <= at + LONGEST_REFRESH
    )
    return connection.scalar(later) is not None


def _note(connection: sa.Connection, source: str, scope: str, values: dict[str, object]) -> None:
    first: dict[str, object] = {"source": source, "scope": scope, "num_offers": 0}
    first |= dict.fromkeys(("gaps", "place", "unpriced"), ())
    noted = insert_into(connection, schema.pulls).values(first | values)
    connection.execute(noted.on_conflict_do_update(index_elements=["source", "scope"], set_=values))


def _columns(offer: Offer) -> dict[str, object]:
    spot = offer.spot_usd_per_h
    quantiles = (None, None, None) if spot is None else (spot.p10, spot.p50, spot.p90)
    return {name: getattr(offer, name) for name in _PLAIN} | dict(zip(_SPOT, quantiles, strict=True))


def _quantiles(p10: float | None, p50: float | None, p90: float | None) -> Interval | None:
    return None if p10 is None or p50 is None or p90 is None else Interval(p10=p10, p50=p50, p90=p90)


def price_points(
    store: Store,
    *,
    sources: Sequence[str] = (),
    gpus: Sequence[str] = (),
    providers: Sequence[str] = (),
    instance_types: Sequence[str] = (),
    regions: Sequence[str] = (),
    markets: Sequence[Market] = (),
    since: datetime | None = None,
) -> tuple[PricePoint, ...]:
    """The history in order of time; an empty tuple or None sets no limit.

    Two sources may tell different prices of one machine: each point names its own. A GPU is known by the
    offers that came with the prices. ``since`` is the first moment that counts: of what began before, each
    series has its last point, whose price was in force then. Letter case of providers does not count.
    """
    columns = [*(_SERIES[name] for name in _KEY), _POINTS.usd_per_h, _POINTS.observed_at, _SERIES.source]
    wanted = sa.select(*columns).join(schema.price_series)
    limits: tuple[tuple[str, Sequence[str]], ...] = (
        ("source", sources), ("gpu", gpus), ("instance_type", instance_types),
        ("region", regions), ("market", markets),
    )  # fmt: skip
    for name, values in limits:
        if values:
            wanted = wanted.where(_SERIES[name].in_(values))
    if providers:
        wanted = wanted.where(sa.func.lower(_SERIES.provider).in_(map(str.lower, providers)))
    if since is not None:
        # When the price began that a series had then. It hangs on the series, not on the point: the database
        # finds it once a series, by the primary key.
        other = schema.price_points.alias().c
        begun = sa.select(sa.func.max(other.observed_at)).where(other.series_id == _SERIES.id)
        begun = begun.where(other.observed_at <= since).correlate(schema.price_series)
        # Two plain joins: for one whose begin differs by series PostgreSQL reads the whole history.
        later = wanted.where(_POINTS.observed_at > since)
        in_force = wanted.where(_POINTS.observed_at == begun.scalar_subquery())
        found = sa.union_all(later, in_force).subquery()
        columns = [*found.c]
        wanted = sa.select(*columns)
    ordered = wanted.order_by("observed_at", *columns)
    return selected(store, ordered, lambda row: PricePoint(**{**row, "zone": row["zone"] or None}))


def forget_points(store: Store, before: datetime) -> int:
    """Drop old prices, but the newest of each series, which is still the last word; how many were dropped."""
    first, last = (
        sa.select(end(_POINTS.observed_at)).where(_POINTS.series_id == _SERIES.id).scalar_subquery()
        for end in (sa.func.min, sa.func.max)
    )
    series = sa.select(_SERIES.id.label("one"), last.label("newest")).where(first < before, first < last)
    # One by one, by the primary key: in one statement PostgreSQL reads the whole history.
    old = sa.delete(schema.price_points).where(
        _POINTS.series_id == sa.bindparam("one"),
        _POINTS.observed_at < sa.bindparam("newest"),
        _POINTS.observed_at < before,
    )
    with writing(store) as connection:
        found = [dict(row) for row in connection.execute(series).mappings()]
        return connection.execute(old, found).rowcount if found else 0


def _append_points(
    connection: sa.Connection, source: str, offers: Sequence[Offer], history: Sequence[PricePoint]
) -> None:
    """Add what is new of a part: its history, then the prices of its offers where they changed."""
    quoted = _quoted(offers)
    gpus = {(offer.provider, offer.instance_type): offer.gpu for offer in offers}
    ids = _series_ids(connection, source, {_key(point) for point in (*history, *quoted)}, gpus)
    new = insert_into(connection, schema.price_points)
    for points, insert in ((history, new.values(_NEW)), (quoted, _where_changed(new))):
        if points:
            ordered = sorted(points, key=lambda one: (ids[_key(one)], one.observed_at, one.usd_per_h))
            rows = [
                {
                    "new_series_id": ids[_key(p)],
                    "new_observed_at": p.observed_at,
                    "new_usd_per_h": p.usd_per_h,
                }
                for p in ordered
            ]
            connection.execute(insert.on_conflict_do_nothing(), rows)


def _quoted(offers: Sequence[Offer]) -> tuple[PricePoint, ...]:
    """Prices of offers as points; the cheapest stands for several of one machine and place."""
    cheapest: dict[_Key, PricePoint] = {}
    for offer in offers:
        if offer.market not in _REMEMBERED:
            continue
        point = PricePoint(
            provider=offer.provider,
            instance_type=offer.instance_type,
            region=offer.region,
            zone=offer.zone,
            market=offer.market,
            usd_per_h=offer.usd_per_h,
            observed_at=offer.retrieved_at,
        )
        key = _key(point)
        cheapest[key] = min(cheapest.get(key, point), point, key=lambda one: (one.usd_per_h, one.observed_at))
    return tuple(cheapest.values())


def _where_changed(new: postgresql.Insert | sqlite.Insert) -> postgresql.Insert | sqlite.Insert:
    """An INSERT of a point whose price is not the one that its series had at that time."""
    series_id, observed_at, usd_per_h = _NEW.values()
    in_force = (
        sa.select(_POINTS.usd_per_h)
        .where(_POINTS.series_id == series_id, _POINTS.observed_at <= observed_at)
        .order_by(_POINTS.observed_at.desc())
        .limit(1)
        .scalar_subquery()
    )
    changed = sa.select(*_NEW.values()).where(usd_per_h.is_distinct_from(in_force))
    return new.from_select(list(_NEW), changed)


def _series_ids(
    connection: sa.Connection, source: str, keys: set[_Key], gpus: Mapping[tuple[str, str], str]
) -> dict[_Key, int]:
    """Ids of the series, made where they are missing; a GPU that was unknown or renamed is noted."""
    known = _known_series(connection, source, keys)
    missing = sorted(keys - known.keys())
    if missing:
        rows = [dict(zip(_KEY, key, strict=True), source=source, gpu=gpus.get(key[:2])) for key in missing]
        connection.execute(sa.insert(schema.price_series), rows)
        known |= _known_series(connection, source, set(missing))
    renamed = [
        {"series_id": number, "new_gpu": gpus[key[:2]]}
        for key, (number, gpu) in known.items()
        if gpus.get(key[:2], gpu) != gpu
    ]
    if renamed:
        rename = sa.update(schema.price_series).where(_SERIES.id == sa.bindparam("series_id"))
        connection.execute(rename.values(gpu=sa.bindparam("new_gpu")), renamed)
    return {key: number for key, (number, _) in known.items()}


def _known_series(
    connection: sa.Connection, source: str, keys: set[_Key]
) -> dict[_Key, tuple[int, str | None]]:
    columns = [_SERIES[name] for name in ("id", "gpu", *_KEY)]
    # By region, since a list of thousands of keys would be too long for one statement.
    regions = {key[2] for key in keys}
    wanted = sa.select(*columns).where(_SERIES.source == source, _SERIES.region.in_(regions))
    rows = connection.execute(wanted)
    return {cast("_Key", tuple(key)): (number, gpu) for number, gpu, *key in rows if tuple(key) in keys}


def _key(point: PricePoint) -> _Key:
    return point.provider, point.instance_type, point.region, point.zone or "", point.market
