"""The database of the settings -> what a report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from advisor.core.limits import EARLIEST

if TYPE_CHECKING:
    from advisor.config.settings import StoreSettings
    from advisor.core.values import PricePoint
    from advisor.review.period import Period, Scope
    from advisor.review.team_review import Records
    from advisor.store.handle import Store
    from advisor.store.ledger import LedgerEntry, Run


def records_of(database: StoreSettings, period: Period, scope: Scope) -> Records | None:
    """What the store holds of a period; None if there is no store, or nothing was ever recorded.

    Raises:
        StoreError: the database cannot be read.
    """
    from advisor.review.budgets import MOST_WEEKS
    from advisor.review.period import month_of
    from advisor.review.team_review import Records, runs_of
    from advisor.store.database import open_store

    store = open_store(database.url, must_exist=True)
    if store is None:
        return None
    from advisor.store.ledger import (
        impossible_recommendations,
        impossible_runs,
        recommendation_ids,
        recommendations,
        runs,
    )

    earliest = min(period.since, month_of(period.until).since, period.until - timedelta(weeks=MOST_WEEKS))
    with store:
        recorded = runs(store, since=max(earliest, EARLIEST))
        given = recommendations(store, since=period.since)
        impossible = (*impossible_runs(store, since=period.since), *impossible_recommendations(store))
        if not (recorded or given or impossible) and not (
            recommendation_ids(store) or runs(store, since=EARLIEST)
        ):
            return None
        ours = runs_of(recorded, period, scope)
        return Records(
            runs=recorded,
            recommendations=tuple(entry for entry in given if period.holds(entry.at)),
            advised=_advised(store, ours, given),
            prices=_prices(store, ours, period),
            impossible=impossible,
        )


def _advised(store: Store, runs: Sequence[Run], given: Sequence[LedgerEntry]) -> Mapping[str, LedgerEntry]:
    """Recommendations by id: those given, and older ones that runs followed."""
    from advisor.store.ledger import find_recommendation

    advised = {entry.id: entry for entry in given}
    older = {run.recommendation_id for run in runs if run.recommendation_id is not None} - advised.keys()
    for entry_id in sorted(older):
        entry = find_recommendation(store, entry_id)
        if entry is not None:
            advised[entry.id] = entry
    return advised


def _prices(store: Store, runs: Sequence[Run], period: Period) -> Mapping[str, Sequence[PricePoint]]:
    """Points by GPU of what runs rented, as the period sees them."""
    from advisor.pricing.price_history import seen_from
    from advisor.store.pulls import price_points

    rented: dict[str, list[Run]] = {}
    for run in runs:
        if run.market is not None:
            rented.setdefault(run.gpu, []).append(run)
    return {
        gpu: tuple(
            point
            for point in seen_from(
                price_points(
                    store,
                    gpus=(gpu,),
                    providers=sorted({run.provider for run in group}),
                    markets=sorted({run.market for run in group if run.market is not None}),
                    since=period.since,
                ),
                period.since,
            )
            if point.observed_at < period.until
        )
        for gpu, group in rented.items()
    }
