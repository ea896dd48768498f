"""A cluster's queue as columns of numbers, the form in which its simulation takes it.

Shape suffixes: ``J`` jobs, ``K`` probes, ``P`` partitions, ``Q`` pools. A pool holds the units (GPUs, nodes
or cores) of all partitions that share nodes. Times are whole seconds of one clock.
"""
# ruff: noqa: N806, N815 -- the capital letters are shape suffixes

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.int64]
MAX_TIME_S: Final = 2**40
"""Bound of times and units; sums of a million fit 64 bits."""


class Backfill(StrEnum):
    """Which jobs may start before one that was due earlier.

    NONE: none of those that wait for the same units. EASY: those that do not delay the reservation of the
    first. CONSERVATIVE: those that delay nobody's reservation.
    """

    NONE = "none"
    EASY = "easy"
    CONSERVATIVE = "conservative"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobColumns:
    """J jobs in order of submission, one int64 array a quantity; the scheduler knows all but ``run_s_J``."""

    submit_s_J: Column
    run_s_J: Column
    walltime_s_J: Column
    size_J: Column
    partition_J: Column
    user_J: Column

    @property
    def columns(self) -> tuple[Column, ...]:
        """In the order of the fields."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @classmethod
    def of(cls, rows: list[tuple[int, ...]]) -> JobColumns:
        """Of rows with the values of a job in the order of the fields."""
        table = np.array(rows, dtype=np.int64).reshape(len(rows), len(fields(cls)))
        names = (field.name for field in fields(cls))
        return cls(**{name: np.ascontiguousarray(table[:, i]) for i, name in enumerate(names)})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterColumns:
    """P partitions on Q pools.

    Attributes:
        units_P: units that the jobs of a partition may use at once.
        pool_P: which pool they are of.
        tier_P: jobs of a higher tier come first, whatever their priority.
        job_factor_P: 0 to 1, what ``partition_weight`` is multiplied by.
        units_Q: units of a pool.
    """

    units_P: Column
    pool_P: Column
    tier_P: Column
    job_factor_P: NDArray[np.float64]
    units_Q: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityRules:
    """How Slurm's priority/multifactor ranks jobs; all weights 0 is first come, first served.

    Attributes:
        max_age_s: the wait from which the age counts fully.
        half_life_s: of usage in the fair share; 0 forgets nothing.
        period_s: how often priorities of waiting jobs are computed again.
        favors_small: whether the size factor is 1 for the smallest job rather than for the largest.
        is_fair_tree: whether users are ranked by usage; otherwise the factor is 2^-(usage / share).
    """

    age_weight: float = 0.0
    size_weight: float = 0.0
    fair_share_weight: float = 0.0
    partition_weight: float = 0.0
    max_age_s: float = 7 * 86_400.0
    half_life_s: float = 7 * 86_400.0
    period_s: int = 300
    favors_small: bool = False
    is_fair_tree: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Queue:
    """What is simulated; each of the K probes joins the jobs alone, and disturbs no other probe.

    Raises:
        ValueError: a job that never fits, runs longer than it asks for or names no partition, and the like.
    """

    jobs: JobColumns
    probes: JobColumns
    cluster: ClusterColumns
    rules: PriorityRules
    backfill: Backfill

    def __post_init__(self) -> None:
        _check_cluster(self.cluster)
        rules = self.rules
        if min(rules.max_age_s, rules.period_s) <= 0 or not 0 <= rules.half_life_s <= MAX_TIME_S:
            raise ValueError("max_age_s and period_s must be positive, half_life_s 0 or more")
        for noun, jobs in (("job", self.jobs), ("probe", self.probes)):
            _check_jobs(noun, jobs, self.cluster)

    @property
    def num_users(self) -> int:
        """Users are numbered from 0."""
        return 1 + int(np.concatenate([self.jobs.user_J, self.probes.user_J]).max(initial=-1))


def _check_cluster(cluster: ClusterColumns) -> None:
    lengths = {
        len(column) for column in (cluster.units_P, cluster.pool_P, cluster.tier_P, cluster.job_factor_P)
    }
    if len(lengths) != 1:
        raise ValueError("columns of partitions differ in length")
    num_pools = len(cluster.units_Q)
    _refuse("partition", (cluster.pool_P < 0) | (cluster.pool_P >= num_pools), "is of no pool")
    _refuse("partition", cluster.units_P > cluster.units_Q[cluster.pool_P], "has more units than its pool")
    _refuse("pool", cluster.units_Q > MAX_TIME_S, "has too many units")


def _check_jobs(noun: str, jobs: JobColumns, cluster: ClusterColumns) -> None:
    if len({len(column) for column in jobs.columns}) != 1:
        raise ValueError(f"columns of {noun}s differ in length")
    partition_J = jobs.partition_J
    _refuse(noun, (partition_J < 0) | (partition_J >= len(cluster.units_P)), "names no partition")
    _refuse(
        noun, (jobs.size_J < 1) | (jobs.size_J > cluster.units_P[partition_J]), "never fits its partition"
    )
    _refuse(noun, abs(jobs.submit_s_J) > MAX_TIME_S, "is submitted at no time")
    _refuse(noun, np.diff(jobs.submit_s_J) < 0, "is submitted after the next one")
    _refuse(noun, (jobs.walltime_s_J < 1) | (jobs.walltime_s_J > MAX_TIME_S), "asks for no run time")
    _refuse(noun, (jobs.run_s_J < 0) | (jobs.run_s_J > jobs.walltime_s_J), "runs longer than it asks for")
    _refuse(noun, (jobs.user_J < 0) | (jobs.user_J >= 2**31), "has no user")


def _refuse(noun: str, is_bad: NDArray[np.bool_], what: str) -> None:
    if is_bad.any():
        raise ValueError(f"{noun} {int(np.argmax(is_bad))} {what}")
