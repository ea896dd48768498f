"""The child in bubblewrap: a file system of what it needs, no network, no process that outlives it."""

import errno
import os
import platform
import shutil
import stat
import struct
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from advisor.core import processes
from advisor.core.errors import InputError
from advisor.profile.readable import (
    IN_ETC,
    IN_RUN,
    IN_SYS,
    LINKS,
    SYSTEM,
    Readable,
    hidden,
    home_folder,
    readable,
    special_files,
)

# The system calls that a sandboxed script does without, as a program for the kernel's filter (seccomp).
#
# Namespaces do not divide everything: keyrings and vsock are the machine's, and a user namespace of the
# script's own would give it back the capabilities that it lost. What is refused looks to the script like a
# kernel that does not have it, so that libraries do without.

# Offsets in the kernel's struct seccomp_data; of arguments the lower half, on little-endian machines.
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_ANY_BIT, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NEW_USER_NAMESPACE = 0x10000000
# bubblewrap takes 9,000, and there are others.
_MOST_ARGUMENTS = 6000
_TOO_MANY = (
    "`profile.sandbox`: the script's folders hold more sockets, named pipes and settings of repositories"
    " than can be covered (some 2,000). Remove those that no program uses (find . -type s -o -type p), or"
    " work in a copy without them."
)
# Unix, IPv4, IPv6 and netlink, which lists network interfaces. Of these the network namespace has its own.
_FAMILIES = (1, 2, 10, 16)
# Typing at a terminal (TIOCSTI), or pasting into a console (TIOCLINUX).
_TERMINAL_REQUESTS = (0x5412, 0x541C)
# Numbers of system calls from here on are those of x32, which the rules would not know.
_X32 = 0x40000000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """What the kernel calls an architecture, and the numbers of its system calls."""

    audit: int
    calls: dict[str, int]


# Their numbers are the same everywhere.
_EVERYWHERE = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435}
_CALLS_OF_MACHINES = {
    "x86_64": _Machine(
        audit=0xC000003E,
        calls=_EVERYWHERE
        | {
            "socket": 41, "socketpair": 53, "clone": 56, "unshare": 272, "ioctl": 16, "keyctl": 250,
            "add_key": 248, "request_key": 249, "userfaultfd": 323, "bpf": 321, "perf_event_open": 298,
            "setns": 308, "syslog": 103,
        },
    ),
    "aarch64": _Machine(
        audit=0xC00000B7,
        calls=_EVERYWHERE
        | {
            "socket": 198, "socketpair": 199, "clone": 220, "unshare": 97, "ioctl": 29, "keyctl": 219,
            "add_key": 217, "request_key": 218, "userfaultfd": 282, "bpf": 280, "perf_event_open": 241,
            "setns": 268, "syslog": 116,
        },
    ),
}  # fmt: skip
# io_uring makes sockets without the call of that name. The C library takes clone where there is no clone3,
# whose flags a filter cannot see.
_MISSING = (
    "keyctl", "add_key", "request_key", "io_uring_setup", "io_uring_enter", "io_uring_register",
    "userfaultfd", "bpf", "perf_event_open", "setns", "syslog", "clone3",
)  # fmt: skip


def filter_program() -> bytes | None:
    """The program for this machine; None where the numbers of its system calls are not known here."""
    machine = _CALLS_OF_MACHINES.get(platform.machine())
    if machine is None:
        return None
    calls = machine.calls
    program = [
        _step(_LOAD, _ARCHITECTURE),
        # A 32-bit program has other numbers.
        _step(_JUMP_IF_EQUAL, machine.audit, then=1),
        _refuse(errno.ENOSYS),
        _step(_LOAD, _NUMBER),
        _step(_JUMP_IF_AT_LEAST, _X32, otherwise=1),
        _refuse(errno.ENOSYS),
    ]
    for name in _MISSING:
        program += [_step(_JUMP_IF_EQUAL, calls[name], otherwise=1), _refuse(errno.ENOSYS)]
    for name in ("clone", "unshare"):
        namespace = [_step(_JUMP_IF_ANY_BIT, _NEW_USER_NAMESPACE, otherwise=1), _refuse(errno.EPERM)]
        program += _of_call(calls[name], 0, namespace)
    for name in ("socket", "socketpair"):
        known = [
            _step(_JUMP_IF_EQUAL, family, then=len(_FAMILIES) - at) for at, family in enumerate(_FAMILIES)
        ]
        program += _of_call(calls[name], 0, [*known, _refuse(errno.EAFNOSUPPORT)])
    for request in _TERMINAL_REQUESTS:
        typing = [_step(_JUMP_IF_EQUAL, request, otherwise=1), _refuse(errno.EPERM)]
        program += _of_call(calls["ioctl"], 1, typing)
    return b"".join([*program, _step(_RETURN, _ALLOW)])


def _of_call(number: int, argument: int, rules: list[bytes]) -> list[bytes]:
    """Rules on an argument of one call; the call's number is loaded before and after."""
    body = [_step(_LOAD, _ARGUMENTS + 8 * argument), *rules, _step(_LOAD, _NUMBER)]
    return [_step(_JUMP_IF_EQUAL, number, otherwise=len(body)), *body]


def _refuse(number: int) -> bytes:
    return _step(_RETURN, _REFUSE | number)


def _step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """One instruction of classic BPF; the jumps count the instructions to leave out."""
    return struct.pack("=HBBI", code, then, otherwise, value)


