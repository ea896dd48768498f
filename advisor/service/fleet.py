"""What a sweep says of a whole fleet: the best of each job, where a month's money goes, what to commit to."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fnmatch import fnmatch
from itertools import accumulate, pairwise, takewhile
from typing import TYPE_CHECKING

from advisor.core.errors import StoreError
from advisor.core.units import HOUR_S, HOURS_PER_MONTH
from advisor.core.values import Market
from advisor.service.prices.live import now
from advisor.service.sweeping import Choice, Grid, SweepJob, Swept
from advisor.store.database import existing_store

if TYPE_CHECKING:
    from advisor.config.settings import StoreSettings
    from advisor.store.ledger import Run

# Options that say where to look; jobs that differ by them alone are one job.
_WHERE = ("--gpu", "--provider", "--region", "--market", "--max-nodes")
_YEAR = timedelta(days=365)
_LEAST_RECORDED = timedelta(days=30)
_LEAST_BUSY = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A machine for a job, and the arguments, such as batch and precision, that it is for."""

    job: SweepJob
    batch_size: int | None
    choice: Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetJob:
    """Combinations of a grid that are one job: the same script and limits, whatever its arguments."""

    script: str
    wants: tuple[str, ...]
    """Options that say what is wanted, such as epochs, deadline and policy."""
    runs_per_month: float
    num_tried: int
    """Combinations."""
    candidates: tuple[Candidate, ...]
    """Of known cost, none both cheaper and faster than another; the cheapest first."""

    @property
    def best(self) -> Candidate:
        """The cheapest."""
        return self.candidates[0]

    def usd(self, candidate: Candidate) -> float:
        """A month of it as `advisor recommend` compares, with the work on the script first."""
        return _month_usd(candidate.choice, self.runs_per_month)

    def hours(self, candidate: Candidate) -> float:
        """A month of it."""
        return self.runs_per_month * candidate.choice.time_p50_s / HOUR_S


def _month_usd(choice: Choice, runs: float) -> float:
    return runs * choice.counted_usd + choice.work_usd


def picks_of(swept: Iterable[Swept], grid: Grid) -> tuple[FleetJob, ...]:
    """Jobs that have an answer of known cost; the dearest month first."""
    groups: dict[tuple[str, tuple[str, ...]], list[Swept]] = defaultdict(list)
    for one in swept:
        pairs = zip(one.job.options[::2], one.job.options[1::2], strict=True)
        wants = tuple(word for pair in pairs if pair[0] not in _WHERE for word in pair)
        is_script = one.job.subject.endswith((".py", ".ipynb"))
        script = one.job.subject if is_script else one.advice.script or one.job.subject
        if any(choice.usd_per_h is not None for choice in _choices(one)):
            groups[script, wants].append(one)
    picks = [_pick(script, wants, of, grid) for (script, wants), of in groups.items()]
    return tuple(sorted(picks, key=lambda pick: -pick.usd(pick.best)))


def _choices(one: Swept) -> set[Choice]:
    return {*one.advice.frontier, *([one.advice.take] if one.advice.take else ())}


