"""The child in bubblewrap: a file system it cannot write to, no network, no process that outlives it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from advisor.errors import InputError

_PROGRAM = "bwrap"
# What --dev leaves out of /dev and CUDA needs.
_GPU_DEVICES = (
    *(f"/dev/nvidia{number}" for number in range(16)), "/dev/nvidiactl", "/dev/nvidia-uvm",
    "/dev/nvidia-uvm-tools", "/dev/nvidia-caps",
)  # fmt: skip
# Below /run are the sockets of docker and other daemons, which would write for the script; these are not.
_FILES_IN_RUN = ("/run/media", "/run/current-system", "/run/opengl-driver")
_ISOLATED = (
    "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run",
    *(part for path in _GPU_DEVICES for part in ("--dev-bind-try", path, path)),
    *(part for path in _FILES_IN_RUN for part in ("--ro-bind-try", path, path)),
    "--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent",
    # Started by root, bubblewrap keeps root's capabilities, and with them a mount can be made writable again.
    "--cap-drop", "ALL",
)  # fmt: skip
_TRIAL_S = 20.0


def check_sandbox() -> None:
    """Find out before anything is run whether there can be a sandbox.

    Raises:
        InputError: bubblewrap is not installed, or this machine lets it make no namespaces.
    """
    if shutil.which(_PROGRAM) is None:
        raise InputError(
            "--sandbox needs bubblewrap, which is not installed: apt install bubblewrap, dnf install"
            " bubblewrap; it exists for Linux only. Without --sandbox, docs/what-is-intercepted.md says"
            " what a profiled script can still write."
        )
    try:
        trial = subprocess.run(
            [_PROGRAM, *_ISOLATED, "true"], capture_output=True, text=True, timeout=_TRIAL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(
            f"--sandbox: bubblewrap does not start: {error}. Repair it or go without."
        ) from error
    if trial.returncode:
        raise InputError(
            f"--sandbox: this machine does not let bubblewrap isolate a process ({trial.stderr.strip()})."
            " Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1; in a container:"
            " --security-opt seccomp=unconfined), or profile without --sandbox."
        )


def sandboxed(command: Sequence[str | Path], folder: Path) -> list[str | Path]:
    """The command in a sandbox where only ``folder`` can be written."""
    own = str(folder.resolve())
    return [_PROGRAM, *_ISOLATED, "--bind", own, own, "--chdir", Path.cwd(), "--", *command]


def signalled(returncode: int | None) -> int | None:
    """Bubblewrap's exit code as subprocess has it: 128 + 9 means ended by signal 9.

    >>> signalled(137), signalled(1), signalled(None)
    (-9, 1, None)
    """
    if returncode is not None and 128 < returncode < 128 + 65:
        return 128 - returncode
    return returncode
