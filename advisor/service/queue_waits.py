"""How long jobs wait in a cluster's queue, from its job log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import InputError, did_you_mean
from advisor.core.findings import Finding
from advisor.core.findings.about_options import QueueShared, RemovedByQueue, Unknown
from advisor.core.limits import MAX_MACHINES, check_count
from advisor.core.processes import user_name
from advisor.core.values import Market, QueueLimit, StartWait
from advisor.schedule.recurrence import zone_of
from advisor.service.listening import Listener
from advisor.site_files.job_logs import SLURM, is_live, log_or_live, read_job_log
from recommender.queue.waits import GPUS, Asked, JobLog, delaying, forbidding

if TYPE_CHECKING:
    from advisor.pricing.spot_odds import SpotOdds
    from advisor.site_files.slurm_limits import QueuedNow, SlurmNow
    from recommender.outcome.spot_history import Watched
    from recommender.queue.fitted import WaitBin, WaitQuantiles
    from recommender.queue.scoring import QueueCheck


def fit_waits(log: Path, out: Path | None, listener: Listener, timezone: str | None = None) -> WaitQuantiles:
    """Waits by size, walltime and queue, kept in ``out`` if it is given: no rows of the log.

    Args:
        timezone: of times that name none, such as ``"Europe/Berlin"``; None is this machine's.

    Raises InputError: no such time zone, the log cannot be read or has too few jobs, or the file cannot be
    written.
    """
    from advisor.site_files.fitted_files import write_fit
    from recommender.queue.fitted import fit

    with listener.step(f"reading {log.name}"):
        fitted = fit(read_log(log, timezone, listener))
        live = _live(log, listener) if is_live(log, SLURM) else None
        if live is not None:
            listener.warn(live.doubts)
            # What is in use now says nothing of later.
            later = {at: tuple(replace(one, in_use=None) for one in of) for at, of in live.limits.items()}
            fitted = replace(fitted, limits=later)
    if out is not None:
        write_fit(out, fitted)
        listener.note(f"wrote {str(out)!r}")
    return fitted


def check_waits(log: Path, listener: Listener, timezone: str | None = None) -> QueueCheck:
    """Foresee the last part of a log, as a fit is used and as one that goes on learning.

    Raises InputError: no such time zone, the log cannot be read or has too few jobs.
    """
    from recommender.queue.scoring import check

    with listener.step(f"reading {log.name}"):
        return check(read_log(log, timezone, listener))


def fitted_waits(
    source: Path, listener: Listener, timezone: str | None = None, user: str | None = None
) -> WaitQuantiles:
    """What `fit_waits` wrote, or the same of a log or a live scheduler, for a job that ``user`` submits now.

    Raises InputError: it is none.
    """
    from advisor.site_files.fitted_files import load_fit

    with listener.step(f"reading {source.name}"), log_or_live(source) as there:
        return load_fit(there, timezone, user)


def _live(source: Path, listener: Listener, job: str | None = None) -> SlurmNow | None:
    """What Slurm itself tells; None, with a warning, where it does not answer and no job is asked for."""
    from advisor.service.prices.live import now
    from advisor.site_files.slurm_limits import ask_slurm

    try:
        with listener.step(f"asking {source.name}"):
            return ask_slurm(now().timestamp(), job)
    except InputError as error:
        if job is not None:
            raise
        listener.warn([Unknown(what="queue-limits", names=[_as_clause(error)])])
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitRequest:
    """One kind of job."""

    source: Path
    """What `fit_waits` wrote, a log, or the word of a live scheduler."""
    num_gpus: int | None = None
    """That it asks for; None of a ``job``."""
    job: str | None = None
    """Id of one that waits in Slurm's queue, which tells all the rest."""
    walltime_s: float | None = None
    """The run time that it asks for, if known."""
    queue: str | None = None
    """Where it waits, if known."""
    timezone: str | None = None
    """Of times in a log that name none; None is this machine's."""
    num_waiting: int | None = None
    """Others that waited there at its submission; None takes those of a log of the last hour."""
    waited_s: float | None = None
    """How long it has waited; the waits are then those still to come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The waits of jobs like one, what their sizes count, the state of its queue, and doubts."""

    alike: WaitBin | None
    """None where the scheduler keeps no history: a warning says why."""
    size_unit: str
    num_waiting: int | None
    waited_s: float | None
    warnings: tuple[Finding, ...]
    limits: tuple[QueueLimit, ...] = ()
    """Of its queue; none if none are known."""
    removals: tuple[RemovedByQueue, ...] = ()
    """Those that it is above alone."""
    delays: tuple[QueueShared, ...] = ()
    """Those that it is above with the jobs that run now."""
    job: QueuedNow | None = None


