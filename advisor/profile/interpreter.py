"""Which Python runs the script."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from advisor.core import processes
from advisor.core.errors import InputError

_ANSWER_S = 20.0
_ALLOWED = "Name an executable such as .venv/bin/python, or the folder of a virtual environment."


def candidates(python: Path | None, environment: Mapping[str, str]) -> list[Path]:
    """Interpreters to try in order: the named one alone, or the active environment's, then ours.

    Raises:
        InputError: the named one is no file that can be run.
    """
    if python is not None:
        return [_checked(python)]
    pythons = []
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = environment.get(variable)
        if folder:
            pythons.append(Path(folder) / "bin" / "python")
    pythons.append(Path(sys.executable))
    # One environment may be known by two names; links are kept, since they mark environments.
    return list(dict.fromkeys(path for path in pythons if _can_run(path)))


def _checked(python: Path) -> Path:
    if python.is_dir() and _can_run(python / "bin" / "python"):
        return python / "bin" / "python"
    if not _can_run(python):
        raise InputError(
            f"`profile.python` {str(python)!r} is not an interpreter that can be run. {_ALLOWED}"
        )
    _check_is_python(python)
    return python


def _check_is_python(python: Path) -> None:
    """Ask harmlessly: any other program would take our files for its own arguments."""
    command = processes.isolated(python, "-S", "-c", "print('Python ' + 'speaks')")
    try:
        answer = processes.run(command, timeout_s=_ANSWER_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"`profile.python` {str(python)!r} does not start: {error}. {_ALLOWED}") from error
    if answer.stdout.strip() != b"Python speaks":
        raise InputError(f"`profile.python` {str(python)!r} is no Python interpreter. {_ALLOWED}")


def _can_run(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
