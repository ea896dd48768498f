"""Functions of the file system see what the script wrote and removed; nothing of it happens."""

from __future__ import annotations

import builtins
import errno
import functools
import io
import os
import shutil
from collections.abc import Iterator
from typing import Any

from ...protocol import Warned
from ...replacing import Original, replace, wrap
from ...session import Session
from ..saved_files import AnyPath

_ONE_PATH = ("stat", "lstat", "access", "chmod", "utime", "listxattr", "getxattr", "setxattr")
_TWO_PATHS = ("link", "symlink")


def install_saved_paths(session: Session) -> None:
    """The functions that look at files see what the script saved in this run.

    Scripts ask whether their checkpoint exists, copy the best one and list the folder. For files that
    `saving` put elsewhere the standard library's functions are sent there, and what `removed_paths` hid is
    not there; of all other files they know nothing new.

    Wrap functions of os, shutil and io.
    """
    # Extended attributes are Linux's alone.
    for name in filter(functools.partial(hasattr, os), _ONE_PATH):
        wrap(os, name, functools.partial(_read, session))
    wrap(os, "listdir", functools.partial(_list, session))
    wrap(os, "scandir", functools.partial(_scan, session))
    for owner, name in (*((os, name) for name in _TWO_PATHS), (shutil, "copyfile")):
        wrap(owner, name, functools.partial(_copy, session))
    wrap(io, "open", functools.partial(_open, session))
    replace(builtins, open=io.open)


def _read(
    session: Session, original: Original, path: object = ".", *args: object, **kwargs: object
) -> object:
    if kwargs.get("dir_fd") is not None:
        return original(path, *args, **kwargs)
    return original(session.saved.find(path) or path, *args, **kwargs)


def _copy(
    session: Session, original: Original, src: object, dst: AnyPath, *args: object, **kwargs: object
) -> object:
    stand_in = session.saved.find(src)
    if stand_in is None:
        return original(src, dst, *args, **kwargs)
    original(stand_in, session.saved.place(dst), *args, **kwargs)
    return dst


def _list(session: Session, original: Original, path: object = ".") -> list[str]:
    folder, stand_in = session.saved.folder(path), session.saved.find(path)
    if folder is None:
        return _left(session, path, original(stand_in or path))
    real = _left(session, path, original(path)) if stand_in is None else []
    return list(dict.fromkeys([*real, *original(folder)]))


def _left(session: Session, folder: Any, names: list[str]) -> list[str]:
    """Without what the script removed; a folder may be given as the number of an open file."""
    if isinstance(folder, int):
        return names
    return [name for name in names if not session.saved.is_gone(os.path.join(folder, name))]


def _scan(session: Session, original: Original, path: object = ".") -> object:
    folder, stand_in = session.saved.folder(path), session.saved.find(path)
    if folder is None and not session.saved.hides_any:
        return original(stand_in or path)
    real = original(path) if stand_in is None else ()
    shown = {entry.name: entry for entry in real if not session.saved.is_gone(entry.path)}
    # A path that is gone raises here.
    other = original(folder or stand_in) if folder or stand_in else ()
    return _Entries(iter(({entry.name: entry for entry in other} | shown).values()))


class _Entries:
    """What ``os.scandir`` gives back: an iterator that can be closed."""

    def __init__(self, entries: Iterator[object]) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[object]:
        return self._entries

    def __next__(self) -> object:
        return next(self._entries)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        pass


def _open(
    session: Session, original: Original, file: Any, mode: str = "r", *args: object, **kwargs: object
) -> object:
    if not set(mode) & set("wax+"):
        return original(session.saved.find(file) or file, mode, *args, **kwargs)
    return _open_for_writing(session, original, file, mode, *args, **kwargs)


def _open_for_writing(
    session: Session, original: Original, file: Any, *args: object, **kwargs: object
) -> object:
    saved = session.saved
    if saved.find(file) is not None or saved.is_in_mirror(file):
        return original(saved.place(file), *args, **kwargs)
    # What the script writes by itself is its own affair, and so is removing it.
    is_new = isinstance(file, (str, bytes, os.PathLike)) and not saved.is_real(file)
    opened = original(file, *args, **kwargs)
    if is_new:
        saved.note_made(file)
    return opened


