"""Run a command unchanged: its streams, its signals and its exit code are those it has without us."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Thread
from types import FrameType
from typing import TypeVar

from advisor.core import processes as programs
from advisor.core.devices import MIB, Device, number
from advisor.core.errors import InputError, UnknownGpuError
from advisor.core.gpus import resolve_gpu
from advisor.core.units import whole_number
from advisor.core.values import RunStatus
from advisor.receipt.guard import processes, tree_of

# The GPUs that a command gets: those of this machine, or what ``CUDA_VISIBLE_DEVICES`` leaves of them.

VARIABLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpusSeen:
    """What a command gets of a machine's GPUs; all of its GPUs count as of one kind."""

    name: str
    """In our catalog, or as the driver says it."""
    num_visible: int
    num_all: int


def gpus_seen(devices: Sequence[Device], environment: Mapping[str, str]) -> GpusSeen | None:
    """What a command gets; None where it gets none, or none is known.

    >>> card = Device(name="NVIDIA L4", memory_bytes=None, used_bytes=None, utilization=None)
    >>> gpus_seen([card] * 8, {VARIABLE: "0,1"})
    GpusSeen(name='L4', num_visible=2, num_all=8)
    """
    which = environment.get(VARIABLE)
    visible = list(devices) if which is None else []
    # As CUDA reads it: a wrong index ends the list. A name, such as a UUID, counts as the first card.
    for entry in filter(None, map(str.strip, (which or "").split(","))):
        index = 0 if entry[0].isalpha() else whole_number(entry)
        if index is None or index >= len(devices):
            break
        visible.append(devices[index])
    if not visible:
        return None
    name = visible[0].name
    with suppress(UnknownGpuError):
        name = resolve_gpu(name).name
    return GpusSeen(name=name, num_visible=len(visible), num_all=len(devices))


T = TypeVar("T")
# What a person, a scheduler or a cloud sends; others are crashes of the command itself.
_SENT = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
# The longest that a signal waits which did not wake us.
_DEAF_S = 0.2
_KILLED = 128
"""Shells add the signal's number to it."""
_FROM_OUTSIDE = {getattr(signal, name) for name in (*_SENT, "SIGKILL", "SIGXCPU", "SIGALRM")}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnding:
    """How a command ended; ``returncode`` is minus the number of a signal that ended it."""

    started_at: datetime
    duration_s: float
    returncode: int

    @property
    def exit_code(self) -> int:
        """As a shell has it."""
        return self.returncode if self.returncode >= 0 else _KILLED - self.returncode

    @property
    def status(self) -> RunStatus:
        """Finished, failed, or interrupted; a shell in between tells of a signal by its exit code."""
        if self.returncode == 0:
            return RunStatus.FINISHED
        is_outside = self.exit_code - _KILLED in _FROM_OUTSIDE
        return RunStatus.INTERRUPTED if is_outside else RunStatus.FAILED


def run_command(
    command: Sequence[str],
    environment: Mapping[str, str],
    while_it_runs: Callable[[datetime], T],
    watch: Callable[[float, int], None] | None = None,
) -> tuple[CommandEnding, T]:
    """Start the command, call a function, and wait until the command ends.

    Args:
        while_it_runs: gets the time of the start; another thread calls it.
        watch: gets the seconds since the start and the command's pid, some times a second; raises nothing.

    Returns:
        How the command ended, and what the function gave.

    Raises InputError: there is no such program, or it may not be run.
    """
    with _signals_for_the_command() as forward_to:
        started_at, start = datetime.now(UTC), time.monotonic()
        try:
            # What others opened for the command stays open, such as the pipe of make's job server.
            process = subprocess.Popen(
                command, stdout=programs.for_printing(), env=environment, close_fds=False
            )
        except OSError as error:
            raise InputError(
                f"cannot run {command[0]!r}: {error.strerror or error}. Give a program after --, as in:"
                " advisor run -- python train.py"
            ) from error
        forward_to(process)
        # Beside it, since a short command must not seem to take as long as looking around does.
        with ThreadPoolExecutor(2) as aside:
            # Threads of a pool have no context variables of ours unless they are given them.
            meanwhile = aside.submit(copy_context().run, while_it_runs, started_at)
            ending = aside.submit(process.wait)
            # In ``waitpid`` itself we would hear of a signal that came a moment before only at the end.
            while not wait((ending,), timeout=_DEAF_S).done:
                if watch is not None:
                    watch(time.monotonic() - start, process.pid)
            duration_s = time.monotonic() - start
            return CommandEnding(
                started_at=started_at, duration_s=duration_s, returncode=ending.result()
            ), meanwhile.result()


