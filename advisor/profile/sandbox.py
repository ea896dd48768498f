"""The child in bubblewrap: a file system of what it needs, no network, no process that outlives it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from advisor.core import processes
from advisor.core.errors import InputError
from advisor.profile.credential_files import hidden
from advisor.profile.nobody import CAPABILITIES, can_read, change_of_user, give_to_nobody, opened
from advisor.profile.readable import IN_ETC, IN_RUN, IN_SYS, LINKS, SYSTEM, Readable, home_folder, readable
from advisor.profile.seccomp import filter_program
from advisor.profile.special_files import special_files

_PROGRAM = "bwrap"
# bubblewrap takes the filter from a descriptor. The shell opens it, whoever starts the command.
_WITH_FILTER = ("/bin/sh", "-c", 'exec 9<"$0"; exec "$@"')
_FILTER_FD = "9"
# What --dev leaves out of /dev and CUDA needs.
_GPU_DEVICES = (
    *(f"/dev/nvidia{number}" for number in range(16)), "/dev/nvidiactl", "/dev/nvidia-uvm",
    "/dev/nvidia-uvm-tools", "/dev/nvidia-caps",
)  # fmt: skip
# What of /proc is the whole machine's. bubblewrap asks whether root may write to the folder /proc/sys, which
# nobody may, and leaves the files in it as they are.
_MACHINES = (
    "acpi", "asound", "bus", "driver", "fs", "irq", "mtrr", "pressure", "scsi", "sys", "sysrq-trigger", "tty",
)  # fmt: skip
# The names of the user's keys.
_KEYS = ("/proc/keys", "/proc/key-users")
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - in the sandbox alone
_ISOLATED = (
    "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session",
)  # fmt: skip
# Started by root, bubblewrap keeps root's capabilities, and with them a mount can be made writable again.
_NO_CAPABILITIES = ("--cap-drop", "ALL")
# bubblewrap takes 9,000, and there are others.
_MOST_ARGUMENTS = 6000
_TOO_MANY = (
    "`profile.sandbox`: the script's folders hold more sockets, named pipes and settings of repositories"
    " than can be covered (some 2,000). Remove those that no program uses (find . -type s -o -type p), or"
    " work in a copy without them."
)
_TRIAL_S = 20.0
_ROOT = (
    "the script runs as root and without `profile.sandbox`: nothing keeps it from reading credentials, those"
    " of this command included, or from changing the system. Use `profile.sandbox`, or profile as another"
    " user."
)


def check_sandbox() -> None:
    """Find out before anything is run whether there can be a sandbox.

    Raises:
        InputError: bubblewrap is not installed, this machine lets it make no namespaces, or nobody wrote
            down which system calls to refuse on such a machine.
    """
    if processes.program(_PROGRAM) is None:
        raise InputError(
            "`profile.sandbox` needs bubblewrap, which is not installed: apt install bubblewrap, dnf install"
            " bubblewrap; it exists for Linux only. Without `profile.sandbox`, docs/what-is-intercepted.md"
            " says what a profiled script can still write."
        )
    if filter_program() is None:
        raise InputError(
            "`profile.sandbox` is for x86_64 and aarch64: the system calls of this machine are not known."
        )
    try:
        nothing = processes.program("true") or "/bin/true"
        trial = processes.run(
            [_PROGRAM, *_ISOLATED, *_NO_CAPABILITIES, *_machine(), nothing], timeout_s=_TRIAL_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(
            f"`profile.sandbox`: bubblewrap does not start: {error}. Repair it or go without."
        ) from error
    if trial.returncode:
        why = trial.stderr.decode(errors="replace").strip()
        raise InputError(
            "`profile.sandbox`: this machine does not let bubblewrap isolate a process"
            f" ({why}). Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1; in"
            " a container: --security-opt seccomp=unconfined), or profile without `profile.sandbox`."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """The script that a sandbox is for.

    Attributes:
        script: the file.
        arguments: of the script; those that are paths may be read.
        added: what else may be read, by `profile.sandbox_read`.
        environment: of the script.
    """

    script: Path
    arguments: tuple[str, ...] = ()
    added: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandboxed:
    """A command in the sandbox.

    Attributes:
        command: with all that goes before it.
        is_nobody: it runs as nobody, not as who calls.
        in_sight: files and folders of credentials that could not be hidden.
    """

    command: tuple[str, ...]
    is_nobody: bool
    in_sight: tuple[Path, ...]


def warning_for_root(*, in_sandbox: bool) -> tuple[str, ...]:
    """What root should know who profiles without a sandbox; nothing for others."""
    if in_sandbox or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return ()
    return (_ROOT,)


def sandboxed(command: Sequence[str | Path], folder: Path, inside: Inside | None = None) -> Sandboxed:
    """The command in a sandbox where only ``folder`` can be written, as nobody if root calls.

    Args:
        command: an interpreter and its arguments; the first is a program of ours.
        folder: of the job.
        inside: the script that the command runs; without one the user stays the same, too.

    Raises:
        InputError: what `profile.sandbox_read` names is not there, or too much has to be hidden.
    """
    words = [str(part) for part in command]
    folder = folder.resolve()
    read = [] if inside is None else [inside.script.absolute().parent, Path(words[1]).parent]
    interpreter = Path(shutil.which(words[0]) or words[0])
    allowed = _allowed(interpreter, inside)
    shown = [*allowed.paths, *read[1:]]
    needed = [Path.cwd(), *interpreter.parents[:1], interpreter.resolve(), *read]
    credentials = hidden(os.environ, needed)
    masks = _masks([*credentials.paths, *allowed.private, *special_files(allowed.searched)], shown, folder)
    if len(masks) > _MOST_ARGUMENTS:
        raise InputError(_TOO_MANY)
    closing = [*masks, *_writable(folder)]
    binds = _binds(shown)
    start = [*_started(folder), *_ISOLATED, *_NO_CAPABILITIES, *_machine(), *binds]
    if inside is not None and os.geteuid() == 0:
        nobody = _as_nobody(start, [*needed, *allowed.paths], shown, closing)
        give_to_nobody(folder)
        seen = [inside.script.absolute(), Path(words[1])]
        if nobody is not None and can_read([*nobody, words[0]], seen, inside.environment):
            return Sandboxed(command=(*nobody, *words), is_nobody=True, in_sight=credentials.left)
        give_to_nobody(folder, back=True)
    return Sandboxed(command=(*start, *closing, "--", *words), is_nobody=False, in_sight=credentials.left)


def _allowed(interpreter: Path, inside: Inside | None) -> Readable:
    if inside is None:
        return readable(interpreter, None, environment=os.environ)
    return readable(
        interpreter, inside.script, arguments=inside.arguments, added=inside.added, environment=os.environ
    )


def _started(folder: Path) -> list[str]:
    path = folder / "seccomp"
    path.write_bytes(filter_program() or b"")
    return [*_WITH_FILTER, str(path), processes.program(_PROGRAM) or _PROGRAM, "--seccomp", _FILTER_FD]


def _machine() -> list[str]:
    """What every script finds: programs, libraries, devices, and folders of its own for what is temporary."""
    arguments = _read_only(SYSTEM)
    for path in LINKS:
        if os.path.islink(path):  # noqa: PTH114
            arguments += ["--symlink", os.readlink(path), path]  # noqa: PTH115
        else:
            arguments += _read_only([path])
    arguments += _read_only(f"/etc/{name}" for name in (*IN_ETC, *_pythons_in_etc()))
    arguments += _read_only(f"/sys/{name}" for name in IN_SYS)
    arguments += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", *_read_only(IN_RUN)]
    # Loaders hand on tensors in /dev/shm, and nobody must be able to.
    arguments += [part for path in _TEMPORARY for part in ("--perms", "1777", "--tmpfs", path)]
    arguments += _read_only(f"/proc/{name}" for name in _MACHINES)
    arguments += [part for path in _KEYS if os.path.exists(path) for part in ("--ro-bind", os.devnull, path)]  # noqa: PTH110
    arguments += [part for path in _GPU_DEVICES for part in ("--dev-bind-try", path, path)]
    # Also where it lies in one of the folders above.
    return [
        *arguments,
        *(part for home in _homes() for part in (*_folders(home.parent), "--tmpfs", str(home))),
    ]


def _homes() -> list[Path]:
    """By its own name and where its links lead; that of a daemon may be the programs' folder."""
    homes = dict.fromkeys((home_folder(), home_folder().resolve()))
    return [home for home in homes if home != Path("/") and not home.is_relative_to("/usr")]


