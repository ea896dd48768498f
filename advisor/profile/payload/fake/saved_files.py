"""Where files of the script go that a patch keeps from their place: a folder that is thrown away.

The folder mirrors the file system: ``/home/me/best.pt`` becomes ``FOLDER/home/me/best.pt``. What lies
there hides what lies at the real place, so that a script reads back what it saved in this run.
"""

from __future__ import annotations

import os
import stat
import tempfile
from typing import Any

# `patches.saved_paths` wraps the one in os, which asks here.
_lstat = os.lstat


class SavedFiles:
    """The mirror; its folder is made with the first file, below the job's temporary folder."""

    def __init__(self) -> None:
        self._folder: str | None = None

    def place(self, path: Any) -> str:
        """The stand-in to write instead of ``path``; its folder exists."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="advisor-saved-")
        stand_in = self._mirrored(path)
        os.makedirs(os.path.dirname(stand_in), exist_ok=True)
        return stand_in

    def find(self, path: Any) -> str | None:
        """The stand-in to read instead of ``path``, None if the real place counts."""
        # Descriptors of open files are numbers; most scripts never save before they are stopped.
        if self._folder is None or not isinstance(path, (str, bytes, os.PathLike)):
            return None
        stand_in = self._mirrored(path)
        if stand_in == os.fsdecode(path) or not _exists(stand_in):
            return None
        # Folders above a saved file exist on both sides; only one that a patch made up is ours.
        return None if _is_folder(stand_in) and _exists(path) else stand_in

    def folder(self, path: Any) -> str | None:
        """The folder with the saved files that belong into the folder ``path``, if there are any."""
        if self._folder is None or not isinstance(path, (str, bytes, os.PathLike)):
            return None
        stand_in = self._mirrored(path)
        return stand_in if stand_in != os.fsdecode(path) and _is_folder(stand_in) else None

    def _mirrored(self, path: Any) -> str:
        absolute = os.path.abspath(os.fsdecode(path))
        folder = str(self._folder)
        if absolute == folder or absolute.startswith(folder + os.sep):
            return absolute
        return os.path.join(folder, os.path.splitdrive(absolute)[1].lstrip("/\\"))


def _exists(path: Any) -> bool:
    try:
        _lstat(path)
    except (OSError, ValueError):
        return False
    return True


def _is_folder(path: str) -> bool:
    return _exists(path) and stat.S_ISDIR(_lstat(path).st_mode)
