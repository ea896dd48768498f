"""A cluster's queue simulated as it is and as it could be: waits of its jobs, and of one more."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import InputError, did_you_mean
from advisor.core.units import DAY_S, HOUR_S
from advisor.core.values import Quantiles
from advisor.schedule.recurrence import zone_of
from advisor.service.listening import Listener
from advisor.site_files.slurm_conf import Partition, SlurmConf, read_slurm_conf

if TYPE_CHECKING:
    from advisor.native.arrays import Backfill, PriorityRules, Queue
    from recommender.queue.waits import JobLog, QueuedJob

WALLTIMES_S = tuple(hours * HOUR_S for hours in (0.5, 1, 2, 4, 8, 12, 24, 48, 72, 168))
SIZES = {"1": 1.0, "2..8": 8.0, "9..64": 64.0, "65..512": 512.0, ">512": math.inf}
_MOST_MOMENTS = 100
_FILLED_AFTER = 0.1
"""The share of jobs until a cluster that starts empty counts as filled."""
_NO_LIMIT_S = 366 * DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfRequest:
    """What would change."""

    log: Path
    slurm_conf: Path | None = None
    """Partitions and priorities; or else `capacity`, the units of one partition."""
    capacity: int | None = None
    added: Mapping[str, int]
    """Units by partition, ``""`` for the only one."""
    backfill: str | None = None
    """``"none"``, ``"easy"`` or ``"conservative"``; None leaves today's."""
    size: int | None = None
    """Of one more job; its waits are those of ``walltime_s`` and longer ones, or of all."""
    walltime_s: float | None = None
    partition: str | None = None
    submit_at: time | None = None
    """The time of day at which it would be submitted; None takes that of other jobs."""
    timezone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassWaits:
    """Waits of the jobs of a size: logged, simulated as the cluster is, and as it could be."""

    size: str
    num_jobs: int
    logged_s: Quantiles
    today_s: Quantiles
    what_if_s: Quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class WalltimeWaits:
    """Waits of one more job by the run time that it asks for."""

    walltime_s: float
    today_s: Quantiles
    what_if_s: Quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueWhatIf:
    """Two simulations of the same jobs."""

    size_unit: str
    num_jobs: int
    units: tuple[int, int]
    """Of the cluster, today and then."""
    backfill: tuple[str, str]
    classes: tuple[ClassWaits, ...]
    """All jobs first."""
    walltimes: tuple[WalltimeWaits, ...]
    """Of one more job, from the shortest; empty unless it was asked for."""
    num_moments: int
    """At which that one was submitted, each time alone."""
    submit_at: str | None
    """The time of day of these moments, unless they are those of other jobs."""


def queue_what_if(request: WhatIfRequest, listener: Listener) -> QueueWhatIf:
    """Simulate a log's jobs on the cluster as it is, and with the change.

    Raises InputError: a log without run times, no capacity, an unknown partition, or a job that never fits.
    """
    from advisor.native import simulate_queue
    from advisor.native.arrays import Backfill
    from advisor.service.queue_waits import read_log

    log = read_log(request.log, request.timezone, listener)
    conf = _conf(request, log)
    today = Backfill.NONE if conf.options.get("schedulertype") == "sched/builtin" else Backfill.EASY
    then = today if request.backfill is None else Backfill(request.backfill)
    more = _grown(conf, request.added)
    jobs = _that_fit(log, (conf, more), listener)
    zone = None if request.timezone is None else zone_of(request.timezone)
    moments = _moments(jobs, None, zone), _moments(jobs, request.submit_at, zone)
    walltimes = _walltimes(request, (conf, more))
    starts = []
    for one, backfill, at_s in zip((conf, more), (today, then), moments, strict=True):
        with listener.step(f"simulating {len(jobs):,} jobs"):
            queue = _queue(jobs, one, backfill, _probes(request, one, (at_s, walltimes)))
            job_starts, probe_starts = simulate_queue(queue)
        waits = probe_starts - queue.probes.submit_s_J
        starts.append(
            (
                (job_starts - queue.jobs.submit_s_J).tolist(),
                [_quantiles(waits[i :: len(walltimes)].tolist()) for i in range(len(walltimes))],
            )
        )
    (today_s, today_probes), (then_s, then_probes) = starts
    return QueueWhatIf(
        size_unit=log.size_unit,
        num_jobs=len(jobs),
        units=(sum(conf.units), sum(more.units)),
        backfill=(str(today), str(then)),
        classes=tuple(_classes(jobs, today_s, then_s)),
        walltimes=tuple(
            WalltimeWaits(walltime_s=walltime_s, today_s=one, what_if_s=other)
            for walltime_s, one, other in zip(walltimes, today_probes, then_probes, strict=True)
        ),
        num_moments=len(moments[1]) if walltimes else 0,
        submit_at=None if request.submit_at is None else f"{request.submit_at:%H:%M}",
    )