def _pythons_in_etc() -> list[str]:
    return [path.name for path in Path("/etc").glob("python3*")]


def _read_only(paths: Iterable[str]) -> list[str]:
    return [part for path in paths for part in ("--ro-bind-try", path, path)]


def _binds(paths: Iterable[Path]) -> list[str]:
    """By their own names and by those that their links lead to, each folder once.

    A link in a folder that is bound is a link there, too.
    """
    places = {place: path for path in paths for place in (path.resolve(), path)}
    outer = [path for path in map(Path, SYSTEM) if not any(home.is_relative_to(path) for home in _homes())]
    arguments: list[str] = []
    for place in sorted(places, key=lambda place: len(place.parts)):
        if not any(place.is_relative_to(other) for other in outer):
            arguments += [*_folders(place.parent), "--ro-bind-try", str(places[place].resolve()), str(place)]
            outer.append(place)
    return arguments


def _folders(path: Path) -> list[str]:
    """The folder and those above it; bubblewrap alone would make them for root's eyes."""
    return [part for folder in (*reversed(path.parents), path) for part in ("--dir", str(folder))]


def _masks(hiding: Iterable[Path], shown: Sequence[Path], folder: Path) -> list[str]:
    """Nothing in the place of each path, wherever a folder that is shown brings it into sight."""
    nothing = folder / "nothing"
    nothing.touch()
    arguments: list[str] = []
    roots = {
        place: path.resolve() for path in (*shown, *map(Path, SYSTEM)) for place in (path.resolve(), path)
    }
    for path in dict.fromkeys(path.resolve() for path in hiding if path.exists()):
        empty = ["--tmpfs"] if path.is_dir() else ["--ro-bind", str(nothing)]
        places = [
            place / path.relative_to(real) for place, real in roots.items() if path.is_relative_to(real)
        ]
        arguments += [part for place in dict.fromkeys(places) for part in (*empty, str(place))]
    return arguments


def _as_nobody(
    start: Sequence[str], needed: Sequence[Path], shown: Sequence[Path], closing: Sequence[str]
) -> list[str] | None:
    change, ways = change_of_user(), opened(needed, shown)
    if change is None or ways is None:
        return None
    return [*start, *CAPABILITIES, *ways, *closing, "--", *change, "--"]


def _writable(folder: Path) -> list[str]:
    """The job's folder; all that was made for the mounts is read-only then."""
    own, here = str(folder), str(Path.cwd())
    made = [*_folders(folder.parent), *_folders(Path.cwd())]
    closed = [part for path in (*_homes(), Path("/")) for part in ("--remount-ro", str(path))]
    return [*made, "--bind", own, own, *closed, "--chdir", here]


def signalled(returncode: int | None) -> int | None:
    """Bubblewrap's exit code as subprocess has it: 128 + 9 means ended by signal 9.

    >>> signalled(137), signalled(1), signalled(None)
    (-9, 1, None)
    """
    if returncode is not None and 128 < returncode < 128 + 65:
        return 128 - returncode
    return returncode
