"""Where files of the script go that a patch keeps from their place: a folder that is thrown away.

The folder mirrors the file system: ``/home/me/best.pt`` becomes ``FOLDER/home/me/best.pt``. What lies
there hides what lies at the real place, so that a script reads back what it saved in this run.

What was there before the script started and was removed by it stays; the script sees it gone.
"""

from __future__ import annotations

import os
import stat
import tempfile

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
# `patches.saved_paths` wraps the one in os, which asks here.
_lstat = os.lstat


class SavedFiles:
    """The mirror; its folder is made with the first file, below the job's temporary folder."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._made: set[str] = set()
        self._gone_ns: dict[str, int] = {}

    def place(self, path: AnyPath) -> str:
        """The stand-in to write instead of ``path``; its folder exists."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="advisor-saved-")
        stand_in = self._mirrored(path)
        os.makedirs(os.path.dirname(stand_in), exist_ok=True)
        # A link to the owner's file, which was renamed: writing must not go through it.
        if os.path.islink(stand_in):
            os.unlink(stand_in)
        return stand_in

    def find(self, path: object) -> str | None:
        """The stand-in to read instead of ``path``, None if the real place counts.

        Of what the script removed, it is a path where nothing lies.
        """
        # Descriptors of open files are numbers; most scripts never save before they are stopped.
        if self._folder is None or not isinstance(path, (str, bytes, os.PathLike)):
            return None
        stand_in = self._mirrored(path)
        if stand_in == os.fsdecode(path):
            return None
        if not _exists(stand_in):
            return stand_in if self.is_gone(path) else None
        # Folders above a saved file exist on both sides; only one that a patch made up is ours.
        return None if _is_folder(stand_in) and self.is_real(path) else stand_in

    def folder(self, path: object) -> str | None:
        """The folder with the saved files that belong into the folder ``path``, if there are any."""
        if self._folder is None or not isinstance(path, (str, bytes, os.PathLike)):
            return None
        stand_in = self._mirrored(path)
        return stand_in if stand_in != os.fsdecode(path) and _is_folder(stand_in) else None

    def is_in_mirror(self, path: object) -> bool:
        """Whether the folder of this path is one of the mirror alone."""
        if self._folder is None or not isinstance(path, (str, bytes, os.PathLike)):
            return False
        parent = os.path.dirname(_absolute(path))
        return not self.is_gone(parent) and self.find(parent) is not None

    def note_made(self, path: AnyPath) -> None:
        """The script made this: removing it is its own affair."""
        self._made.add(_absolute(path))

    def is_made(self, path: AnyPath) -> bool:
        """Whether the script made this or a folder above it."""
        place = _absolute(path)
        if self._folder is not None and self._mirrored(place) == place:
            return True
        while place not in self._made and place != os.path.dirname(place):
            place = os.path.dirname(place)
        return place in self._made

    def is_real(self, path: AnyPath) -> bool:
        """Whether something lies at the real place that the script did not remove."""
        return _exists(path) and not self.is_gone(path)

    def hide(self, path: AnyPath) -> None:
        """From now on the script sees nothing there."""
        self._folder = self._folder or tempfile.mkdtemp(prefix="advisor-saved-")
        self._gone_ns[_absolute(path)] = _lstat(path).st_ctime_ns

    @property
    def hides_any(self) -> bool:
        """Whether the script removed something that is still there."""
        return bool(self._gone_ns)

    def show_folder(self, path: AnyPath) -> None:
        """The script makes again a folder it had removed."""
        if _is_folder(path):
            self._gone_ns.pop(_absolute(path), None)

    def is_gone(self, path: object) -> bool:
        """Whether the script removed what lies at the real place."""
        if not self._gone_ns or not isinstance(path, (str, bytes, os.PathLike)):
            return False
        gone_ns = self._gone_ns.get(_absolute(path))
        # What others put there since is something else.
        return gone_ns is not None and _exists(path) and _lstat(path).st_ctime_ns == gone_ns

    def _mirrored(self, path: AnyPath) -> str:
        absolute = _absolute(path)
        folder = str(self._folder)
        if absolute == folder or absolute.startswith(folder + os.sep):
            return absolute
        return os.path.join(folder, os.path.splitdrive(absolute)[1].lstrip("/\\"))


def _absolute(path: AnyPath) -> str:
    return os.path.abspath(os.fsdecode(path))


def _exists(path: AnyPath) -> bool:
    try:
        _lstat(path)
    except (OSError, ValueError):
        return False
    return True


def _is_folder(path: AnyPath) -> bool:
    return _exists(path) and stat.S_ISDIR(_lstat(path).st_mode)
