"""A guard beside a command: it counts rent and time, warns early, and stops the command in order at a limit.

It is asked again and again while the command runs, and decides by numbers alone. A guard that is killed kills
nothing: the command goes on.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

from advisor.core.errors import AdvisorError
from advisor.core.units import format_duration, format_usd

WARNED_SHARE = 0.8
# Of a limit at most: a short run is not half grace.
MOST_GRACE_SHARE = 0.1
LAST_SHARE_OF_GRACE = 0.25
PRICE_AGAIN_S = 600.0
_S_PER_H = 3600.0


class Phase(IntEnum):
    """How far it has come; a command never goes back to an earlier one."""

    FREE = 0
    WARNED = 1
    ASKED = 2  # for a checkpoint, by SIGUSR1
    TERMINATED = 3  # SIGTERM
    KILLED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a command may take.

    Attributes:
        max_s: from its start.
        max_usd: of rent, of all machines that train together.
        grace_s: before the limit, in which the command may save a checkpoint.
    """

    max_s: float | None = None
    max_usd: float | None = None
    grace_s: float = 120.0

    def phase(self, elapsed_s: float, spent_usd: float, usd_per_h: float) -> Phase:
        """What to do now.

        >>> limits = Limits(max_s=3600)
        >>> [limits.phase(s, 0.0, 0.0).name for s in (0, 2880, 3480, 3570, 3600)]
        ['FREE', 'WARNED', 'ASKED', 'TERMINATED', 'KILLED']
        """
        phases = [Phase.FREE]
        if self.max_s is not None:
            phases.append(_phase(elapsed_s, self.max_s, self.grace_s))
        if self.max_usd is not None:
            grace_usd = self.grace_s * usd_per_h / _S_PER_H
            phases.append(_phase(spent_usd, self.max_usd, grace_usd))
        return max(phases)


def _phase(used: float, limit: float, grace: float) -> Phase:
    """By what is left of one limit, in its own unit."""
    grace = min(grace, MOST_GRACE_SHARE * limit)
    starts = {
        Phase.KILLED: limit,
        Phase.TERMINATED: limit - LAST_SHARE_OF_GRACE * grace,
        Phase.ASKED: limit - grace,
        Phase.WARNED: WARNED_SHARE * limit,
    }
    return next((phase for phase, start in starts.items() if used >= start), Phase.FREE)


@dataclass(slots=True, kw_only=True)
class Guard:
    """Watches one command.

    Attributes:
        usd_per_h: gives the present price of all machines; None while it cannot be known.
        say: gets a line for a person.
    """

    limits: Limits
    usd_per_h: Callable[[], float | None]
    say: Callable[[str], None]
    phase: Phase = Phase.FREE
    spent_usd: float = 0.0
    _end_s: float | None = None
    _price: float = 0.0
    _priced_s: float = -PRICE_AGAIN_S
    _seen_s: float = 0.0
    _signalled: set[tuple[int, int]] = field(default_factory=set)

    @property
    def has_stopped_it(self) -> bool:
        """Whether the command was asked to end."""
        return self.phase >= Phase.ASKED

    def stop(self, elapsed_s: float) -> None:
        """End the command in order, whatever its limits say."""
        self._end_s = elapsed_s + self.limits.grace_s

    def look(self, elapsed_s: float, pid: int) -> None:
        """Count what was used up to now, and do what the limits ask for."""
        self._count(elapsed_s)
        phase = max(self.phase, self.limits.phase(elapsed_s, self.spent_usd, self._price))
        if self._end_s is not None:
            left_s = self._end_s - elapsed_s
            last_s = LAST_SHARE_OF_GRACE * self.limits.grace_s
            ending = Phase.KILLED if left_s <= 0 else Phase.TERMINATED if left_s <= last_s else Phase.ASKED
            phase = max(phase, ending)
        if phase > self.phase:
            self.phase = phase
            self.say(self._words(elapsed_s))
        if self.phase >= Phase.ASKED:
            self._stop(pid)

    def _count(self, elapsed_s: float) -> None:
        self.spent_usd += (elapsed_s - self._seen_s) * self._price / _S_PER_H
        self._seen_s = elapsed_s
        if self.limits.max_usd is not None and elapsed_s - self._priced_s >= PRICE_AGAIN_S:
            self._priced_s = elapsed_s
            # A price list that cannot be read leaves the price, and the limit, as they were.
            with suppress(AdvisorError, OSError, ValueError):
                price = self.usd_per_h()
                self._price = self._price if price is None else price

    def _words(self, elapsed_s: float) -> str:
        used = []
        if self.limits.max_s is not None:
            used.append(f"{format_duration(elapsed_s)} of {format_duration(self.limits.max_s)}")
        if self.limits.max_usd is not None:
            used.append(f"{format_usd(self.spent_usd)} of {format_usd(self.limits.max_usd)}")
        does = {
            Phase.WARNED: "the command goes on until the limit",
            Phase.ASKED: "the command is asked for a checkpoint and to end",
            Phase.TERMINATED: "the command is told to end (SIGTERM)",
            Phase.KILLED: "the command did not end and is killed",
        }
        return ": ".join(filter(None, (f"{' and '.join(used)} used" if used else "", does[self.phase])))

    def _stop(self, pid: int) -> None:
        tree = tree_of(pid, processes())
        number, receivers = signal.SIGTERM, _trainings(tree)
        if self.phase is Phase.KILLED:
            number, receivers = signal.SIGKILL, tree
        elif self.phase is Phase.ASKED and (savers := _savers(tree)):
            number, receivers = signal.SIGUSR1, savers
        for process in receivers:
            if (process.pid, number) not in self._signalled:
                self._signalled.add((process.pid, number))
                with suppress(OSError):
                    os.kill(process.pid, number)


@dataclass(frozen=True, slots=True)
class Process:
    """A process of this machine.

    Attributes:
        parent: its pid.
        caught: the signals that it has handlers for, a bit each.
        name: of its program, as the system keeps it.
    """

    pid: int
    parent: int = 0
    caught: int = 0
    name: str = ""

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
