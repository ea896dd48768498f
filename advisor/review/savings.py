"""What predictions were worth: their accuracy, and what following advice saved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from advisor.core.iterables import grouped
from advisor.core.units import DAY_S, HOUR_S
from advisor.core.values import Market, Plan, Quantiles, RunStatus

if TYPE_CHECKING:
    from advisor.store.ledger import LedgerEntry, Run


EXPECTED_SHARE = 0.9
"""Of runs that stay within a p90."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A run that did what was recommended, as it was predicted and as it was."""

    run: Run
    predicted_s: Quantiles
    """Of the time that was measured: training, or also wait and start-up where an older recommendation does
    not distinguish them."""
    actual_s: float
    predicted_usd: Quantiles
    actual_usd: float | None
    """None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionRecord:
    """How well predictions held."""

    num: int
    num_within_p90: int
    """Runs at or below the predicted p90; ``EXPECTED_SHARE`` of them are expected to be."""
    num_within_p50: int
    """At or below the median."""
    median_ratio: float
    """Of what was to what was predicted."""

    @property
    def expected_within_p90(self) -> float:
        """How many should be."""
        return EXPECTED_SHARE * self.num


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Predicted against actual; a record is None where there is nothing to compare."""

    comparisons: tuple[Comparison, ...]
    time: PredictionRecord | None
    cost: PredictionRecord | None
    by_gpu: Mapping[str, PredictionRecord]
    num_elsewhere: int
    """Runs that followed a recommendation on another machine than it named."""


def accuracy_of(runs: Iterable[Run], advised: Mapping[str, LedgerEntry]) -> Accuracy:
    """How recommendations held for the runs that finished."""
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
    by_gpu = grouped(comparisons, lambda one: one.run.gpu)
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
    """What a run of it should take once its command starts, where the recommendation distinguishes that."""
    if entry.iteration_s is None or entry.num_iterations is None:
        return entry.time_s
    return Quantiles(
        p50=entry.iteration_s.p50 * entry.num_iterations, p90=entry.iteration_s.p90 * entry.num_iterations
    )


def _machine(thing: Run | LedgerEntry) -> tuple[str, str, int, str | None]:
    return thing.provider, thing.gpu, thing.num_gpus, thing.market


def _times(comparisons: Iterable[Comparison]) -> list[tuple[Quantiles, float]]:
    return [(one.predicted_s, one.actual_s) for one in comparisons]


def _record(pairs: Sequence[tuple[Quantiles, float]]) -> PredictionRecord | None:
    if not pairs:
        return None
    ratios = [actual / predicted.p50 for predicted, actual in pairs if predicted.p50 > 0]
    return PredictionRecord(
        num=len(pairs),
        num_within_p90=sum(actual <= predicted.p90 for predicted, actual in pairs),
        num_within_p50=sum(actual <= predicted.p50 for predicted, actual in pairs),
        median_ratio=median(ratios) if ratios else 1.0,
    )


LEAST_RUNS = 3
"""Runs on as many days after which a job counts as one that comes again."""
LEAST_SHARE = 0.05
"""Of its cost that must be saved to be worth a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """A script of a project that ran again and again."""

    project: str
    script: str
    runs: tuple[Run, ...]
    """That finished at a known cost, in order of time."""
    every_s: float
    """Median time between starts."""
    usd: float
    entry: LedgerEntry | None
    """The newest recommendation that tells how long the job takes elsewhere; None without one."""
    slower: float
    """By how much its runs exceeded the prediction, 1 or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """A job that costs less elsewhere."""

    job: Recurring
    plan: Plan
    time_s: Quantiles
    """Wait, start-up and training there."""
    usd: Quantiles
    """Of a run there at today's prices; its p90 is below what a run costs now."""
    deadline_s: float | None

    @property
    def share(self) -> float:
        """Of the cost of a run that is saved."""
        return 1 - self.usd.p50 / self.job.usd

    @property
    def period_usd(self) -> float:
        """What its runs would have saved."""
        return (self.job.usd - self.usd.p50) * len(self.job.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class TodaysMarket:
    """What is for rent today."""

    plans: Sequence[Plan]
    """That jobs which come again could take."""
    is_allowed: Callable[[Plan], bool]
    """Whether a policy lets a plan be."""
    lasting: Callable[[Plan, Quantiles], tuple[Quantiles, Quantiles]]
    """Seconds until a job is done on a plan and seconds billed, of those that it trains."""


def recurring_jobs(runs: Iterable[Run], advised: Mapping[str, LedgerEntry]) -> tuple[Recurring, ...]:
    """Jobs that came again, the dearest first."""
    groups = grouped(
        (run for run in runs if run.script and run.status is RunStatus.FINISHED and run.cost_usd),
        lambda run: (run.project, run.script),
    )
    newest: dict[tuple[str, str], LedgerEntry] = {}
    for entry in sorted(advised.values(), key=lambda entry: entry.at):
        if entry.alternatives:
            newest[entry.project, entry.script] = entry
    jobs = [
        _recurring(group, newest.get(key), advised)
        for key, group in groups.items()
        if len({run.started_at.date() for run in group}) >= LEAST_RUNS
    ]
    return tuple(sorted(jobs, key=lambda job: (-job.usd * len(job.runs), job.project, job.script)))


def _recurring(
    runs: Sequence[Run], entry: LedgerEntry | None, advised: Mapping[str, LedgerEntry]
) -> Recurring:
    starts = [run.started_at for run in runs]
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(starts)]
    ratios = [
        run.duration_s / predicted_s(advice).p50
        for run, advice in with_advice(runs, advised)
        if run.duration_s is not None and run.gpu == advice.gpu
    ]
    return Recurring(
        project=runs[0].project,
        script=runs[0].script,
        runs=tuple(runs),
        every_s=median(gaps),
        usd=median(run.cost_usd for run in runs if run.cost_usd is not None),
        entry=entry,
        # A prediction that was too short flatters every machine; one that was too long is left as it is.
        slower=max(1.0, median(ratios)) if len(ratios) >= LEAST_RUNS else 1.0,
    )