def _pick(script: str, wants: tuple[str, ...], of: Sequence[Swept], grid: Grid) -> FleetJob:
    # Whole parts of a path: train.py is not pretrain.py.
    subject = f"/{of[0].job.subject}"
    named = (num for pattern, num in grid.runs_per_month.items() if fnmatch(subject, f"*/{pattern}"))
    runs = next(named, 1.0)
    all_of_them = [
        Candidate(job=one.job, batch_size=one.advice.batch_size, choice=choice)
        for one in of
        for choice in _choices(one)
        if choice.usd_per_h is not None
    ]
    all_of_them.sort(
        key=lambda one: (_month_usd(one.choice, runs), one.choice.time_p50_s, one.choice.plan, one.job.name)
    )
    fastest = accumulate((one.choice.time_p50_s for one in all_of_them), min, initial=math.inf)
    return FleetJob(
        script=script,
        wants=wants,
        runs_per_month=runs,
        num_tried=len(of),
        candidates=tuple(
            one for one, best_s in zip(all_of_them, fastest, strict=False) if one.choice.time_p50_s < best_s
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A job that takes a faster machine."""

    pick: FleetJob
    to: Candidate
    usd: float
    """What a month of it costs more."""
    hours: float
    """How much shorter a month of its runs is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSpending:
    """A month of the fleet within a budget: the least hours for the money."""

    budget_usd: float
    cheapest_usd: float
    """With the cheapest machine for each job."""
    cheapest_hours: float
    moves: tuple[Move, ...]
    """In the order of hours saved for a dollar, while they are affordable."""
    next_moves: tuple[Move, ...]
    """Those that more money would buy, in the same order."""
    hours_above_best: float
    """No choice of machines within the budget is shorter by more than this."""

    @property
    def usd(self) -> float:
        """The month."""
        return self.cheapest_usd + sum(move.usd for move in self.moves)

    @property
    def hours(self) -> float:
        """The month's runs, one after another."""
        return self.cheapest_hours - sum(move.hours for move in self.moves)


def spending_of(picks: Sequence[FleetJob], budget_usd: float | None) -> FleetSpending:
    """Where a month's money saves most time: the greedy choice on the convex hulls of all jobs.

    It is the best choice wherever a hull's corner takes the last dollar. In between, a fraction of the first
    move that is not affordable bounds what any other choice could save (Dantzig's bound of the
    multiple-choice knapsack problem), and what is left buys later moves.

    Args:
        budget_usd: None for as much as the fastest machines take.
    """
    steps = sorted((move for pick in picks for move in _steps(pick)), key=lambda move: -move.hours / move.usd)
    cheapest_usd = sum(pick.usd(pick.best) for pick in picks)
    budget_usd = math.inf if budget_usd is None else budget_usd
    left_usd = max(0.0, budget_usd - cheapest_usd)
    moves: list[Move] = []
    later: list[Move] = []
    most_hours = None
    for move in steps:
        # A step on a hull stands on the one before.
        if move.usd <= left_usd and all(move.pick is not one.pick for one in later):
            left_usd -= move.usd
            moves.append(move)
            continue
        if most_hours is None:
            most_hours = sum(one.hours for one in moves) + left_usd / move.usd * move.hours
        later.append(move)
    return FleetSpending(
        budget_usd=budget_usd,
        cheapest_usd=cheapest_usd,
        cheapest_hours=sum(pick.hours(pick.best) for pick in picks),
        moves=tuple(moves),
        next_moves=tuple(later),
        hours_above_best=max(0.0, (most_hours or 0.0) - sum(one.hours for one in moves)),
    )


def _steps(pick: FleetJob) -> Iterator[Move]:
    """From corner to corner of the convex hull of cost and time, each with less saved for a dollar."""
    hull: list[Candidate] = []
    for one in pick.candidates:
        while len(hull) > 1 and _saved(pick, hull[-2], hull[-1]) <= _saved(pick, hull[-1], one):
            hull.pop()
        hull.append(one)
    for before, to in pairwise(hull):
        usd, hours = pick.usd(to) - pick.usd(before), pick.hours(before) - pick.hours(to)
        yield Move(pick=pick, to=to, usd=usd, hours=hours)


def _saved(pick: FleetJob, before: Candidate, to: Candidate) -> float:
    return (pick.hours(before) - pick.hours(to)) / (pick.usd(to) - pick.usd(before))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Machines of one type that are not spot, over a time."""

    machine: str
    usd_per_h: float | None
    """Of one machine, without a commitment; None where no run says it."""
    busy: tuple[float, ...]
    """The share of the time in which so many or more are in use: one, two, ..."""
    source: str
    """What that rests on, in words."""
    months: int | None = None
    """To commit for; None where none of the discounts pays."""
    num: int = 0
    """To commit to."""
    saved_usd_per_month: float | None = None
    """By that."""

    @property
    def idle(self) -> float | None:
        """The odds, at any moment, that the last of those committed to has nothing to do."""
        return 1 - self.busy[self.num - 1] if self.num else None

    @property
    def next_pays_from(self) -> float | None:
        """The discount from which one more machine pays: it must be busy as much as it costs."""
        return 1 - self.busy[self.num] if self.num < len(self.busy) else None


def pools_of(
    picks: Sequence[FleetJob], runs: Iterable[Run], discounts: Mapping[int, float], end: datetime
) -> tuple[Pool, ...]:
    """How many machines of which type to commit to for how long.

    The year's recorded runs count if they began 30 days ago or more; else those that the grid plans, each
    at a random moment.

    Args:
        discounts: off the price on demand, by months of the commitment.
    """
    pools = _recorded(runs, end) or _planned(picks)
    found = [_committed(pool, discounts) for pool in pools]
    return tuple(sorted(found, key=lambda pool: (-(pool.saved_usd_per_month or 0), -pool.busy[0])))


def _committed(pool: Pool, discounts: Mapping[int, float]) -> Pool:
    def saved(off: float) -> float:
        """Of the price on demand, an hour."""
        return sum(busy - (1 - off) for busy in pool.busy if busy > 1 - off)

    months, off = max(discounts.items(), key=lambda one: saved(one[1]), default=(0, 0.0))
    if saved(off) <= 0:
        return pool
    usd = None if pool.usd_per_h is None else saved(off) * pool.usd_per_h * HOURS_PER_MONTH
    num = sum(busy > 1 - off for busy in pool.busy)
    return replace(pool, months=months, num=num, saved_usd_per_month=usd)


def _recorded(runs: Iterable[Run], end: datetime) -> list[Pool]:
    counted = [
        run
        for run in runs
        if run.duration_s and run.market not in (None, Market.SPOT) and run.started_at > end - _YEAR
    ]
    first = min((run.started_at for run in counted), default=end)
    if end - first < _LEAST_RECORDED:
        return []
    whole_s = (end - first).total_seconds()
    by_machine: dict[str, list[Run]] = defaultdict(list)
    for run in counted:
        gpus = f"{run.num_gpus // (run.num_nodes or 1)} x {run.gpu}"
        by_machine[f"{run.provider}/{run.instance_type} ({gpus})"].append(run)
    pools = []
    for machine, of in by_machine.items():
        prices = [run.usd_per_h / (run.num_nodes or 1) for run in of if run.usd_per_h is not None]
        pools.append(
            Pool(
                machine=machine,
                usd_per_h=prices[-1] if prices else None,
                busy=_busy(of, whole_s),
                source=f"{len(of):,} run{'s' * (len(of) > 1)} in {whole_s / 86400:,.0f} days",
            )
        )
    return pools


def _busy(runs: Sequence[Run], whole_s: float) -> tuple[float, ...]:
    changes: Counter[float] = Counter()
    for run in runs:
        start_s = run.started_at.timestamp()
        changes[start_s] += run.num_nodes or 1
        changes[start_s + (run.duration_s or 0.0)] -= run.num_nodes or 1
    moments = sorted(changes)
    in_use = list(accumulate(changes[moment] for moment in moments))
    spans = [(end - start, num) for start, end, num in zip(moments, moments[1:], in_use, strict=False)]
    return tuple(
        min(1.0, sum(span_s for span_s, num in spans if num >= least) / whole_s)
        for least in range(1, max(in_use) + 1)
    )


def _planned(picks: Sequence[FleetJob]) -> list[Pool]:
    """Runs that begin at random moments, each on all its machines from their start to the end."""
    gangs: defaultdict[str, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    prices: dict[str, float | None] = {}
    for pick in picks:
        one = pick.best.choice
        if one.market != Market.SPOT and one.instance_type is not None:
            gpus = f"{one.num_gpus // one.num_nodes} x {one.gpu}"
            machine = f"{one.plan.partition('/')[0]}/{one.instance_type} ({gpus})"
            gangs[machine][one.num_nodes] += pick.runs_per_month * one.held_s / (HOURS_PER_MONTH * HOUR_S)
            prices[machine] = one.usd_per_h and one.usd_per_h / one.num_nodes
    return [
        Pool(machine=machine, usd_per_h=prices[machine], busy=_at_random(of), source="planned runs")
        for machine, of in gangs.items()
    ]


def _at_random(gangs: Mapping[int, float]) -> tuple[float, ...]:
    """The odds that one, two, ... or more machines are in use, down to one in twenty; the first always.

    Runs of one size that are there at once have a Poisson distribution. That of all their machines is the
    inverse Fourier transform of the product of their generating functions.

    Args:
        gangs: how many runs are there at once in the mean, by machines of a run.
    """
    import numpy as np

    mean = sum(size * runs for size, runs in gangs.items())
    deviation = math.sqrt(sum(size**2 * runs for size, runs in gangs.items()))
    num = math.ceil(mean + 10 * (deviation + max(gangs)))
    at = np.exp(-2j * np.pi * np.arange(num) / num)
    odds = np.fft.ifft(np.exp(sum(runs * (at**size - 1) for size, runs in gangs.items()))).real
    first, *more = (1 - np.cumsum(odds)).tolist()
    return (first, *takewhile(lambda odds: odds > _LEAST_BUSY, more))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A sweep and what it says of the fleet."""

    swept: Sequence[Swept]
    picks: Sequence[FleetJob]
    spending: FleetSpending
    pools: Sequence[Pool]
    warnings: Sequence[str] = ()


def fleet_of(swept: Sequence[Swept], grid: Grid, database: StoreSettings | None) -> Fleet:
    """What a sweep says.

    Args:
        database: with the runs that are recorded; None where commitments are not asked for. If it cannot be
            read, planned runs count, and a warning says so.
    """
    from advisor.store.ledger import runs

    end = now()
    recorded: Sequence[Run] = ()
    warnings = []
    try:
        if database is not None:
            with existing_store(database.url) as store:
                recorded = runs(store, since=end - _YEAR) if store else ()
    except StoreError as error:
        warnings.append(f"capacity counts planned runs alone: {error}")
    picks = picks_of(swept, grid)
    return Fleet(
        swept=swept,
        picks=picks,
        spending=spending_of(picks, grid.monthly_budget_usd),
        pools=pools_of(picks, recorded, grid.commitments, end),
        warnings=warnings,
    )
