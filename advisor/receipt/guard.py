"""A guard beside a command: it counts rent and time, warns early, and stops the command in order at a limit.

It also sets the first steps beside their prediction (a canary). It is asked again and again while the
command runs, and decides by numbers alone. A guard that is killed kills nothing: the command goes on.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from pathlib import Path

from advisor.core import processes as programs
from advisor.core.units import HOUR_S, format_duration, format_usd
from advisor.core.values import Interval, Quantiles

WARNED_SHARE = 0.8
# Of a limit at most: a short run is not half grace.
MOST_GRACE_SHARE = 0.1
LAST_SHARE_OF_GRACE = 0.25
PRICE_AGAIN_S = 600.0
_SLURM_ANSWERS_WITHIN_S = 20.0


class GuardPhase(IntEnum):
    """How far it has come; a command never goes back to an earlier one."""

    FREE = 0
    WARNED = 1
    ASKED = 2  # for a checkpoint by SIGUSR1, where something listens, else to end by SIGTERM
    TERMINATED = 3  # SIGTERM
    KILLED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What a command may take."""

    max_s: float | None = None
    """From its start."""
    max_usd: float | None = None
    """Of rent, of all machines that train together."""
    grace_s: float = 120.0
    """Before the limit, in which the command may save a checkpoint."""

    def used(self, elapsed_s: float, spent_usd: float, usd_per_h: float) -> list[Used]:
        """What was used of each limit."""
        used = []
        if self.max_s is not None:
            used.append(Used(elapsed_s, self.max_s, self.grace_s, format_duration))
        if self.max_usd is not None:
            used.append(Used(spent_usd, self.max_usd, self.grace_s * usd_per_h / HOUR_S, format_usd))
        return used


@dataclass(frozen=True, slots=True)
class Used:
    """How much of one limit was used, in its own unit.

    >>> [Used(s, 3600, 120, format_duration).phase.name for s in (0, 2880, 3480, 3570, 3600)]
    ['FREE', 'WARNED', 'ASKED', 'TERMINATED', 'KILLED']
    """

    amount: float
    limit: float
    grace: float
    text_of: Callable[[float], str]

    @property
    def asks_at(self) -> float:
        """Where the command is asked to end: the grace before the limit."""
        return self.limit - min(self.grace, MOST_GRACE_SHARE * self.limit)

    @property
    def phase(self) -> GuardPhase:
        """What is to be done now."""
        starts = {
            GuardPhase.KILLED: self.limit,
            GuardPhase.TERMINATED: self.limit - LAST_SHARE_OF_GRACE * (self.limit - self.asks_at),
            GuardPhase.ASKED: self.asks_at,
            GuardPhase.WARNED: WARNED_SHARE * self.limit,
        }
        return next((phase for phase, start in starts.items() if self.amount >= start), GuardPhase.FREE)

    def __str__(self) -> str:
        return f"{self.text_of(self.amount)} of {self.text_of(self.limit)}"