@contextmanager
def _signals_for_the_command() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Hand signals on to a process once it is given; we outlive it to keep the receipt."""
    processes: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def hand_on(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if not processes:
            early.append(number)
        elif not _reaches_both(number):
            processes[0].send_signal(number)

    def forward_to(process: subprocess.Popen[bytes]) -> None:
        processes.append(process)
        for caught in early:
            process.send_signal(caught)

    numbers = [getattr(signal, name) for name in _SENT if hasattr(signal, name)]
    # What is ignored, as nohup does with SIGHUP, the command ignores too.
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
    for caught in before:
        signal.signal(caught, hand_on)
    try:
        yield forward_to
    finally:
        for caught, handler in before.items():
            signal.signal(caught, handler)


def _reaches_both(number: int) -> bool:
    """Whether the command has the signal already: a terminal sends what is typed to all in its foreground."""
    if number not in (signal.SIGINT, signal.SIGQUIT):
        return False
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


# What a command did with its GPUs, sampled once a second while it ran: busy, memory, watts, clock.
#
# nvidia-smi runs beside the command and tells each second; nothing is added to the command itself.


_CARDS = "--query-gpu=uuid,memory.used,utilization.gpu,power.draw,clocks.sm"
_WHO = "--query-compute-apps=gpu_uuid,pid"
_EVERY_S = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """Of all GPUs that the command had, from its start to its end."""

    busy_share: float
    """Of the time in which some kernel ran."""
    peak_bytes: int
    """Of memory, on the fullest GPU."""
    mean_w: float | None
    """That one GPU drew; None where the driver does not tell."""
    mean_clock_hz: float | None
    """Of its multiprocessors; None as well."""
    num_unsure: int = 0
    """Cards that count because it is unknown which ones the command used."""


@dataclass(slots=True)
class _Card:
    """Of the busy share, watts and MHz of a GPU: how often each was told, and its sum."""

    peak_bytes: int = 0
    nums: list[int] = field(default_factory=lambda: [0] * 3)
    sums: list[float] = field(default_factory=lambda: [0.0] * 3)


@dataclass(slots=True)
class GpuSampler:
    """Sums over samples: a month of eight GPUs is as small as a second of one."""

    are_chosen: bool = False
    """Whether the cards that are sampled are those of the command."""
    _cards: dict[str, _Card] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    _ours: dict[int, bool] = field(default_factory=dict)

    def add(self, lines: Iterable[bytes]) -> None:
        """Count what nvidia-smi tells of cards, until it ends."""
        for uuid, *rest in _rows(lines):
            used_mib, *values = map(number, rest) if len(rest) == 4 else (None,) * 4
            if used_mib is None or values[0] is None:
                continue
            card = self._cards.setdefault(uuid, _Card())
            card.peak_bytes = max(card.peak_bytes, round(used_mib * MIB))
            for column, value in enumerate(values):
                card.nums[column] += value is not None
                card.sums[column] += value or 0.0

    def add_users(self, lines: Iterable[bytes]) -> None:
        """Keep the cards on which one of our own processes works: they are what the command started."""
        for uuid, *rest in _rows(lines):
            pid = whole_number(rest[0]) if rest else None
            if pid is not None and pid not in self._ours:
                self._ours[pid] = any(one.pid == pid for one in tree_of(os.getpid(), processes()))
            if pid is not None and self._ours[pid]:
                self._used.add(uuid)

    @property
    def use(self) -> GpuUse | None:
        """What was seen so far; None where nothing was."""
        is_sure = self.are_chosen or len(self._cards) == 1
        which = self._cards.keys() & self._used if not is_sure else self._cards.keys()
        cards = [self._cards[uuid] for uuid in which or self._cards]
        if not cards:
            return None

        def mean(column: int) -> float | None:
            num = sum(one.nums[column] for one in cards)
            return sum(one.sums[column] for one in cards) / num if num else None

        clock_mhz = mean(2)
        return GpuUse(
            busy_share=(mean(0) or 0.0) / 100,
            peak_bytes=max(one.peak_bytes for one in cards),
            mean_w=mean(1),
            mean_clock_hz=None if clock_mhz is None else clock_mhz * 1e6,
            num_unsure=0 if which else len(cards),
        )


def _rows(lines: Iterable[bytes]) -> Iterator[list[str]]:
    for line in lines:
        yield [entry.strip() for entry in line.decode(errors="replace").split(",")]


@contextmanager
def sampling(environment: Mapping[str, str]) -> Iterator[GpuSampler]:
    """Sample the GPUs that a command with this environment gets; without a driver nothing is seen."""
    visible = environment.get(VARIABLE)
    sampler = GpuSampler(are_chosen=visible is not None)
    with ExitStack() as running:
        if visible:
            running.enter_context(_read_by(sampler.add, _CARDS, f"--id={visible}"))
        elif visible is None:
            running.enter_context(_read_by(sampler.add, _CARDS))
            running.enter_context(_read_by(sampler.add_users, _WHO))
        yield sampler


@contextmanager
def _read_by(reader: Callable[[Iterable[bytes]], None], *query: str) -> Iterator[None]:
    """nvidia-smi in a session of its own: what is typed at the terminal is for the command."""
    command = ["nvidia-smi", query[0], "--format=csv,noheader,nounits", f"--loop={_EVERY_S}", *query[1:]]
    try:
        process = programs.start(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except OSError:
        yield
        return
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    thread = Thread(target=reader, args=(process.stdout,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        process.kill()
        process.wait()
        thread.join()
        process.stdout.close()