def _conf(request: WhatIfRequest, log: JobLog) -> SlurmConf:
    if request.slurm_conf is not None:
        return read_slurm_conf(request.slurm_conf, log.size_unit)
    if request.capacity is None:
        changes = [(job.start_s + max(job.run_s, 0), -job.size) for job in log.jobs]
        most = used = 0.0
        for _, change in sorted(changes + [(job.start_s, job.size) for job in log.jobs]):
            used += change
            most = max(most, used)
        raise InputError(
            f"a job log does not tell how many {log.size_unit} the cluster has: give `slurm_conf` FILE, or"
            f" `capacity` N. Its jobs had up to {math.ceil(most):,} at once."
        )
    only = Partition(name="", units=request.capacity, pool=0, is_default=True)
    return SlurmConf(partitions=(only,), units=(request.capacity,), options={})


def _partition(conf: SlurmConf, name: str | None) -> int:
    """The number of a partition; of the default one without a name, and of the only one for any.

    Raises InputError: there is no such partition.
    """
    names = [partition.name for partition in conf.partitions]
    if names == [""]:
        return 0
    if not name:
        found = next((i for i, partition in enumerate(conf.partitions) if partition.is_default), None)
        if found is None and len(names) == 1:
            found = 0
        if found is not None:
            return found
    elif name in names:
        return names.index(name)
    hint = did_you_mean(name or "", names)
    raise InputError(f"slurm.conf has no partition {name or ''!r}.{hint} It has: {', '.join(names)}.")


def _grown(conf: SlurmConf, added: Mapping[str, int]) -> SlurmConf:
    """With more units of partitions, which those that have all of their pool get as well."""
    for name, count in added.items():
        chosen = conf.partitions[_partition(conf, name)]
        if chosen.units + count < 0:
            raise InputError(f"`add` {name}={count}: the partition has {chosen.units} only.")
        whole = conf.units[chosen.pool]
        changed = (
            one is chosen or (one.pool == chosen.pool and one.units == whole) for one in conf.partitions
        )
        units = tuple(units + count * (i == chosen.pool) for i, units in enumerate(conf.units))
        partitions = tuple(
            replace(one, units=min(one.units + count * is_changed, units[one.pool]))
            for one, is_changed in zip(conf.partitions, changed, strict=True)
        )
        conf = replace(conf, partitions=partitions, units=units)
    return conf


def _that_fit(log: JobLog, clusters: Sequence[SlurmConf], listener: Listener) -> list[QueuedJob]:
    with_run = [job for job in log.jobs if job.run_s >= 0]
    if not with_run:
        raise InputError(
            "the log has no run times: export it with the end (sacct: End, Elapsed) of each job."
        )

    most = {
        name: min(conf.partitions[_partition(conf, name)].units for conf in clusters)
        for name in {job.queue for job in with_run}
    }
    jobs = [job for job in with_run if 0 < job.size <= most[job.queue]]
    for why, count in (
        ("no run time", len(log.jobs) - len(with_run)),
        ("larger than their partition", len(with_run) - len(jobs)),
    ):
        if count:
            listener.note(f"{count:,} jobs left out: {why}")
    if not jobs:
        raise InputError("no job of the log fits its partition: is the capacity counted in another unit?")
    return jobs


def _queue(
    jobs: Sequence[QueuedJob], conf: SlurmConf, backfill: Backfill, probes: Sequence[tuple[int, ...]]
) -> Queue:
    import numpy as np

    from advisor.native.arrays import ClusterColumns, JobColumns, Queue

    users = {user: i for i, user in enumerate(sorted({job.user for job in jobs}))}
    most = max(1, *(one.job_factor for one in conf.partitions))
    parts = conf.partitions
    cluster = ClusterColumns(
        units_P=np.array([one.units for one in parts]),
        pool_P=np.array([one.pool for one in parts]),
        tier_P=np.array([one.tier for one in parts]),
        job_factor_P=np.array([one.job_factor / most for one in parts]),
        units_Q=np.array(conf.units),
    )
    numbers = {name: _partition(conf, name) for name in {job.queue for job in jobs}}
    rows = [_row(job, (numbers[job.queue], users[job.user]), conf) for job in jobs]
    return Queue(
        jobs=JobColumns.of(rows),
        probes=JobColumns.of([(*probe, len(users)) for probe in probes]),
        cluster=cluster,
        rules=_rules(conf),
        backfill=backfill,
    )


