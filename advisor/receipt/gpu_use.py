"""What a command did with its GPUs, sampled once a second while it ran: busy, memory, watts.

nvidia-smi runs beside the command and tells each second; nothing is added to the command itself.
"""

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Thread

from advisor.core import processes as programs
from advisor.core.devices import MIB, number
from advisor.core.units import whole_number
from advisor.receipt.command import VARIABLE
from advisor.receipt.guard import processes, tree_of

_CARDS = "--query-gpu=uuid,memory.used,utilization.gpu,power.draw"
_WHO = "--query-compute-apps=gpu_uuid,pid"
_EVERY_S = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """Of all GPUs that the command had, from its start to its end.

    Attributes:
        busy_share: of the time in which some kernel ran.
        peak_bytes: of memory, on the fullest GPU.
        mean_w: that one GPU drew; None where the driver does not tell.
        num_unsure: cards that count because nobody tells which ones the command used.
    """

    busy_share: float
    peak_bytes: int
    mean_w: float | None
    num_unsure: int = 0


@dataclass(slots=True)
class _Sums:
    """Over the samples of some cards."""

    num: int = 0
    busy: float = 0.0
    peak_bytes: int = 0
    num_w: int = 0
    watts: float = 0.0

    def add(self, used_mib: float, busy: float, watts: float | None) -> None:
        self.num += 1
        self.busy += busy / 100
        self.peak_bytes = max(self.peak_bytes, round(used_mib * MIB))
        if watts is not None:
            self.num_w += 1
            self.watts += watts


@dataclass(slots=True)
class GpuSampler:
    """Sums over samples: a month of eight GPUs is as small as a second of one.

    Attributes:
        are_chosen: whether the cards that are sampled are those of the command.
    """

    are_chosen: bool = False
    _cards: dict[str, _Sums] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    _ours: dict[int, bool] = field(default_factory=dict)

    def add(self, lines: Iterable[bytes]) -> None:
        """Count what nvidia-smi tells of cards, until it ends."""
        for uuid, *rest in _rows(lines):
            used_mib, busy, watts = map(number, rest) if len(rest) == 3 else (None,) * 3
            if used_mib is not None and busy is not None:
                self._cards.setdefault(uuid, _Sums()).add(used_mib, busy, watts)

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
        sums = [self._cards[uuid] for uuid in which or self._cards]
        if not sums:
            return None
        num_w = sum(one.num_w for one in sums)
        return GpuUse(
            busy_share=sum(one.busy for one in sums) / sum(one.num for one in sums),
            peak_bytes=max(one.peak_bytes for one in sums),
            mean_w=sum(one.watts for one in sums) / num_w if num_w else None,
            num_unsure=0 if which else len(sums),
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
        if visible != "":
            running.enter_context(
                _read_by(sampler.add, _CARDS, *(() if visible is None else (f"--id={visible}",)))
            )
        if visible is None:
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