def savings_of(
    jobs: Iterable[Recurring], market: TodaysMarket
) -> tuple[tuple[Saving, ...], tuple[Recurring, ...]]:
    """The best saving of each job that has one, and the jobs that cannot be priced elsewhere.

    As a recommendation does, it takes prices that someone quoted, counts their median, and asks that the p90
    of cost and time hold, too.
    """
    by_gpus = grouped(
        (
            plan
            for plan in market.plans
            if plan.price is not None and not plan.price.is_guess and plan.blocked is None
        ),
        lambda plan: (plan.gpu, plan.num_gpus),
    )
    savings: list[Saving] = []
    unpriced: list[Recurring] = []
    for job in jobs:
        there = list(_elsewhere(job, by_gpus, market))
        if not there:
            unpriced.append(job)
        cheaper = (one for one in there if _is_worth_it(one) and market.is_allowed(one.plan))
        best = min(cheaper, key=lambda one: (one.usd.p50, one.plan.id), default=None)
        savings += [] if best is None else [best]
    return tuple(sorted(savings, key=lambda one: -one.period_usd)), tuple(unpriced)


def _elsewhere(
    job: Recurring, by_gpus: Mapping[tuple[str, int], Collection[Plan]], market: TodaysMarket
) -> Iterator[Saving]:
    if job.entry is None:
        return
    for alternative in job.entry.alternatives:
        for plan in by_gpus.get((alternative.gpu, alternative.num_gpus), ()):
            if plan.offer is not None and plan.offer.market in _markets(job):
                train_s = Quantiles(
                    p50=alternative.train_p50_s * job.slower, p90=alternative.train_p90_s * job.slower
                )
                yield _saving(job, plan, *market.lasting(plan, train_s))


def _markets(job: Recurring) -> Collection[Market]:
    """The terms that the job has lived with: it is unknown whether another one survives spot machines."""
    return {run.market for run in job.runs if run.market is not None}


def _saving(job: Recurring, plan: Plan, done_s: Quantiles, billed_s: Quantiles) -> Saving:
    entry, price = job.entry, plan.price
    assert entry is not None  # noqa: S101 - who calls has looked
    assert price is not None  # noqa: S101
    wait = plan.wait_s or Quantiles(p50=0.0, p90=0.0)
    once = plan.egress_usd + plan.transfer_usd

    def usd(trained_s: float, usd_per_h: float) -> float:
        on_s = max(plan.startup_s + trained_s, plan.minimum_billed_s)
        return on_s / HOUR_S * (usd_per_h + plan.storage_usd_per_h) + once

    return Saving(
        job=job,
        plan=plan,
        time_s=Quantiles(
            p50=wait.p50 + plan.startup_s + done_s.p50, p90=wait.p90 + plan.startup_s + done_s.p90
        ),
        usd=Quantiles(p50=usd(billed_s.p50, price.usd_per_h.p50), p90=usd(billed_s.p90, price.usd_per_h.p90)),
        deadline_s=entry.deadline_s,
    )


def _is_worth_it(saving: Saving) -> bool:
    in_time = saving.deadline_s is None or saving.time_s.p90 <= saving.deadline_s
    return in_time and saving.usd.p90 < saving.job.usd and saving.share >= LEAST_SHARE


def rhythm(every_s: float) -> str:
    """How often a job comes, as people name it.

    >>> rhythm(6.8 * DAY_S), rhythm(DAY_S), rhythm(30 * DAY_S), rhythm(3 * DAY_S), rhythm(60)
    ('weekly', 'daily', 'monthly', 'recurring', 'recurring')
    """
    for name, days in (("daily", 1), ("weekly", 7), ("monthly", 30)):
        if abs(every_s / DAY_S - days) <= 0.25 * days:
            return name
    return "recurring"
