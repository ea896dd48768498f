"""The one place that starts programs: nothing that they run comes from the folder one stands in.

A folder may be anybody's. A bare name of a program is looked up in the absolute folders of PATH alone, and no
Python of ours puts the working folder on its path. `tests/test_processes.py` lists what starts a process
elsewhere, and why.
"""

import errno
import fcntl
import getpass
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

# Variables of the environment by which one process of advisor tells another what to do.

STEPS_FOLDER_VARIABLE = "ADVISOR_STEPS_FOLDER"
"""Names the folder in which the processes of `advisor run` say how many steps they made."""
ANSWER_FILE_VARIABLE = "ADVISOR_ANSWER_FILE"
"""Where a command writes its answer as JSON, beside what it prints."""


_LIBRARY_PATH = "PYTHONPATH"

ADVISOR = (sys.executable, "-P", "-m", "advisor")
"""The command ``advisor`` as this interpreter has it; ``-m`` alone would import from the working folder."""


def user_name() -> str:
    """Of who runs this process; empty where the machine has no name for them."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def isolated(python: str | Path, *words: str | Path) -> tuple[str, ...]:
    """A command of a Python of any version that runs a line or file of ours.

    ``-I`` leaves out the working folder, PYTHONPATH and the user's own packages.
    """
    return (str(python), "-I", *map(str, words))


def program(name: str) -> str | None:
    """Where a program is; None if no absolute folder of PATH has it.

    An empty or relative entry of PATH means the folder one stands in.
    """
    return shutil.which(name, path=program_path()) if os.sep not in name else name


def program_path() -> str:
    """PATH without entries that mean the working folder."""
    return os.pathsep.join(filter(os.path.isabs, os.get_exec_path()))


def search_path(environment: Mapping[str, str]) -> dict[str, str]:
    """PYTHONPATH as this process reads it, for a child that works in another folder; empty without one."""
    entries = environment.get(_LIBRARY_PATH)
    if not entries:
        return {}
    return {_LIBRARY_PATH: os.pathsep.join(map(os.path.abspath, entries.split(os.pathsep)))}


def for_printing() -> int | None:
    """What a program gets as ``stdout`` that prints where we do: ours, or nowhere where ours takes no word.

    A closed one takes none (see ``advisor.__main__``), and the program must not fail for that.
    """
    access = fcntl.fcntl(1, fcntl.F_GETFL) & os.O_ACCMODE
    return subprocess.DEVNULL if access == os.O_RDONLY else None


def run(
    command: Sequence[str | Path], *, timeout_s: float, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end, with nothing to read, and keep what it prints.

    Args:
        command: a name or path, and arguments.
        timeout_s: after which it is killed.
        environment: of the program; ours if None.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it was killed.
    """
    return subprocess.run(
        located(command),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env=None if environment is None else dict(environment),
        timeout=timeout_s,
        check=False,
    )


def start(
    command: Sequence[str | Path],
    *,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Start a program.

    Args:
        command: a name or path, and arguments.
        stdin: what it reads; nothing by default.
        environment: of the program; ours if None.
        options: of ``subprocess.Popen``.

    Raises OSError: it cannot be started.
    """
    given = None if environment is None else dict(environment)
    return subprocess.Popen(located(command), stdin=stdin, env=given, **options)


def located(command: Sequence[str | Path]) -> list[str]:
    """The command with the path of its program. Raises FileNotFoundError: there is no such program."""
    name, *arguments = map(str, command)
    path = program(name)
    if path is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return [path, *arguments]
