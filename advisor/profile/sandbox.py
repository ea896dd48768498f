"""The child in bubblewrap: a file system it cannot write to, no network, no process that outlives it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.core import processes
from advisor.core.errors import InputError
from advisor.profile.credential_files import Hidden, hidden
from advisor.profile.nobody import CAPABILITIES, can_read, change_of_user, give_to_nobody, opened

_PROGRAM = "bwrap"
# What --dev leaves out of /dev and CUDA needs.
_GPU_DEVICES = (
    *(f"/dev/nvidia{number}" for number in range(16)), "/dev/nvidiactl", "/dev/nvidia-uvm",
    "/dev/nvidia-uvm-tools", "/dev/nvidia-caps",
)  # fmt: skip
# Below /run are the sockets of docker and other daemons, which would write for the script; these are not.
_FILES_IN_RUN = ("/run/media", "/run/current-system", "/run/opengl-driver")
# What of /proc is the whole machine's. bubblewrap asks whether root may write to the folder /proc/sys, which
# nobody may, and leaves the files in it as they are.
_MACHINES = (
    "acpi", "asound", "bus", "driver", "fs", "irq", "mtrr", "pressure", "scsi", "sys", "sysrq-trigger", "tty",
)  # fmt: skip
_ISOLATED = (
    "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run",
    # Loaders hand on tensors there, and nobody must be able to.
    "--perms", "1777", "--tmpfs", "/dev/shm",  # noqa: S108 - in the sandbox alone
    *(part for name in _MACHINES for part in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")),
    *(part for path in _GPU_DEVICES for part in ("--dev-bind-try", path, path)),
    *(part for path in _FILES_IN_RUN for part in ("--ro-bind-try", path, path)),
    "--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent",
)  # fmt: skip
# Started by root, bubblewrap keeps root's capabilities, and with them a mount can be made writable again.
_NO_CAPABILITIES = ("--cap-drop", "ALL")
_TRIAL_S = 20.0
_ROOT = (
    "the script runs as root and without `profile.sandbox`: nothing keeps it from reading credentials, those"
    " of this command included, or from changing the system. Use `profile.sandbox`, or profile as another"
    " user."
)


def check_sandbox() -> None:
    """Find out before anything is run whether there can be a sandbox.

    Raises:
        InputError: bubblewrap is not installed, or this machine lets it make no namespaces.
    """
    if processes.program(_PROGRAM) is None:
        raise InputError(
            "`profile.sandbox` needs bubblewrap, which is not installed: apt install bubblewrap, dnf install"
            " bubblewrap; it exists for Linux only. Without `profile.sandbox`, docs/what-is-intercepted.md"
            " says what a profiled script can still write."
        )
    try:
        nothing = processes.program("true") or "/bin/true"
        trial = processes.run([_PROGRAM, *_ISOLATED, *_NO_CAPABILITIES, nothing], timeout_s=_TRIAL_S)
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


def sandboxed(
    command: Sequence[str | Path],
    folder: Path,
    *,
    script: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Sandboxed:
    """The command in a sandbox where only ``folder`` can be written, as nobody if root calls.

    Args:
        command: an interpreter and its arguments.
        folder: of the job.
        script: stays in sight wherever it lies; without one the user stays the same, too.
        environment: of the script, where ``script`` is given.
    """
    words = [str(part) for part in command]
    read = [] if script is None else [script.parent, *map(Path, words[1:2])]
    needed = [Path.cwd(), folder.resolve().parent, *_interpreter_of(words[0]), *read]
    hiding = hidden(os.environ, needed)
    closing = [*_hiding(hiding, folder), *_writable(folder)]
    if script is not None and environment is not None and os.geteuid() == 0:
        start = _as_nobody(needed, closing)
        give_to_nobody(folder)
        if start is not None and can_read([*start, words[0]], [script, *read], environment):
            return Sandboxed(command=(*start, *words), is_nobody=True, in_sight=hiding.left)
        give_to_nobody(folder, back=True)
    start = [_PROGRAM, *_ISOLATED, *_NO_CAPABILITIES, *closing, "--"]
    return Sandboxed(command=(*start, *words), is_nobody=False, in_sight=hiding.left)


def _interpreter_of(program: str) -> list[Path]:
    """By its own name, beside which the libraries of an environment are; what it links to is there, too."""
    path = shutil.which(program)
    return [] if path is None else [Path(path).parent, Path(path).resolve()]


def _as_nobody(needed: Sequence[Path], closing: Sequence[str]) -> list[str] | None:
    change, ways = change_of_user(), opened(needed, os.environ)
    if change is None or ways is None:
        return None
    return [_PROGRAM, *_ISOLATED, *_NO_CAPABILITIES, *CAPABILITIES, *ways, *closing, "--", *change, "--"]


def _hiding(hiding: Hidden, folder: Path) -> list[str]:
    nothing = folder.resolve() / "nothing"
    nothing.touch()
    arguments: list[str] = []
    for path in hiding.paths:
        empty = ["--tmpfs"] if path.is_dir() else ["--ro-bind", str(nothing)]
        arguments += [*empty, str(path)]
    return arguments


def _writable(folder: Path) -> list[str]:
    own = str(folder.resolve())
    return ["--bind", own, own, "--chdir", str(Path.cwd())]


def signalled(returncode: int | None) -> int | None:
    """Bubblewrap's exit code as subprocess has it: 128 + 9 means ended by signal 9.

    >>> signalled(137), signalled(1), signalled(None)
    (-9, 1, None)
    """
    if returncode is not None and 128 < returncode < 128 + 65:
        return 128 - returncode
    return returncode