def install_removed_paths(session: Session) -> None:
    """What was there before the script started is neither removed nor renamed; the script sees it gone.

    A script that keeps its three newest checkpoints finds its owner's beside those of this run, which are
    thrown away: rotating would delete weeks of work. What the script made itself is removed for real.

    Wrap what removes, renames and makes files and folders.
    """
    for name in ("remove", "unlink", "rmdir"):
        wrap(os, name, functools.partial(_remove, session, of_folders=name == "rmdir"))
    # By paths, which we know, instead of open folders.
    replace(shutil, _use_fd_functions=False)
    for name in ("rename", "replace"):
        wrap(os, name, functools.partial(_rename, session))
    wrap(os, "mkdir", functools.partial(_make_folder, session))
    wrap(os, "open", functools.partial(_open_removed, session))
    for name in _TWO_PATHS:
        wrap(os, name, functools.partial(_link, session))


def _remove(
    session: Session, original: Original, path: AnyPath, *, of_folders: bool, dir_fd: int | None = None
) -> None:
    saved = session.saved
    if dir_fd is not None:
        original(path, dir_fd=dir_fd)
        return
    is_folder = os.path.isdir(path) and not os.path.islink(path)
    if is_folder and of_folders and os.listdir(path):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
    is_real = saved.is_real(path)
    stand_in = saved.find(path) or (saved.folder(path) if of_folders else None)
    if stand_in is not None:
        original(stand_in)
    if is_real and is_folder == of_folders and not saved.is_made(path):
        session.warn(Warned.NOT_DONE, what="removal")
        saved.hide(path)
    elif is_real or stand_in is None:
        original(path)


def _rename(session: Session, original: Original, src: AnyPath, dst: AnyPath, **folders: object) -> None:
    saved = session.saved
    stand_in = saved.find(src)
    replaces = saved.is_real(dst) and not saved.is_made(dst)
    is_simple = saved.is_made(src) and not replaces and saved.find(dst) is None
    if folders or (stand_in is None and (is_simple or not saved.is_real(src))):
        saved_folder = None if folders else session.saved.folder(src)
        original(src, dst, **folders)
        if not folders:
            session.saved.note_made(dst)
        if saved_folder is not None:
            original(saved_folder, session.saved.place(dst))
        return
    if replaces and os.path.isdir(dst):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), src, None, dst)
    target = saved.place(dst)
    if stand_in is not None:
        original(stand_in, target)
    else:
        _mirror(session, src, target)
    # What the owner has in its place is not uncovered by this.
    if saved.is_real(src):
        (shutil.rmtree if os.path.isdir(src) else os.remove)(src)


def _mirror(session: Session, src: AnyPath, target: str) -> None:
    """Put what the script sees at ``src`` into the mirror: links do for large files of the owner."""

    def link(source: str, place: str) -> None:
        if os.path.lexists(place):
            os.unlink(place)
        if session.saved.find(source) is not None or session.saved.is_made(source):
            shutil.copy2(source, place)
        else:
            os.symlink(os.path.abspath(source), place)

    if os.path.isdir(src):
        shutil.copytree(os.fsdecode(src), target, copy_function=link, dirs_exist_ok=True)
    else:
        link(os.fsdecode(src), target)


def _make_folder(
    session: Session, original: Original, path: AnyPath, mode: int = 0o777, *, dir_fd: int | None = None
) -> None:
    if dir_fd is not None:
        original(path, mode, dir_fd=dir_fd)
    elif not session.saved.is_gone(path):
        _make_in_its_place(session, original, path, mode)
    elif os.path.exists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    else:
        # In the mirror, and the owner's own one shows again: what was in it stays hidden.
        original(session.saved.place(path), mode)
        session.saved.show_folder(path)


def _make_in_its_place(session: Session, original: Original, path: AnyPath, mode: int) -> None:
    """For real, or where nothing can be written in the mirror: most are the homes of checkpoints."""
    saved = session.saved
    try:
        if not saved.is_in_mirror(path):
            original(path, mode)
            saved.note_made(path)
            return
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
    original(saved.place(path), mode)


def _open_removed(
    session: Session, original: Original, path: AnyPath, flags: int, mode: int = 0o777, *,
    dir_fd: int | None = None,
) -> object:  # fmt: skip
    if dir_fd is not None or not flags & os.O_CREAT:
        return original(path, flags, mode, dir_fd=dir_fd)
    return _open_for_writing(session, original, path, flags, mode)


def _link(
    session: Session, original: Original, src: AnyPath, dst: AnyPath, *args: object, **kwargs: object
) -> None:
    if not session.saved.is_gone(dst):
        original(src, dst, *args, **kwargs)
        session.saved.note_made(dst)
        return
    # From the mirror, a relative link would point elsewhere.
    beside = os.path.join(os.path.dirname(os.path.abspath(os.fsdecode(dst))), os.fsdecode(src))
    original(session.saved.find(beside) or beside, session.saved.place(dst), *args, **kwargs)
