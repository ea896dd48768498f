"""Runs beside what was predicted of them, and how well the intervals held."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from advisor.core.values import Quantiles, RunStatus

if TYPE_CHECKING:
    from advisor.store.ledger import LedgerEntry, Run

EXPECTED_SHARE = 0.9
"""Of runs that stay within a p90."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A run that did what was recommended, as it was predicted and as it was.

    Attributes:
        predicted_s: of the time that was measured: training, or also wait and start-up where an older
            recommendation does not tell them apart.
        actual_usd: None if nobody knows.
    """

    run: Run
    predicted_s: Quantiles
    actual_s: float
    predicted_usd: Quantiles
    actual_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """How well predictions held.

    Attributes:
        num_within_p90: runs at or below the predicted p90; ``EXPECTED_SHARE`` of them are expected to be.
        num_within_p50: at or below the median.
        median_ratio: of what was to what was predicted.
    """

    num: int
    num_within_p90: int
    num_within_p50: int
    median_ratio: float

    @property
    def expected_within_p90(self) -> float:
        """How many should be."""
        return EXPECTED_SHARE * self.num


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Predicted against actual; a record is None where there is nothing to compare.

    Attributes:
        by_gpu: records of times by GPU.
        num_elsewhere: runs that followed a recommendation on another machine than it named.
    """

    comparisons: tuple[Comparison, ...]
    time: Record | None
    cost: Record | None
    by_gpu: Mapping[str, Record]
    num_elsewhere: int


def accuracy_of(runs: Iterable[Run], advised: Mapping[str, LedgerEntry]) -> Accuracy:
    """How recommendations held for the runs that finished.

    Args:
        runs: of the report.
        advised: recommendations by id.
    """
    followed = with_advice(runs, advised)
    there = [(run, entry) for run, entry in followed if _machine(run) == _machine(entry)]
    comparisons = tuple(
        Comparison(
            run=run,
            predicted_s=predicted_s(entry),
            actual_s=run.duration_s,
            predicted_usd=entry.cost_usd,
            actual_usd=run.cost_usd,
        )
        for run, entry in there
        if run.status is RunStatus.FINISHED and run.duration_s is not None
    )
    by_gpu: dict[str, list[Comparison]] = {}
    for one in comparisons:
        by_gpu.setdefault(one.run.gpu, []).append(one)
    return Accuracy(
        comparisons=comparisons,
        time=_record(_times(comparisons)),
        cost=_record([(c.predicted_usd, c.actual_usd) for c in comparisons if c.actual_usd is not None]),
        by_gpu={gpu: record for gpu in sorted(by_gpu) if (record := _record(_times(by_gpu[gpu])))},
        num_elsewhere=len(followed) - len(there),
    )


def with_advice(
    runs: Iterable[Run], advised: Mapping[str, LedgerEntry]
) -> tuple[tuple[Run, LedgerEntry], ...]:
    """Runs that followed a recommendation, each with it."""
    pairs = ((run, advised.get(run.recommendation_id or "")) for run in runs)
    return tuple((run, entry) for run, entry in pairs if entry is not None)


def predicted_s(entry: LedgerEntry) -> Quantiles:
    """What a run of it should take once its command starts, where the recommendation tells that apart."""
    if entry.iteration_s is None or entry.num_iterations is None:
        return entry.time_s
    return Quantiles(
        p50=entry.iteration_s.p50 * entry.num_iterations, p90=entry.iteration_s.p90 * entry.num_iterations
    )


def _machine(thing: Run | LedgerEntry) -> tuple[str, str, int, str | None]:
    return thing.provider, thing.gpu, thing.num_gpus, thing.market


def _times(comparisons: Iterable[Comparison]) -> list[tuple[Quantiles, float]]:
    return [(one.predicted_s, one.actual_s) for one in comparisons]


def _record(pairs: Sequence[tuple[Quantiles, float]]) -> Record | None:
    if not pairs:
        return None
    ratios = [actual / predicted.p50 for predicted, actual in pairs if predicted.p50 > 0]
    return Record(
        num=len(pairs),
        num_within_p90=sum(actual <= predicted.p90 for predicted, actual in pairs),
        num_within_p50=sum(actual <= predicted.p50 for predicted, actual in pairs),
        median_ratio=median(ratios) if ratios else 1.0,
    )