@dataclass(slots=True, kw_only=True)
class Guard:
    """Watches one command."""

    limits: RunLimits
    usd_per_h: Callable[[], float | None]
    """Gives the present price of all machines; None while it cannot be known."""
    say: Callable[[str], None]
    """Gets a line for a person."""
    phase: GuardPhase = GuardPhase.FREE
    spent_usd: float = 0.0
    _end_s: float | None = None
    _why: str = ""
    _price: float | None = None
    _priced_s: float = 0.0
    _seen_s: float = 0.0
    _has_no_price: bool = False
    _signalled: set[tuple[int, int]] = field(default_factory=set)

    @property
    def stopped_by(self) -> str | None:
        """Why the command was asked to end; None if it was not."""
        return self._why if self.phase >= GuardPhase.ASKED else None

    def stop(self, elapsed_s: float, why: str) -> None:
        """End the command in order, whatever its limits say."""
        if self._end_s is None and self.stopped_by is None:
            self._end_s, self._why = elapsed_s + self.limits.grace_s, why

    def look(self, elapsed_s: float, pid: int) -> None:
        """Count what was used up to now, and do what the limits ask for."""
        self._count(elapsed_s)
        used = self.limits.used(elapsed_s, self.spent_usd, self._price or 0.0)
        ending = GuardPhase.FREE
        if self._end_s is not None:
            left_s = self._end_s - elapsed_s
            is_last = left_s <= LAST_SHARE_OF_GRACE * self.limits.grace_s
            ending = GuardPhase.TERMINATED if is_last else GuardPhase.ASKED
            ending = GuardPhase.KILLED if left_s <= 0 else ending
        phase = max([self.phase, ending, *(one.phase for one in used)])
        self._why = self._why or next(
            (f"its limit of {one.text_of(one.limit)}" for one in used if one.phase >= GuardPhase.ASKED), ""
        )
        is_later, self.phase = phase > self.phase, phase
        if phase >= GuardPhase.ASKED:
            self._stop(pid, used)
        elif is_later:
            until = " or ".join(one.text_of(one.asks_at) for one in used)
            self._tell(used, f"the command goes on until {until}, when it is asked to end")

    def _count(self, elapsed_s: float) -> None:
        """A stretch of time costs the price known in it; before any is known, the first one."""
        self._pay(elapsed_s)
        is_due = self._price is None or elapsed_s - self._priced_s >= PRICE_AGAIN_S
        if self.limits.max_usd is not None and is_due:
            self._priced_s = elapsed_s
            why = "no source lists it"
            try:
                price = self.usd_per_h()
            except Exception as error:  # noqa: BLE001 - whatever a price list is, limits are kept
                price, why = None, f"{type(error).__name__}: {error}"
            if price is None and not self._has_no_price:
                self._has_no_price = True
                then = "rent counts once it can"
                if self._price is not None:
                    then = f"it counts as {format_usd(self._price)}/h"
                self.say(f"the price cannot be read now ({why}): {then}")
            self._price = self._price if price is None else price
            self._pay(elapsed_s)

    def _pay(self, elapsed_s: float) -> None:
        if self._price is not None:
            self.spent_usd += (elapsed_s - self._seen_s) * self._price / HOUR_S
            self._seen_s = elapsed_s

    def _tell(self, used: list[Used], what: str) -> None:
        self.say(f"{' and '.join(map(str, used))} used: {what}" if used else what)

    def _stop(self, pid: int, used: list[Used]) -> None:
        """Signal whom it concerns, each once, and say what was sent when it is the first of its kind."""
        tree = tree_of(pid, processes())
        number, receivers = signal.SIGTERM, _trainings(tree)
        if self.phase is GuardPhase.KILLED:
            number, receivers = signal.SIGKILL, tree
        elif self.phase is GuardPhase.ASKED and (savers := _savers(tree)):
            number, receivers = signal.SIGUSR1, savers
        is_first = all(number != sent for _, sent in self._signalled)
        for process in receivers:
            if (process.pid, number) not in self._signalled:
                self._signalled.add((process.pid, number))
                _send(process, number)
        if is_first:
            self._tell(used, _SENT[number])


def _send(process: Process, number: int) -> None:
    """To a process; through Slurm to the tasks of `srun`, which kills them at once when it gets SIGTERM."""
    job = os.environ.get("SLURM_JOB_ID")
    if process.name == "srun" and job is not None and number != signal.SIGKILL:
        with suppress(OSError, subprocess.SubprocessError):
            done = programs.run(("scancel", f"--signal={number}", job), timeout_s=_SLURM_ANSWERS_WITHIN_S)
            if not done.returncode:
                return
    with suppress(OSError):
        os.kill(process.pid, number)


_SENT = {
    signal.SIGUSR1: "the command is asked for a checkpoint and to end (SIGUSR1)",
    signal.SIGTERM: "the command is asked to end (SIGTERM)",
    signal.SIGKILL: "the command did not end: it is killed (SIGKILL)",
}


@dataclass(frozen=True, slots=True)
class Process:
    """A process of this machine."""

    pid: int
    parent: int = 0
    """Its pid."""
    caught: int = 0
    """The signals that it has handlers for, a bit each."""
    name: str = ""
    """Of its program, as the system keeps it."""

    def catches(self, number: int) -> bool:
        """Whether it has a handler for this signal."""
        return bool(self.caught >> (number - 1) & 1)


