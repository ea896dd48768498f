"""Temporary folders that do not outlive their process for long: the next one removes what SIGKILL left.

A folder is locked while it is in use, and the kernel takes the lock away with the process. Neither age nor
process ids would tell: runs last for days, and ids are given anew.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from advisor.core.removing import FLAGS, empty, empty_opened

# Not the names of before, which are not locked.
PREFIX = "gpu-advisor-"
_NAME = re.compile(rf"{PREFIX}[a-z]+-[a-z0-9_]{{8}}")
# Root gives a sandboxed script's folder to nobody.
_NOBODY = 65534
_MOST_TRIES = 10


@contextlib.contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """A new folder for this user alone, removed at the end, with those that killed processes left.

    Args:
        purpose: one lower-case word of its name.

    Raises:
        OSError: there is no room, or no temporary folder that can be used.
    """
    remove_left()
    folder, lock = _made(purpose)
    try:
        yield folder
    finally:
        empty(folder)
        with contextlib.suppress(RecursionError):
            shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def remove_left() -> list[Path]:
    """Remove the folders of processes of this user that are not there any more; those."""
    if sys.platform == "win32":
        return []
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        found = [Path(entry.path) for entry in entries if _NAME.fullmatch(entry.name)]
        return [folder for folder in found if _is_removed(folder)]
    return []


def _made(purpose: str) -> tuple[Path, int | None]:
    for _ in range(_MOST_TRIES):
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-"))
        lock = _locked(folder)
        # Another process may have found it before it was locked, and removed it.
        if lock is not None and os.fstat(lock).st_nlink == 0:
            os.close(lock)
            continue
        if folder.is_dir():
            return folder, lock
    raise FileNotFoundError(2, "temporary folders vanish as soon as they are made", tempfile.gettempdir())


def _is_removed(folder: Path) -> bool:
    lock = _locked(folder)
    if lock is None:
        return False
    try:
        if os.fstat(lock).st_uid not in ((0, _NOBODY) if os.geteuid() == 0 else (os.geteuid(),)):
            return False
        empty_opened(lock)
        folder.rmdir()
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def _locked(folder: Path) -> int | None:
    """The folder, opened and locked; None if another process holds it, or it is no folder of ours."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        opened = os.open(folder, FLAGS)
    except OSError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened
