"""One job in a child process, from its folder to what it recorded."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, cast

from advisor.core import processes
from advisor.core.errors import InputError, ProfileError, TraceError
from advisor.core.files import temporary_folder
from advisor.core.findings.about_traces import CredentialsInSight
from advisor.core.redaction import redact_with
from advisor.payload.protocol import VERSION, FakeSamples, Gpu, Notice, ScriptJob, Status
from advisor.profile.child_files import AppendedLines, open_foreign
from advisor.profile.environment import child_environment, visible_devices, withheld
from advisor.profile.failures import failure
from advisor.profile.readable import unreadable
from advisor.profile.recording import ChildRecording, Timeline, cut, read_recording, read_timeline
from advisor.profile.sandbox import Inside, Sandboxed, sandboxed, signalled

# Processes that a script left running in sessions of their own.
#
# Ending the child's process group misses those. They inherit the child's environment, so a mark in it
# finds them wherever they went; that needs Linux, elsewhere they stay.

MARK = "_GPU_ADVISOR_RUN"
_PROCESSES = Path("/proc")


def new_mark() -> dict[str, str]:
    """A variable for the environment of one child."""
    return {MARK: uuid.uuid4().hex}


def end_leftovers(mark: dict[str, str]) -> list[int]:
    """Kill every process whose environment carries the mark; their ids."""
    wanted = "=".join([MARK, mark[MARK]]).encode()
    ended = []
    for entry in _PROCESSES.glob("[0-9]*"):
        # Others' processes cannot be read, and some end while we look.
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
                ended.append(int(entry.name))
    return ended


# Starts the child process, waits for it, and leaves nothing of it running.

_POLL_S = 0.03
# Longer than the launcher takes to kill what it can.
_LAUNCHER_S = 6.0
_LAUNCHER = Path(__file__).with_name("launcher.py")

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnding:
    """How the child ended."""

    returncode: int | None
    """Of the process, negative for a signal; None if it ran into the timeout."""
    log: str


def run_child(
    command: Sequence[str | Path], *, environment: dict[str, str], progress_path: Path, timeout_s: float,
    progress: Progress | None, stall_s: float = math.inf,
) -> ChildEnding:  # fmt: skip
    """Run a command to its end, or kill it and its process group at the timeout.

    It has a pseudo-terminal without a keyboard, and its parent never had a credential (``launcher.py``).

    Args:
        progress_path: the process appends lines to it, each in one piece.
        timeout_s: seconds that the whole may take.
        progress: called with each line.
        stall_s: seconds that may pass from one line to the next.

    Raises:
        InputError: the interpreter cannot be started.
        KeyboardInterrupt: passed on after the process group was killed.
    """
    with unreadable(), PseudoTerminal() as terminal:
        with _started(command, environment, terminal) as (process, report):
            lines = AppendedLines(progress_path, progress)
            returncode = _wait(process, terminal, lines, timeout_s, stall_s)
            _check_started(report, command)
        terminal.read_rest()
        return ChildEnding(returncode=returncode, log=terminal.tail())


@contextlib.contextmanager
def _started(
    command: Sequence[str | Path], environment: dict[str, str], terminal: PseudoTerminal
) -> Iterator[tuple[subprocess.Popen[bytes], BinaryIO]]:
    mark = new_mark()
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb", buffering=0) as report:
        os.set_blocking(ours, False)
        try:
            words = (str(os.getpid()), str(theirs), *processes.located(command))
            # Its own session and so its own process group: all it starts can be ended at once.
            process = processes.start(
                processes.isolated(sys.executable, "-S", str(_LAUNCHER), *words), pass_fds=[theirs],
                stdin=terminal.stdin, stdout=terminal.stdout, stderr=terminal.stdout,
                environment=environment | mark, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(theirs)
        try:
            yield process, report
        finally:
            _end(process)
            end_leftovers(mark)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the launcher, which kills all that the script left, and the group: it may be gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
        # A script may have stopped it, too. After its end this does nothing.
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(timeout=_LAUNCHER_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _check_started(report: BinaryIO, command: Sequence[str | Path]) -> None:
    number = report.read(8) or b""
    if number.isdigit():
        raise InputError(
            f"cannot start the Python interpreter {str(command[0])!r}: {os.strerror(int(number))}."
            " Name one that has torch with `profile.python`."
        )


def _wait(
    process: subprocess.Popen[bytes], terminal: PseudoTerminal, lines: AppendedLines, timeout_s: float,
    stall_s: float,
) -> int | None:  # fmt: skip
    heard_at_s = time.monotonic()
    deadline_s = heard_at_s + timeout_s
    returncode = process.poll()
    while returncode is None and time.monotonic() < min(deadline_s, heard_at_s + stall_s):
        terminal.read_for(_POLL_S)
        returncode = process.poll()
        if lines.tell():
            heard_at_s = time.monotonic()
    lines.tell_all()
    return returncode


# A pipe that broke, say, has nothing to do with the folder.
_UNUSABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOENT)
# A result needs no more.
_ROOM_BYTES = 2**20
# A profiler's export of one iteration takes some hundred megabytes.
_MOST_TIMELINE_BYTES = 2**31
# Characters of a line of progress.
_MOST_TOLD = 500
DEFAULT_TIMEOUT_S = 300.0
CHILD = Path(__file__).resolve().parents[1] / "payload" / "child.py"
TEMPORARY_NAME = "tmp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptGpu:
    """The GPU that the script believes it has; a data-centre GPU that can do all precisions."""

    name: str = "NVIDIA A100-SXM4-80GB"
    compute_capability: str = "8.0"
    num_sms: int = 108
    memory_bytes: int = 85_097_971_712


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptJob:
    """What the child is to do."""

    script: str
    arguments: tuple[str, ...]
    backend: str
    gpu: ScriptGpu
    fake_data: FakeSamples | None = None
    """Fields and number of samples that take the place of the script's data."""
    world_size: int | None = None
    """Processes that the script believes to be rank 0 of."""
    is_timed: bool = False
    """On the CPU, its steps are timed and nothing is recorded."""
    skip_patches: tuple[str, ...] = field(default=())
    """Left out, for tests."""
    shortcuts: bool = True
    """What repeats is recognised; False works it out each time, for tests."""
    handed_on: tuple[str, ...] = ()
    """Names of variables that the script gets although scripts do not need them."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the environment, as a launcher sets them."""
    memory_bytes: int | None = None
    """Of main memory that it may hold; None for a part of what is free."""


