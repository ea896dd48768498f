"""A cluster's queue simulated in slow, clear Python: fallback without a compiler, and test oracle.

Whatever happens at a second (ends, then submissions) comes first; then each pool starts what may start.
"""

# ruff: noqa: N806 -- shape suffixes as in queue_arrays.py

from __future__ import annotations

import heapq
import math
import operator
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

import numpy as np

from advisor.native.queue_arrays import Backfill, Column, JobColumns, Queue

NEVER: Final = 2**62
LN_2: Final = 0.6931471805599453


def simulate_queue(queue: Queue) -> tuple[Column, Column]:
    """When each job starts, and each probe, if it alone is submitted beside the jobs.

    EASY backfill as Lifka 1995, conservative as Mu'alem and Feitelson 2001: a job that ends early lets others
    move forward in order of priority, never back. Priorities as of Slurm's priority/multifactor.
    """
    start_s_J = _Simulation(queue, queue.jobs).run()
    probe_start_s_K = [_probed(queue, k) for k in range(len(queue.probes.submit_s_J))]
    return np.array(start_s_J, dtype=np.int64), np.array(probe_start_s_K, dtype=np.int64)


def _probed(queue: Queue, k: int) -> int:
    """The start of a probe: that of one more job, after all that are submitted in the same second."""
    place = int(np.searchsorted(queue.jobs.submit_s_J, queue.probes.submit_s_J[k], side="right"))
    pairs = zip(queue.jobs.columns, queue.probes.columns, strict=True)
    columns = (np.insert(column, place, probe[k]) for column, probe in pairs)
    return _Simulation(queue, JobColumns.of(list(zip(*columns, strict=True)))).run()[place]


class _Profile:
    """Units that are free from each time on, by what is planned; at the end all are."""

    def __init__(self, units: int) -> None:
        self.times_s, self.free = [-NEVER], [units]

    def earliest(self, size: int, duration_s: int, now_s: int) -> int:
        """The first moment from now on at which so many units are free for so long."""
        begin_s, step = now_s, bisect_right(self.times_s, now_s) - 1
        while step < len(self.times_s) and self.times_s[step] < begin_s + duration_s:
            if self.free[step] < size:
                begin_s = self.times_s[step + 1]
            step += 1
        return begin_s

    def add(self, begin_s: int, end_s: int, size: int) -> None:
        """Plan with so many units more for a time; a negative size takes them."""
        first, last = self._step_at(begin_s), self._step_at(end_s)
        for step in range(first, last):
            self.free[step] += size
        for step in (last, first):
            if step and self.free[step] == self.free[step - 1]:
                del self.times_s[step], self.free[step]

    def forget_before(self, now_s: int) -> None:
        """Drop the steps that are over."""
        over = bisect_right(self.times_s, now_s) - 1
        del self.times_s[:over], self.free[:over]

    def _step_at(self, time_s: int) -> int:
        step = bisect_left(self.times_s, time_s)
        if step == len(self.times_s) or self.times_s[step] != time_s:
            self.times_s.insert(step, time_s)
            self.free.insert(step, self.free[step - 1])
        return step


@dataclass(slots=True)
class _User:
    """What a user has used and uses, for the fair share."""

    usage: float = 0.0
    units: int = 0
    since_s: int = 0
    factor: float = 1.0

    def accrue(self, now_s: int, half_life_s: float) -> None:
        """Usage until now in unit seconds, older usage decayed."""
        past_s = float(max(0, now_s - self.since_s))  # times may be negative, the first is compared to 0
        if half_life_s > 0:
            left = math.exp2(-past_s / half_life_s)
            self.usage = self.usage * left + self.units * (half_life_s / LN_2) * (1 - left)
        else:
            self.usage += self.units * past_s
        self.since_s = now_s


_Rank = tuple[int, int, int, int]
"""Of a waiting job: tier, priority, submission, number; the least comes first."""


@dataclass(slots=True)
class _Pool:
    """Jobs of one pool: those that wait in order, and those that run, by their planned end."""

    waiting: list[_Rank] = field(default_factory=list)
    running: list[tuple[int, int]] = field(default_factory=list)
    has_released: bool = False