def _row(job: QueuedJob, place: tuple[int, int], conf: SlurmConf) -> tuple[int, ...]:
    """A job that ran longer than it asked for, asked for that; without a walltime it gets the partition's."""
    partition, run_s = conf.partitions[place[0]], round(job.run_s)
    asked_s = partition.default_s if job.walltime_s < 0 else min(job.walltime_s, partition.max_s)
    walltime_s = max(1, run_s, round(min(asked_s, _NO_LIMIT_S)))
    return round(job.submit_s), run_s, walltime_s, math.ceil(job.size), *place


def _rules(conf: SlurmConf) -> PriorityRules:
    from advisor.native.arrays import MAX_TIME_S, PriorityRules

    flags = conf.options.get("priorityflags", "").upper()
    if conf.options.get("prioritytype", "").endswith("basic"):
        return PriorityRules()
    half_life_s = conf.seconds("PriorityDecayHalfLife", 7 * DAY_S)
    return PriorityRules(
        age_weight=conf.number("PriorityWeightAge"),
        size_weight=conf.number("PriorityWeightJobSize"),
        fair_share_weight=conf.number("PriorityWeightFairshare"),
        partition_weight=conf.number("PriorityWeightPartition"),
        max_age_s=max(1.0, conf.seconds("PriorityMaxAge", 7 * DAY_S)),
        half_life_s=half_life_s if half_life_s <= MAX_TIME_S else 0.0,
        period_s=max(1, round(min(conf.seconds("PriorityCalcPeriod", 300), _NO_LIMIT_S))),
        favors_small=conf.options.get("priorityfavorsmall", "NO").upper() == "YES",
        is_fair_tree="NO_FAIR_TREE" not in flags,
    )


def _walltimes(request: WhatIfRequest, clusters: Sequence[SlurmConf]) -> tuple[float, ...]:
    if request.size is None:
        return ()
    most_s = math.inf
    for conf in clusters:
        partition = conf.partitions[_partition(conf, request.partition)]
        most_s = min(most_s, partition.max_s)
        if request.size > partition.units:
            raise InputError(
                f"`size` {request.size}: partition {partition.name!r} has {partition.units} only."
            )
    least_s = request.walltime_s or 0.0
    if least_s > most_s:
        raise InputError(f"`walltime`: the partition allows {most_s / HOUR_S:g} h at most (MaxTime).")
    longer = {seconds for seconds in WALLTIMES_S if least_s <= seconds <= most_s}
    return tuple(sorted(longer | ({least_s} if least_s else set()))) or (most_s,)


def _probes(
    request: WhatIfRequest, conf: SlurmConf, grid: tuple[Sequence[int], Sequence[float]]
) -> list[tuple[int, ...]]:
    """The job at each moment with each run time, of a user without others."""
    moments, walltimes = grid
    number = _partition(conf, request.partition) if request.size is not None else 0
    rows = ((at_s, max(1, round(asked_s))) for at_s in moments for asked_s in walltimes)
    return [(at_s, asked_s, asked_s, request.size or 0, number) for at_s, asked_s in rows]


def _moments(jobs: Sequence[QueuedJob], submit_at: time | None, zone: tzinfo | None) -> list[int]:
    """When others submit, or that time on each day; a hundred at most, spread evenly."""
    filled = jobs[math.floor(_FILLED_AFTER * len(jobs)) :]
    if submit_at is None:
        moments = [round(job.submit_s) for job in filled]
    else:
        first, last = (datetime.fromtimestamp(job.submit_s, zone) for job in (filled[0], filled[-1]))
        days = (first.date() + timedelta(days=i) for i in range((last.date() - first.date()).days + 1))
        at_s = (round(datetime.combine(day, submit_at, zone).timestamp()) for day in days)
        moments = [one_s for one_s in at_s if filled[0].submit_s <= one_s <= filled[-1].submit_s]
    if not moments:
        raise InputError("`submit_at`: the log covers no such time of a day. Export a longer time.")
    count = min(len(moments), _MOST_MOMENTS)
    return [moments[i * len(moments) // count] for i in range(count)]


def _classes(
    jobs: Sequence[QueuedJob], today_s: Sequence[float], then_s: Sequence[float]
) -> list[ClassWaits]:
    names = [next(name for name, most in SIZES.items() if job.size <= most) for job in jobs]
    all_waits = [job.wait_s for job in jobs], today_s, then_s
    classes = []
    for size in ("any", *SIZES):
        chosen = [i for i, name in enumerate(names) if size in ("any", name)]
        if chosen:
            logged, today, then = (_quantiles([waits[i] for i in chosen]) for waits in all_waits)
            classes.append(
                ClassWaits(size=size, num_jobs=len(chosen), logged_s=logged, today_s=today, what_if_s=then)
            )
    return classes


def _quantiles(waits_s: Sequence[float]) -> Quantiles:
    import numpy as np

    p50, p90 = np.quantile(np.array(waits_s, dtype=float), [0.5, 0.9]).tolist()
    return Quantiles(p50=p50, p90=p90)
