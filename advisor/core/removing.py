"""Empties a folder that a script has filled: folders nested by the thousand end ``shutil.rmtree``."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

# By descriptor and never by a link: nothing outside of the folder is touched, whoever changes it meanwhile.
FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


def empty(folder: Path) -> None:
    """Remove what is in a folder, however deep; what does not let itself be removed stays."""
    with contextlib.suppress(OSError):
        top = os.open(folder, FLAGS)
        try:
            empty_opened(top)
        finally:
            os.close(top)


def empty_opened(top: int) -> None:
    """The same of a folder that is open, where this system can do without names."""
    if os.rename not in os.supports_dir_fd:
        return
    with contextlib.suppress(OSError):
        pending = _removed(top, top)
        while pending:
            pending += _remove_folder(pending.pop(), top)


def _remove_folder(name: str, top: int) -> list[str]:
    """Remove a folder right below the top; folders that were in it are there now."""
    with contextlib.suppress(OSError):
        fd = os.open(name, FLAGS, dir_fd=top)
        try:
            moved = _removed(fd, top)
        finally:
            os.close(fd)
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=top)
        return moved
    return []


def _removed(folder: int, top: int) -> list[str]:
    """Remove files of a folder; its folders' names below the top, where they are or are moved to."""
    moved = []
    for entry in os.listdir(folder):
        with contextlib.suppress(OSError):
            try:
                os.unlink(entry, dir_fd=folder)
            except (IsADirectoryError, PermissionError):
                name = entry if folder == top else uuid.uuid4().hex
                if folder != top:
                    os.rename(entry, name, src_dir_fd=folder, dst_dir_fd=top)
                moved.append(name)
    return moved