class _Simulation:
    """One run of the queue. Units are counted by resource: the pools, then the partitions."""

    def __init__(self, queue: Queue, jobs: JobColumns) -> None:
        cluster, self.rules, self.backfill = queue.cluster, queue.rules, queue.backfill
        columns: Iterator[list[int]] = (column.tolist() for column in jobs.columns)
        self.submit_s, self.run_s, self.walltime_s, self.size, self.partition, self.user = columns
        self.tier, self.job_factor = cluster.tier_P.tolist(), cluster.job_factor_P.tolist()
        self.pool_of: list[int] = cluster.pool_P.tolist()
        self.units: list[int] = [*cluster.units_Q.tolist(), *cluster.units_P.tolist()]
        self.free, self.profiles = list(self.units), [_Profile(units) for units in self.units]
        self.pools = [_Pool() for _ in cluster.units_Q]
        self.users = [_User() for _ in range(queue.num_users)]
        self.is_ranked = any(
            (
                self.rules.age_weight,
                self.rules.size_weight,
                self.rules.fair_share_weight,
                self.rules.partition_weight,
            )
        )
        self.ends: list[tuple[int, int]] = []
        self.reserved_s: dict[int, int] = {}
        self.start_s = [-1] * len(self.submit_s)
        self.num_submitted, self.ranked_s = 0, -NEVER

    def run(self) -> list[int]:
        """The start of each job."""
        while (now_s := self._next_s()) < NEVER:
            while self.ends and self.ends[0][0] <= now_s:
                self._end(heapq.heappop(self.ends)[1], now_s)
            if self.is_ranked and now_s >= self.ranked_s + self.rules.period_s:
                self._rank_again(now_s)
            while self.num_submitted < len(self.submit_s) and self.submit_s[self.num_submitted] <= now_s:
                job = self.num_submitted
                insort(self.pools[self._pool(job)].waiting, self._rank(job, now_s))
                self.num_submitted += 1
            for pool in self.pools:
                self._start_jobs(pool, now_s)
        return self.start_s

    def _next_s(self) -> int:
        submit_s = self.submit_s[self.num_submitted] if self.num_submitted < len(self.submit_s) else NEVER
        end_s = self.ends[0][0] if self.ends else NEVER
        return min(submit_s, end_s, min(self.reserved_s.values(), default=NEVER))

    def _pool(self, job: int) -> int:
        return self.pool_of[self.partition[job]]

    def _resources(self, job: int) -> tuple[int, int]:
        return self._pool(job), len(self.pools) + self.partition[job]

    def _fits(self, job: int) -> bool:
        return all(self.free[resource] >= self.size[job] for resource in self._resources(job))

    # --- Priority ---------------------------------------------------------------------------------------

    def _rank(self, job: int, now_s: int) -> _Rank:
        tier = -self.tier[self.partition[job]]
        priority = self._priority(job, now_s) if self.is_ranked else 0
        return tier, -priority, self.submit_s[job], job

    def _priority(self, job: int, now_s: int) -> int:
        rules, partition = self.rules, self.partition[job]
        age = min((now_s - self.submit_s[job]) / rules.max_age_s, 1.0)
        share = self.size[job] / self.units[self._pool(job)]
        return int(
            rules.age_weight * age
            + rules.size_weight * (1.0 - share if rules.favors_small else share)
            + rules.fair_share_weight * self.users[self.user[job]].factor
            + rules.partition_weight * self.job_factor[partition]
        )

    def _rank_again(self, now_s: int) -> None:
        self.ranked_s = now_s
        if self.rules.fair_share_weight:
            self._share_fairly(now_s)
        for pool in self.pools:
            pool.waiting = sorted(self._rank(job, now_s) for *_, job in pool.waiting)

    def _share_fairly(self, now_s: int) -> None:
        """Factors of users, who all have equal shares."""
        for user in self.users:
            user.accrue(now_s, self.rules.half_life_s)
        usages = sorted(user.usage for user in self.users)
        total = reduce(operator.add, usages, 0.0)  # sum() rounds otherwise from Python 3.12 on
        for user in self.users:
            if self.rules.is_fair_tree:
                user.factor = (len(usages) - bisect_left(usages, user.usage)) / len(usages)
            else:
                user.factor = math.exp2(-user.usage * len(usages) / total) if total > 0 else 1.0

    # --- Starting and ending ----------------------------------------------------------------------------

    def _take(self, job: int, size: int, now_s: int) -> None:
        for resource in self._resources(job):
            self.free[resource] -= size
        if self.rules.fair_share_weight:
            user = self.users[self.user[job]]
            user.accrue(now_s, self.rules.half_life_s)
            user.units += size

    def _start(self, job: int, now_s: int) -> None:
        self.start_s[job] = now_s
        self._take(job, self.size[job], now_s)
        heapq.heappush(self.ends, (now_s + self.run_s[job], job))
        insort(self.pools[self._pool(job)].running, (now_s + self.walltime_s[job], job))

    def _end(self, job: int, now_s: int) -> None:
        self._take(job, -self.size[job], now_s)
        pool, planned_s = self.pools[self._pool(job)], self.start_s[job] + self.walltime_s[job]
        del pool.running[bisect_left(pool.running, (planned_s, job))]
        if self.backfill is Backfill.CONSERVATIVE and planned_s > now_s:
            pool.has_released = True
            for resource in self._resources(job):
                self.profiles[resource].add(now_s, planned_s, self.size[job])

    def _start_jobs(self, pool: _Pool, now_s: int) -> None:
        if self.backfill is Backfill.CONSERVATIVE:
            starting = self._due(pool, now_s)
        elif self.backfill is Backfill.EASY:
            starting = self._easy(pool, now_s)
        else:
            starting = self._in_order(pool, now_s)
        if starting:
            pool.waiting = [rank for rank in pool.waiting if rank[-1] not in starting]

    def _in_order(self, pool: _Pool, now_s: int) -> set[int]:
        """Start jobs until one waits for the pool; one that waits for its partition stops only that."""
        starting: set[int] = set()
        stopped: set[int] = set()
        for *_, job in pool.waiting:
            if self.partition[job] in stopped:
                continue
            if self._fits(job):
                self._start(job, now_s)
                starting.add(job)
            elif self.free[self._pool(job)] < self.size[job]:
                break
            else:
                stopped.add(self.partition[job])
        return starting

    def _easy(self, pool: _Pool, now_s: int) -> set[int]:
        """Start jobs in order; once one has to wait, only those that do not delay it."""
        starting: set[int] = set()
        reserved: tuple[int, dict[int, int]] | None = None
        for *_, job in pool.waiting:
            if self.free[self._pool(job)] == 0 and reserved:
                break
            if not self._fits(job):
                reserved = reserved or self._reservation(pool, job)
            elif reserved is None or self._delays_not(job, now_s, *reserved):
                self._start(job, now_s)
                starting.add(job)
        return starting

    def _reservation(self, pool: _Pool, job: int) -> tuple[int, dict[int, int]]:
        """When a job fits by the planned ends of those that run, and what is spare then, by resource."""
        spare = {resource: self.free[resource] - self.size[job] for resource in self._resources(job)}
        reserved_s = NEVER
        for planned_s, other in pool.running:
            if planned_s > reserved_s:
                break
            for resource in spare.keys() & self._resources(other):
                spare[resource] += self.size[other]
            if min(spare.values()) >= 0:
                reserved_s = min(reserved_s, planned_s)
        return reserved_s, spare

    def _delays_not(self, job: int, now_s: int, reserved_s: int, spare: dict[int, int]) -> bool:
        """Whether it ends before the reservation, or takes what is spare then."""
        if now_s + self.walltime_s[job] <= reserved_s:
            return True
        taken = spare.keys() & self._resources(job)
        if any(spare[resource] < self.size[job] for resource in taken):
            return False
        for resource in taken:
            spare[resource] -= self.size[job]
        return True

    def _due(self, pool: _Pool, now_s: int) -> set[int]:
        """Give each new job its reservation, after an early end to all an earlier one; start what is due."""
        for profile in self.profiles:
            profile.forget_before(now_s)
        for *_, job in pool.waiting:
            before_s = self.reserved_s.get(job)
            if before_s is not None and (before_s == now_s or not pool.has_released):
                continue
            if before_s is not None:
                self._plan(job, before_s, self.size[job])
            self.reserved_s[job] = self._earliest(job, now_s)
            self._plan(job, self.reserved_s[job], -self.size[job])
        pool.has_released = False
        starting = {job for *_, job in pool.waiting if self.reserved_s[job] == now_s}
        for job in sorted(starting):
            del self.reserved_s[job]
            self._start(job, now_s)
        return starting

    def _plan(self, job: int, begin_s: int, size: int) -> None:
        for resource in self._resources(job):
            self.profiles[resource].add(begin_s, begin_s + self.walltime_s[job], size)

    def _earliest(self, job: int, now_s: int) -> int:
        """The first moment at which both pool and partition have the units for long enough."""
        begin_s, agreed_s = now_s, -1
        while agreed_s != begin_s:
            agreed_s = begin_s
            for resource in self._resources(job):
                begin_s = self.profiles[resource].earliest(self.size[job], self.walltime_s[job], begin_s)
        return begin_s
