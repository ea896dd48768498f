"""The ledger's runs beside what was predicted for them, and what they say of the next prediction."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from advisor.core.errors import StoreError
from advisor.core.findings import Finding
from advisor.service.listening import Listener
from advisor.service.prices.live import now
from advisor.store.database import existing_store
from advisor.store.handle import Store

if TYPE_CHECKING:
    from advisor.config.settings import PredictSettings, StoreSettings
    from advisor.predict.interval import ComparedRun, Correction

MEMORY = timedelta(days=365)
"""Older runs say little of today's drivers and libraries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRuns:
    """What recorded runs say of predictions."""

    corrections: Mapping[str, Correction] = field(default_factory=dict)
    drifts: tuple[Finding, ...] = ()

    def drifts_on(self, gpus: Container[object]) -> tuple[Finding, ...]:
        """Those of these GPUs."""
        return tuple(drift for drift in self.drifts if drift.facts["gpu"] in gpus)


def past_runs(settings: PredictSettings, database: StoreSettings, listener: Listener) -> PastRuns:
    """What runs of a year say; nothing where ``predict.receipts`` is off or nothing is recorded.

    A database that cannot be read leaves predictions as they ship, with a warning.
    """
    if not settings.receipts:
        return PastRuns()
    try:
        with existing_store(database.url) as store:
            runs = compared_runs(store) if store else []
    except StoreError as error:
        listener.warn([f"predictions count no receipts: {error}"])
        return PastRuns()
    if not runs:
        return PastRuns()
    from advisor.predict.interval import corrections_of, drifts_of

    return PastRuns(corrections=corrections_of(runs), drifts=tuple(drifts_of(runs)))


def compared_runs(store: Store) -> list[ComparedRun]:
    """Runs that followed a recommendation on the GPUs that it named, in order of time."""
    from advisor.predict.interval import ComparedRun
    from advisor.store.ledger import recommendations, runs

    since = now() - MEMORY
    done = [run for run in runs(store, since=since) if run.step_s is not None and run.recommendation_id]
    if not done:
        return []
    # A run may follow advice that is older than it.
    entries = {entry.id: entry for entry in recommendations(store, since=since - MEMORY)}
    compared = []
    for run in done:
        entry = entries.get(run.recommendation_id or "")
        if entry is None or entry.iteration_s is None or not entry.uncorrected_p50_s or run.step_s is None:
            continue
        if (entry.gpu, entry.num_gpus) == (run.gpu, run.num_gpus) and run.step_s.p50 > 0:
            compared.append(
                ComparedRun(
                    gpu=run.gpu,
                    job=f"{run.project}/{run.script}",
                    measured_s=run.step_s.p50,
                    predicted_s=entry.iteration_s,
                    uncorrected_p50_s=entry.uncorrected_p50_s,
                )
            )
    return compared