def expected_wait(request: WaitRequest, listener: Listener) -> Wait:
    """How long jobs of a kind wait.

    Raises InputError: a number that cannot be, an unknown queue, a job that does not wait, or a source that
    cannot be read.
    """
    from recommender.queue.fitted import warnings_of

    live, request = _asked_live(request, listener)
    num_gpus = request.num_gpus or 0
    check_count(listener.name_of("num_gpus"), num_gpus, most=MAX_MACHINES)
    # A job that has waited was submitted when its user's own jobs were others.
    user = user_name() if request.waited_s is None else None
    try:
        fitted = fitted_waits(request.source, listener, request.timezone, user)
        doubts: tuple[Finding, ...] = ()
    except InputError as error:
        if live is None:
            raise
        fitted, doubts = None, (Unknown(what="queue-history", names=[_as_clause(error)]),)
    num_waiting, alike = _alike(fitted, request, num_gpus)
    known = live.limits if live is not None else {} if fitted is None else fitted.limits
    if live is not None and request.queue and request.queue not in known:
        hint = did_you_mean(request.queue, list(known))
        raise InputError(f"Slurm has no partition {request.queue!r}.{hint}")
    limits = known.get(request.queue or "", ())
    asked = Asked(num_gpus=num_gpus, time_s=request.walltime_s)
    if fitted is not None and alike is not None:
        doubts = warnings_of(fitted, alike, num_gpus)
    return Wait(
        alike=alike,
        size_unit=GPUS if fitted is None else fitted.size_unit,
        num_waiting=num_waiting,
        waited_s=request.waited_s,
        limits=limits,
        removals=tuple(forbidding(limits, asked)),
        delays=tuple(delaying(limits, asked)),
        job=None if live is None else live.job,
        warnings=(*doubts, *(() if live is None else live.doubts)),
    )


def _as_clause(error: InputError) -> str:
    return str(error).rstrip(".")


def _asked_live(request: WaitRequest, listener: Listener) -> tuple[SlurmNow | None, WaitRequest]:
    """What a live Slurm tells, and the request with what it knows of the job."""
    if not is_live(request.source, SLURM):
        if request.job is not None:
            raise InputError(f"{listener.name_of('job')} is of a live Slurm: write slurm instead of a file.")
        return None, request
    live = _live(request.source, listener, request.job)
    if live is None or live.job is None:
        return live, request
    job = live.job
    if not job.num_gpus:
        raise InputError(f"the job {job.job_id} asks for no GPU (gres/gpu): waits are told of those that do.")
    return live, replace(
        request, num_gpus=job.num_gpus, walltime_s=job.walltime_s, queue=job.partition, waited_s=job.waited_s
    )


def _alike(
    fitted: WaitQuantiles | None, request: WaitRequest, num_gpus: int
) -> tuple[int | None, WaitBin | None]:
    """Jobs that wait before it, if known, and the waits of those like it."""
    from advisor.service.prices.live import now

    num_waiting = request.num_waiting
    if fitted is None:
        return num_waiting, None
    if num_waiting is None and request.waited_s is None:
        num_waiting = fitted.waiting_now(request.queue, now().timestamp())
    alike = fitted.of(
        size=num_gpus,
        walltime_s=request.walltime_s,
        queue=request.queue,
        num_waiting=num_waiting,
        waited_s=request.waited_s,
    )
    return num_waiting, alike


def read_log(path: Path, timezone: str | None, listener: Listener) -> JobLog:
    """The jobs of a log; the listener is notified of what is left out.

    Raises InputError: no such time zone, or the log cannot be read.
    """
    with log_or_live(path) as there:
        log = read_job_log(there, None if timezone is None else zone_of(timezone))
    for reason, count in log.left_out.items():
        listener.note(f"{count:,} jobs left out: {reason}")
    if log.waiting:
        listener.note(f"{len(log.waiting):,} jobs wait still: they count as waits of at least their age")
    return log


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedMachine:
    """One machine of a log: what was seen, what is assumed of its class, and what both say."""

    machine: str
    """Instance type; ``""`` in a log that names none."""
    gpu: str | None
    """In it; None where no catalog knows the machine: then it counts as one new GPU."""
    num_gpus: int
    seen: Watched
    assumed: SpotOdds
    odds: SpotOdds
    wait_s: StartWait


def fit_spot(log: Path, out: Path | None, listener: Listener) -> tuple[FittedMachine, ...]:
    """Rates of each machine of a log, kept in ``out`` if it is given: no rows of the log.

    Raises InputError: the log cannot be read or watched nothing, or the file cannot be written.
    """
    from advisor.service.prices.live import now
    from advisor.site_files.fitted_files import write_history
    from advisor.site_files.spot_logs import read_spot_log

    with listener.step(f"reading {log.name}"):
        history = read_spot_log(log, now())
    if out is not None:
        write_history(out, history)
        listener.note(f"wrote {str(out)!r}")
    return tuple(_fitted(machine, seen) for machine, seen in history.machines.items())


def _fitted(machine: str, seen: Watched) -> FittedMachine:
    from advisor.pricing.spot_odds import spot_odds, start_odds
    from recommender.outcome.spot_history import start_with_history, with_history

    gpu, num_gpus = _gpus_of(machine)
    assumed = spot_odds(gpu or "", num_gpus)
    wait_s = start_odds(gpu or "", num_gpus, Market.SPOT).wait_s
    return FittedMachine(
        machine=machine,
        gpu=gpu,
        num_gpus=num_gpus,
        seen=seen,
        assumed=assumed,
        odds=with_history(assumed, seen),
        wait_s=start_with_history(wait_s, assumed, seen),
    )


def _gpus_of(machine: str) -> tuple[str | None, int]:
    from advisor.pricing.instance_types import load_instances

    for (_, name), instance in load_instances().items():
        if name == machine:
            return instance.gpu, instance.num_gpus
    return None, 1
