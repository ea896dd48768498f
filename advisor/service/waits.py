"""How long jobs wait in a cluster's queue, from its job log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.findings import Finding
from advisor.core.limits import MAX_MACHINES, check_count
from advisor.core.values import Market, StartWait
from advisor.service.listening import Listener
from advisor.site_files.job_logs import log_or_live
from advisor.site_files.log_rows import zone_named

if TYPE_CHECKING:
    from advisor.pricing.spot import SpotOdds
    from recommender.outcome.watched import Watched
    from recommender.queue.fitted import WaitBin, WaitQuantiles
    from recommender.queue.scoring import QueueCheck
    from recommender.queue.waits import JobLog


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


def fitted_waits(source: Path, listener: Listener, timezone: str | None = None) -> WaitQuantiles:
    """What `fit_waits` wrote, or the same of a log or a live scheduler. Raises InputError: it is none."""
    from advisor.site_files.fitted_files import load_fit

    with listener.step(f"reading {source.name}"), log_or_live(source) as there:
        return load_fit(there, timezone)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitRequest:
    """One kind of job."""

    source: Path
    """What `fit_waits` wrote, a log, or the word of a live scheduler."""
    num_gpus: int
    """That it asks for."""
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

    alike: WaitBin
    size_unit: str
    num_waiting: int | None
    waited_s: float | None
    warnings: tuple[Finding, ...]


def expected_wait(request: WaitRequest, listener: Listener) -> Wait:
    """How long jobs of a kind wait.

    Raises InputError: a number that cannot be, an unknown queue, or a source that cannot be read.
    """
    from advisor.service.prices.live import now
    from recommender.queue.fitted import warnings_of

    check_count(listener.name_of("num_gpus"), request.num_gpus, most=MAX_MACHINES)
    fitted = fitted_waits(request.source, listener, request.timezone)
    num_waiting = request.num_waiting
    if num_waiting is None and request.waited_s is None:
        num_waiting = fitted.waiting_now(request.queue, now().timestamp())
    alike = fitted.of(
        size=request.num_gpus,
        walltime_s=request.walltime_s,
        queue=request.queue,
        num_waiting=num_waiting,
        waited_s=request.waited_s,
    )
    return Wait(
        alike=alike,
        size_unit=fitted.size_unit,
        num_waiting=num_waiting,
        waited_s=request.waited_s,
        warnings=warnings_of(fitted, alike, request.num_gpus),
    )


def read_log(path: Path, timezone: str | None, listener: Listener) -> JobLog:
    """The jobs of a log; the listener is notified of what is left out.

    Raises InputError: no such time zone, or the log cannot be read.
    """
    from advisor.site_files.job_logs import read_job_log

    with log_or_live(path) as there:
        log = read_job_log(there, None if timezone is None else zone_named(timezone))
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
    from advisor.pricing.spot import spot_odds, start_odds
    from recommender.outcome.watched import start_with_history, with_history

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