def processes(root: Path = Path("/proc")) -> dict[int, Process]:
    """All processes of this machine; none where there is no such folder (macOS)."""
    found = {}
    for folder in root.glob("[0-9]*"):
        # It may end while we read.
        with suppress(OSError, KeyError, ValueError):
            status = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines())
            pid = int(folder.name)
            found[pid] = Process(pid, int(status["PPid"]), int(status["SigCgt"], 16), status.get("Name", ""))
    return found


def tree_of(pid: int, known: Mapping[int, Process]) -> list[Process]:
    """A process and all that it started, parents first."""
    tree = [known.get(pid, Process(pid))]
    # It grows while we go through it.
    for parent in tree:
        tree.extend(child for child in known.values() if child.parent == parent.pid)
    return tree


# They die of SIGTERM and leave what they started alone.
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "env", "time", "uv"})


def _savers(tree: list[Process]) -> list[Process]:
    """The highest processes that have a handler for SIGUSR1: those below one are its own (data loaders)."""
    chosen: list[Process] = []
    covered: set[int] = set()
    for process in tree:
        if process.parent in covered:
            covered.add(process.pid)
        elif process.catches(signal.SIGUSR1):
            covered.add(process.pid)
            chosen.append(process)
    return chosen


def _trainings(tree: list[Process]) -> list[Process]:
    """Whom SIGTERM ends: the command, or what a chain of shells waits for.

    Below these, data loaders and services are their parent's to end.
    """
    chosen: list[Process] = []
    waiting = [tree[0]]
    for process in waiting:
        children = [child for child in tree if child.parent == process.pid] if process.name in _SHELLS else []
        waiting += children
        chosen += [] if children else [process]
    return chosen


# The first steady steps of a job beside their prediction, and what the job comes to at that pace.


LEAST_STEPS = 60
"""Three blocks of 20: the first holds warm-up and tuning, and the median leaves it out."""


class Canary(StrEnum):
    """What to do where steps are slower than the p90 of their prediction."""

    GO_ON = "go-on"
    ASK = "ask"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a recommendation says of a job on the GPUs that it runs on."""

    step_s: Interval
    """Of one optimizer step."""
    time_s: Quantiles
    """Of the whole job: wait, start-up and training."""
    cost_usd: Quantiles
    """Of all that."""
    num_steps: int | None
    """Of the whole job; None if unknown, as is the price."""
    usd_per_h: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What the first steps show."""

    expected: Expected
    step_s: float
    """Their median."""
    num_steps: int
    job_s: float | None
    """What the whole job takes at this pace; None where its length is unknown."""
    job_usd: float | None
    """What it costs then; None where its price is unknown."""

    @property
    def is_slower(self) -> bool:
        """Whether steps take longer than nine of ten were predicted to."""
        return self.step_s > self.expected.step_s.p90

    @property
    def held(self) -> bool:
        """Whether they are within p10 and p90."""
        return self.expected.step_s.p10 <= self.step_s <= self.expected.step_s.p90


@dataclass(frozen=True, slots=True, kw_only=True)
class Anew:
    """The job begun anew on another option of the answer, as the first steps correct it."""

    plan_id: str
    time_s: Quantiles
    cost_usd: Quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryVerdict:
    """First steps that were slower than predicted: what going on takes, and what is better now."""

    step_s: float
    predicted_s: Interval
    left_s: float
    """Of training, at this pace."""
    left_usd: float
    better: Anew | None
    """None where nothing of the answer is."""


def pace_of(expected: Expected, step_s: Interval | None, num_steps: int) -> Pace | None:
    """What the steps so far say of the whole job; None while there are too few.

    Only steps differ from the prediction: waiting, start-up and preemptions are taken as predicted.
    """
    if step_s is None or num_steps < LEAST_STEPS:
        return None
    job_s = job_usd = None
    if expected.num_steps is not None:
        more_s = expected.num_steps * (step_s.p50 - expected.step_s.p50)
        job_s = expected.time_s.p50 + more_s
        if expected.usd_per_h is not None:
            job_usd = expected.cost_usd.p50 + more_s * expected.usd_per_h / HOUR_S
    return Pace(expected=expected, step_s=step_s.p50, num_steps=num_steps, job_s=job_s, job_usd=job_usd)