# Root's scripts in the sandbox run as nobody where nobody can read what they need.
#
# A user namespace with another number in it does not help: to the kernel the files are still root's. So the
# user is changed for real inside, where bubblewrap has set everything up, and root's closed folders that lie
# on the way are opened in the sandbox alone.

NOBODY = 65534
_SETPRIV = "setpriv"
_TRIAL_S = 20.0
# bubblewrap takes some thousand arguments.
_MOST_ENTRIES = 600
# For the change of user, after which none is left.
CAPABILITIES = tuple(
    part for name in ("SETUID", "SETGID", "SETPCAP") for part in ("--cap-add", f"CAP_{name}")
)
_CAN_READ = """
import os, sys, sysconfig
home, *read = sys.argv[1:]
for path in read:
    os.listdir(path) if os.path.isdir(path) else open(path).close()
for folder in (".", home, sysconfig.get_paths()["purelib"]):
    os.listdir(folder)
open(os.path.join(os.environ["TMPDIR"], "trial"), "w").close()
os.remove(os.path.join(os.environ["TMPDIR"], "trial"))
"""


def change_of_user() -> list[str] | None:
    """The start of a command that runs as nobody; None where this system has no such program."""
    program = processes.program(_SETPRIV)
    if program is None:
        return None
    return [
        program, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
        "--bounding-set=-all", "--inh-caps=-all",
    ]  # fmt: skip


def opened(needed: Iterable[Path], shown: Iterable[Path]) -> list[str] | None:
    """Arguments of bubblewrap that let the user nobody pass folders on the way; None if they hold too much.

    Each closed folder becomes one that is open, with the same entries, read-only. The entries keep their own
    permissions.

    Args:
        needed: files and folders that the user nobody must reach.
        shown: what is bound; the folders above are made for the sandbox and are open.
    """
    roots = {place for path in shown for place in (path, path.resolve())}
    ways = {place for path in needed for place in (path, path.resolve())}
    folders = {
        folder
        for path in ways
        for folder in (path, *path.parents)
        if _is_closed(folder) and any(folder.is_relative_to(root) for root in roots)
    }
    arguments: list[str] = []
    for folder in sorted(folders, key=lambda path: len(path.parts)):
        entries = list(os.scandir(folder))
        if len(entries) > _MOST_ENTRIES or len(arguments) > _MOST_ENTRIES * 3:
            return None
        arguments += ["--perms", "0755", "--tmpfs", str(folder)]
        for entry in entries:
            target = os.readlink(entry.path) if entry.is_symlink() else entry.path  # noqa: PTH115
            arguments += ["--symlink" if entry.is_symlink() else "--ro-bind", target, entry.path]
    return [*arguments, *(part for folder in folders for part in ("--remount-ro", str(folder)))]


def _is_closed(folder: Path) -> bool:
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    open_to_all = stat.S_IROTH | stat.S_IXOTH
    return stat.S_ISDIR(mode) and mode & open_to_all != open_to_all


def give_to_nobody(folder: Path, *, back: bool = False) -> None:
    """Make the user nobody the owner of the job's folder and what is in it, or root again."""
    owner = 0 if back else NOBODY
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)


def can_read(start: Sequence[str], paths: Sequence[Path], environment: Mapping[str, str]) -> bool:
    """Whether the user nobody can start the interpreter, read the paths, and write temporary files."""
    home = os.path.expanduser("~")  # noqa: PTH111
    words = [home if Path(home).is_dir() else "/", *map(str, paths)]
    try:
        trial = processes.run(
            [*start, "-I", "-c", _CAN_READ, *words], environment=environment, timeout_s=_TRIAL_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return trial.returncode == 0


_PROGRAM = "bwrap"
# bubblewrap takes the filter from a descriptor, which the shell opens.
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
_ROOT = (
    "the script runs as root and without `profile.sandbox`: nothing keeps it from reading credentials, those"
    " of this command included, or from changing the system. Use `profile.sandbox`, or profile as another"
    " user."
)


def check_sandbox() -> None:
    """Find out before anything is run whether there can be a sandbox.

    Raises InputError: bubblewrap is not installed, this machine lets it make no namespaces, or no one wrote
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
    """The script that a sandbox is for."""

    script: Path
    arguments: tuple[str, ...] = ()
    """Of the script; those that are paths may be read."""
    added: tuple[Path, ...] = ()
    """What else may be read, by `profile.sandbox_read`."""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandboxed:
    """A command in the sandbox."""

    command: tuple[str, ...]
    """With all that goes before it."""
    is_nobody: bool
    """It runs as nobody, not as who calls."""
    in_sight: tuple[Path, ...]
    """Files and folders of credentials that could not be hidden."""


def warning_for_root(*, in_sandbox: bool) -> tuple[str, ...]:
    """What root should know who profiles without a sandbox; nothing for others."""
    if in_sandbox or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return ()
    return (_ROOT,)


def sandboxed(command: Sequence[str | Path], folder: Path, inside: Inside | None = None) -> Sandboxed:
    """The command in a sandbox where only ``folder`` can be written, as nobody if root calls.

    Args:
        command: an interpreter and its arguments; the first is a program of ours.
        inside: the script that the command runs; without one the user stays the same, too.

    Raises InputError: what `profile.sandbox_read` names is not there, or too much has to be hidden.
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
    arguments += _read_only([*(f"/etc/{name}" for name in IN_ETC), *map(str, Path("/etc").glob("python3*"))])
    arguments += _read_only(f"/sys/{name}" for name in IN_SYS)
    arguments += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", *_read_only(IN_RUN)]
    # Loaders hand on tensors in /dev/shm, and the user nobody must be able to.
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
