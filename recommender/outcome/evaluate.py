"""Workloads x plans -> options: time, cost, odds and risk of one job."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from advisor.core.findings import Finding
from advisor.core.findings.about_options import RemovedByBudget, RemovedByDeadline
from advisor.core.input_time import fed, reading
from advisor.core.values import (
    Interval,
    IterationEstimate,
    Job,
    Layout,
    Means,
    Option,
    Plan,
    Quantiles,
    Workload,
)
from recommender.outcome.bill import TOLERANCE, breakdown_usd
from recommender.outcome.draws import Array, Draws, quantiles_of_rows
from recommender.outcome.feeding import read_s, reading_note, surer_read, vcpus_per_gpu
from recommender.outcome.outcomes import CHUNK, Costs, DrawnRun, costs_of, runs_of, work_of
from recommender.outcome.reasons import changes_of, queue_removals, reasons_of, refusal, restarts_of, risk_of
from recommender.outcome.spot import SpotTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """An option with the draws [n] behind its figures."""

    option: Option
    train_s: Array
    time_s: Array
    cost_usd: Array
    """As it counts in comparisons: that of a guessed price at its p90."""
    other: Option | None = None
    """The same plan the other way, where checkpoints make a difference; None without one."""


class _Times(NamedTuple):
    """Of one run: quantiles and means of its draws, and the odds of the deadline."""

    run: DrawnRun
    train_s: Quantiles
    time_s: Quantiles
    mean_train_s: float
    mean_time_s: float
    p_in_time: float | None


class _Figures(NamedTuple):
    """Of one plan: quantiles and means of its draws, and the odds of the budget."""

    times: _Times
    cost_usd: Quantiles
    steady_usd: Quantiles
    counted_usd: Quantiles
    mean_usd: float
    mean_counted_usd: float
    p_in_budget: float | None
    drawn_usd: Array
    """As it counts, [n]."""
    own_share: float

    @property
    def expected(self) -> Means:
        """The means, and the wait that is left of them."""
        time_s, startup_s = self.times.mean_time_s, self.times.run.startup_s
        startup_s = float(startup_s.mean()) if isinstance(startup_s, np.ndarray) else startup_s
        return Means(
            wait_s=time_s - self.times.mean_train_s - startup_s if math.isfinite(time_s) else 0.0,
            time_s=time_s,
            cost_usd=self.mean_usd,
            counted_usd=self.mean_counted_usd,
            own_share=self.own_share,
        )


class _Fed(NamedTuple):
    """A workload on a kind of machine; plans with equal ones train alike."""

    workload: Workload
    estimate: IterationEstimate
    """The workload's, fed by the machine's vCPUs and by what holds the data."""
    read_s: Interval | None
    """Seconds to read what an iteration takes; None where nothing is read."""
    work_s: Array
    """Draws [n] of the training without preemptions."""


def evaluate_all(
    workloads: Iterable[Workload],
    plans: Sequence[Plan],
    job: Job,
    draws: Draws,
    terms_of: Callable[[Plan], SpotTerms],
) -> Iterator[Judged]:
    """What each plan means for the job; plans with the same GPUs share their draws.

    Workloads are of one variant of the script, one for each GPU and layout of the plans. A plan of an option
    may differ from the one given: it copies its data to its own disks first where that is faster.
    """
    feed = _feeding(workloads, draws)

    def p90_s(plan: Plan) -> float:
        fed = feed(plan)
        return fed.workload.iterations * fed.estimate.iteration_s.p90

    plans = [surer_read(plan, p90_s, terms_of) for plan in plans]
    terms, machines = [terms_of(plan) for plan in plans], [feed(plan) for plan in plans]
    figures = _figures_of(plans, [machine.work_s for machine in machines], terms, draws, job)
    for plan, machine, spot, own in zip(plans, machines, terms, figures, strict=True):
        option, run = _option(plan, machine, job, own, spot), own.times.run
        yield Judged(option=option, train_s=run.train_s, time_s=run.time_s, cost_usd=own.drawn_usd)


def _feeding(workloads: Iterable[Workload], draws: Draws) -> Callable[[Plan], _Fed]:
    """The workload of a plan on its machine, worked out once for machines that are alike."""
    by_layout = {(workload.gpu.name, workload.layout): workload for workload in workloads}

    @cache
    def alike(gpu: str, layout: Layout, vcpus: float, read_s: Interval | None) -> _Fed:
        workload = by_layout[gpu, layout]
        estimate = fed(workload.estimate, vcpus)
        estimate = estimate if read_s is None else reading(estimate, read_s)
        return _Fed(workload, estimate, read_s, work_of(estimate, workload.iterations, draws))

    def feed(plan: Plan) -> _Fed:
        per_epoch = by_layout[plan.gpu, plan.layout].iterations_per_epoch
        return alike(plan.gpu, plan.layout, vcpus_per_gpu(plan), read_s(plan, per_epoch))

    return feed


def _figures_of(
    plans: Sequence[Plan], works_s: Sequence[Array], terms: Sequence[SpotTerms], draws: Draws, job: Job
) -> Iterator[_Figures]:
    """Of each plan, made once for those that are alike: a cluster may have hundreds of such nodes."""
    runs = runs_of(plans, works_s, terms, draws)
    times = dict(_times_of(list({id(run): run for run in runs}.values()), job))
    keys: list[object] = []
    for plan, run in zip(plans, runs, strict=True):
        # Machines of one's own may be alike by their draws and their bill; a rented one is like none.
        bill = plan.usd_per_h, plan.minimum_billed_s, plan.billed_step_s, plan.storage_usd_per_h
        own = id(run), *bill, plan.egress_usd, plan.transfer_usd
        keys.append(own if plan.offer is None and plan.price is None else id(plan))
    distinct = list({key: i for i, key in enumerate(keys)}.values())
    figures: dict[object, _Figures] = {}
    for start in range(0, len(distinct), CHUNK):
        members = distinct[start : start + CHUNK]
        chunk, of_chunk = [plans[i] for i in members], [runs[i] for i in members]
        costs = costs_of(chunk, of_chunk, draws)
        timed = [times[id(run)] for run in of_chunk]
        figures.update(zip((keys[i] for i in members), _figures(timed, costs, job), strict=True))
    return (figures[key] for key in keys)


def _times_of(runs: Sequence[DrawnRun], job: Job) -> Iterator[tuple[int, _Times]]:
    for start in range(0, len(runs), CHUNK):
        chunk = runs[start : start + CHUNK]
        train_s, time_s = np.array([run.train_s for run in chunk]), np.array([run.time_s for run in chunk])
        columns = (
            quantiles_of_rows(train_s), quantiles_of_rows(time_s), train_s.mean(axis=1).tolist(),
            time_s.mean(axis=1).tolist(), _odds(np.array([run.due_s for run in chunk]), job.deadline_s),
        )  # fmt: skip
        yield from ((id(row[0]), _Times(*row)) for row in zip(chunk, *columns, strict=True))


def _figures(times: Sequence[_Times], costs: Costs, job: Job) -> Iterator[_Figures]:
    usd = quantiles_of_rows(costs.usd)
    columns = (
        usd, _quantiles_beside(costs.steady_usd, costs.usd, usd),
        _quantiles_beside(costs.counted_usd, costs.usd, usd), costs.usd.mean(axis=1).tolist(),
        costs.counted_usd.mean(axis=1).tolist(), _odds(costs.usd, job.budget_usd), costs.counted_usd,
        costs.own_shares,
    )  # fmt: skip
    return itertools.starmap(_Figures, zip(times, *columns, strict=True))


def _quantiles_beside(values: Array, others: Array, known: Sequence[Quantiles]) -> list[Quantiles]:
    """Of each row [plans, n]: most are those of the others, which are known."""
    quantiles = [*known]
    differing = [] if values is others else np.flatnonzero((values != others).any(axis=1)).tolist()
    for i, own in zip(differing, quantiles_of_rows(values[differing]), strict=True):
        quantiles[i] = own
    return quantiles


def _odds(values: Array, limit: float | None) -> Sequence[float | None]:
    if limit is None:
        return [None] * len(values)
    odds: list[float | None] = np.mean(values <= limit * (1 + TOLERANCE), axis=1).tolist()
    return odds


def _option(plan: Plan, machine: _Fed, job: Job, figures: _Figures, terms: SpotTerms) -> Option:
    workload, estimate = machine.workload, machine.estimate
    times, expected = figures.times, figures.expected
    work_s, usd = workload.iterations * estimate.iteration_s.p50, figures.cost_usd.p50
    return Option(
        plan=plan,
        estimate=estimate,
        iterations=workload.iterations,
        wait_s=plan.wait_s,
        train_s=times.train_s,
        time_s=times.time_s,
        cost_usd=figures.cost_usd,
        counted_usd=figures.counted_usd.p50,
        expected=expected,
        cost_breakdown_usd=breakdown_usd(plan, usd, work_s, usd - figures.steady_usd.p50),
        p_within_budget=figures.p_in_budget,
        p_within_deadline=times.p_in_time,
        risk=risk_of(plan, terms, expected.run_days),
        script_changes=tuple(changes_of(plan, workload, terms, work_s)),
        reasons=tuple(_reasons(plan, machine, work_s, terms, job, figures)),
        what_if=workload.variant.name,
    )


def _reasons(
    plan: Plan, machine: _Fed, work_s: float, terms: SpotTerms, job: Job, figures: _Figures
) -> Iterator[Finding]:
    median_s, p_budget, p_deadline = figures.times.time_s.p50, figures.p_in_budget, figures.times.p_in_time
    refused = refusal(
        plan, work_s, terms, median_time_s=median_s, deadline_s=job.deadline_s, p_within_deadline=p_deadline
    )
    if refused is not None:
        yield refused
    if job.budget_usd is not None and p_budget is not None and p_budget < job.confidence:
        yield RemovedByBudget(cost_usd=figures.cost_usd.p50, budget_usd=job.budget_usd, p=p_budget)
    if job.deadline_s is not None and p_deadline is not None and p_deadline < job.confidence:
        yield RemovedByDeadline(time_s=median_s, deadline_s=job.deadline_s, p=p_deadline)
    yield from queue_removals(plan, figures.times.train_s.p90)
    yield from restarts_of(plan, machine.workload.script, terms)
    yield from reasons_of(plan, machine.workload, machine.estimate)
    note = reading_note(plan, machine.estimate, machine.read_s)
    if note is not None:
        yield note