# Others work on the machine, too.
_MOST_OF_FREE = 0.8
_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


def allowed_bytes() -> int | None:
    """The part of the free main memory that a script may hold; None where the system does not say."""
    free = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = _MEMINFO.read_text(encoding="utf-8")
        free.append(1024 * int(text.partition("MemAvailable:")[2].split()[0]))
    with contextlib.suppress(OSError, ValueError):  # "max" is no limit
        most, used = (int((_GROUP / f"memory.{name}").read_text("utf-8")) for name in ("max", "current"))
        free.append(most - used)
    return int(_MOST_OF_FREE * min(free)) if free else None


def written(job: AttemptJob, folder: Path, *, module: str = "run") -> ScriptJob:
    """The job as the child reads it, with the files that it writes to in ``folder``."""
    return {
        "version": VERSION,
        "module": module,
        "result": str(folder / "result.json"),
        "progress": str(folder / "progress.txt"),
        "timeline": str(folder / "timeline.json"),
        "script": job.script,
        "arguments": list(job.arguments),
        "backend": job.backend,
        "is_timed": job.is_timed,
        "gpu": cast("Gpu", asdict(job.gpu)),
        "fake_data": job.fake_data,
        "world_size": job.world_size,
        "withheld": list(withheld(os.environ, (*job.handed_on, *job.variables))),
        "memory_bytes": job.memory_bytes or allowed_bytes(),
        "skip_patches": list(job.skip_patches),
        "shortcuts": job.shortcuts,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildLimits:
    """How the child is held."""

    timeout_s: float
    sandbox: bool
    sandbox_read: tuple[Path, ...] = ()


def record(
    job: AttemptJob, interpreters: Sequence[Path], limits: ChildLimits, progress: Progress | None
) -> tuple[ChildRecording, Timeline | None]:
    """What the first interpreter that has torch recorded, and on a real GPU what ran there.

    Raises:
        InputError: no interpreter, none with torch, no Python script, no usable temporary folder.
        ProfileError: the script failed or made no iteration.
    """
    # However often a script says that it needs another start.
    deadline_s = time.monotonic() + limits.timeout_s
    while interpreters:
        if progress is not None:
            progress(f"profiling {job.script} with {interpreters[0]}")
        left = replace(limits, timeout_s=max(0.0, deadline_s - time.monotonic()))
        recording, timeline, ending = _attempt(job, interpreters[0], left, progress)
        status = None if recording is None else recording["status"]
        if recording is not None and status == Status.OK:
            return recording, timeline
        if status == Status.NEEDS_TORCHRUN and job.world_size is None and job.backend in ("auto", "fake"):
            job, interpreters = replace(job, world_size=1, backend="fake"), interpreters[:1]
        elif status == Status.NO_TORCH and len(interpreters) > 1:
            interpreters = interpreters[1:]
        else:
            raise failure(
                recording, script=job.script, python=str(interpreters[0]), returncode=ending.returncode,
                log=ending.log, timeout_s=limits.timeout_s,
            )  # fmt: skip
    raise InputError("no Python interpreter was found: name one that has torch with `profile.python`.")


def _attempt(
    job: AttemptJob, interpreter: Path, limits: ChildLimits, progress: Progress | None
) -> tuple[ChildRecording | None, Timeline | None, ChildEnding]:
    with job_folder() as folder:
        whole = written(job, folder)
        job_path = folder / "job.json"
        job_path.write_text(json.dumps(whole), encoding="utf-8")
        environment = child_environment(os.environ, folder / TEMPORARY_NAME, handed_on=job.handed_on)
        environment |= {**job.variables, **visible_devices(job.backend, os.environ)}
        command: list[str | Path] = [interpreter, CHILD, job_path]
        inside = None
        if limits.sandbox:
            script, added = Path(job.script), limits.sandbox_read
            inside = sandboxed(
                command, folder,
                Inside(script=script, arguments=job.arguments, added=added, environment=environment),
            )  # fmt: skip
        ending = run_child(
            command if inside is None else inside.command,
            environment=environment,
            progress_path=Path(whole["progress"]),
            timeout_s=limits.timeout_s,
            progress=None if progress is None else lambda line: progress(cut(line, _MOST_TOLD)),
        )
        recording = read_recording(Path(whole["result"]))
        if recording is None and shutil.disk_usage(folder).free < _ROOM_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        timeline = _timeline(recording, Path(whole["timeline"]))
    returncode = ending.returncode if inside is None else signalled(ending.returncode)
    shown = ChildEnding(returncode=returncode, log=redact_with(ending.log, os.environ))
    return _with_sandbox(recording, inside), timeline, shown


def _timeline(recording: ChildRecording | None, path: Path) -> Timeline | None:
    """What ran on a real GPU, if the recording says that it was measured."""
    if recording is None or recording["status"] != Status.OK or "iteration_s" not in recording:
        return None
    file = open_foreign(path, _MOST_TIMELINE_BYTES)
    if file is not None:
        file.close()
    try:
        return read_timeline(path)
    except TraceError as error:
        raise ProfileError(f"what ran on the GPU is not known: {error}") from error


def _with_sandbox(recording: ChildRecording | None, inside: Sandboxed | None) -> ChildRecording | None:
    if recording is None or inside is None:
        return recording
    warnings: list[Notice] = [
        {"code": CredentialsInSight.code, "facts": {"path": str(path)}} for path in inside.in_sight
    ]
    return {
        **recording,
        "warnings": [*recording.get("warnings", ()), *warnings],
        "in_sandbox": True,
        "is_nobody": inside.is_nobody,
    }


@contextlib.contextmanager
def job_folder() -> Iterator[Path]:
    """A folder for everything of one run, removed after it, with one for temporary files of the script.

    Raises InputError: there is no room, or no temporary folder that can be used.
    """
    try:
        with temporary_folder("profile") as folder:
            (folder / TEMPORARY_NAME).mkdir()
            yield folder
    except OSError as error:
        if error.errno not in _UNUSABLE:
            raise
        raise InputError(
            f"cannot use the temporary folder: {error}. Make room there, or name another one with the"
            " variable TMPDIR."
        ) from error


_TAIL_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024
# What a system keeps of output that was not read yet is far less.
_MOST_LEFT_BYTES = 2**20
ROWS, COLUMNS = 24, 80
_CTRL_D = b"\x04"
_Attributes = list[int | list[bytes | int]]  # of a terminal, as termios has them
_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")


class PseudoTerminal:
    """Both ends of it; where the system has none to give, a pipe."""

    def __init__(self) -> None:
        self._settings: _Attributes | None = None
        self._tail = bytearray()
        try:
            self._ours, self._theirs = os.openpty()
        except OSError:
            # A container without /dev/pts.
            self._ours, self._theirs = os.pipe()
            self.stdin: int = subprocess.DEVNULL
        else:
            self.stdin = self._theirs
            import termios

            settings = termios.tcgetattr(self._theirs)
            settings[0], settings[3] = 0, 0
            settings[1] &= ~termios.OPOST
            settings[6][termios.VMIN] = settings[6][termios.VTIME] = 0
            termios.tcsetattr(self._theirs, termios.TCSANOW, settings)
            termios.tcsetwinsize(self._theirs, (ROWS, COLUMNS))
            self._settings = termios.tcgetattr(self._theirs)
        self.stdout = self._theirs
        os.set_blocking(self._ours, False)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *_: object) -> None:
        # Ours alone would see a hang-up whenever the script closes its own, so theirs is kept until now.
        os.close(self._theirs)
        os.close(self._ours)

    def read_for(self, seconds: float) -> None:
        """Take what is printed in this time: a process that prints must never wait for a reader."""
        deadline_s = time.monotonic() + seconds
        self._end_input()
        ready = select.poll()
        ready.register(self._ours, select.POLLIN)
        while (left_s := deadline_s - time.monotonic()) > 0:
            if not ready.poll(left_s * 1000) or not self._read():
                return

    def read_rest(self) -> None:
        """Take what is left of a script that has ended; someone may still print, without an end."""
        num_bytes = 0
        while (read := self._read()) and num_bytes < _MOST_LEFT_BYTES:
            num_bytes += read

    def tail(self) -> str:
        """The end of what was printed, as lines of plain text."""
        return plain(bytes(self._tail).decode("utf-8", errors="replace"))

    def _read(self) -> int:
        try:
            chunk = os.read(self._ours, _CHUNK_BYTES)
        except OSError:
            return 0
        self._tail += chunk
        del self._tail[:-_TAIL_BYTES]
        return len(chunk)

    def _end_input(self) -> None:
        """Who makes the terminal wait for a key, as readline and so pdb do, gets Ctrl-D and the end again."""
        if self._settings is None:
            return
        import termios

        with contextlib.suppress(OSError, termios.error):
            settings = termios.tcgetattr(self._theirs)
            if settings == self._settings:
                return
            # To who reads whole lines Ctrl-D is the end. To who reads keys it is one, and must be the last:
            # with our settings first, no read that begins after it waits.
            if not settings[3] & termios.ICANON:
                termios.tcsetattr(self._theirs, termios.TCSANOW, self._settings)
            os.write(self._ours, _CTRL_D)


def plain(text: str) -> str:
    r"""Text without colours and cursor movements; of a line that was written over, what was left to see.

    >>> plain("\x1b[32m 10%\r 100%\x1b[0m\ndone\r\n")
    ' 100%\ndone\n'
    """
    lines = _SEQUENCES.sub("", text).split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
