"""The functions that look at files see what the script saved in this run.

Scripts ask whether their checkpoint exists, copy the best one and list the folder. For files that
`saving` put elsewhere the standard library's functions are sent there, and what `removed_paths` hid is
not there; of all other files they know nothing new.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session

    from ..saved_files import AnyPath

_ONE_PATH = ("stat", "lstat", "access", "chmod", "utime", "listxattr", "getxattr", "setxattr")
_TWO_PATHS = ("link", "symlink")


def install(session: Session) -> None:
    """Wrap functions of os, shutil and io."""
    # Extended attributes are Linux's alone.
    for name in filter(functools.partial(hasattr, os), _ONE_PATH):
        setattr(os, name, _reading(session, getattr(os, name)))
    replace(os, listdir=_listing(session, os.listdir), scandir=_scanning(session, os.scandir))
    for name in _TWO_PATHS:
        setattr(os, name, _copying(session, getattr(os, name)))
    replace(shutil, copyfile=_copying(session, shutil.copyfile))
    open_ = _opening(session, io.open)
    replace(builtins, open=open_)
    replace(io, open=open_)


def _reading(session: Session, original: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(original)
    def function(path: object = ".", *args: object, **kwargs: object) -> object:
        if kwargs.get("dir_fd") is not None:
            return original(path, *args, **kwargs)
        return original(session.saved.find(path) or path, *args, **kwargs)

    return function


def _copying(session: Session, original: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(original)
    def function(src: object, dst: AnyPath, *args: object, **kwargs: object) -> object:
        stand_in = session.saved.find(src)
        if stand_in is None:
            return original(src, dst, *args, **kwargs)
        original(stand_in, session.saved.place(dst), *args, **kwargs)
        return dst

    return function


def _listing(session: Session, original: Callable[..., list[str]]) -> Callable[..., object]:
    @functools.wraps(original)
    def listdir(path: object = ".") -> list[str]:
        folder, stand_in = session.saved.folder(path), session.saved.find(path)
        if folder is None:
            return _left(session, path, original(stand_in or path))
        real = _left(session, path, original(path)) if stand_in is None else []
        return list(dict.fromkeys([*real, *original(folder)]))

    return listdir


def _left(session: Session, folder: Any, names: list[str]) -> list[str]:
    """Without what the script removed; a folder may be given as the number of an open file."""
    if isinstance(folder, int):
        return names
    return [name for name in names if not session.saved.is_gone(os.path.join(folder, name))]


def _scanning(session: Session, original: Callable[..., Iterable[os.DirEntry[str]]]) -> Callable[..., object]:
    @functools.wraps(original)
    def scandir(path: object = ".") -> object:
        folder, stand_in = session.saved.folder(path), session.saved.find(path)
        if folder is None and not session.saved.hides_any:
            return original(stand_in or path)
        real = original(path) if stand_in is None else ()
        shown = {entry.name: entry for entry in real if not session.saved.is_gone(entry.path)}
        # A path that is gone raises here.
        other = original(folder or stand_in) if folder or stand_in else ()
        return _Entries(iter(({entry.name: entry for entry in other} | shown).values()))

    return scandir


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
        """Nothing is open."""


def _opening(session: Session, original: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(original)
    def open_(file: Any, mode: str = "r", *args: object, **kwargs: object) -> object:
        stand_in = session.saved.find(file)
        if not set(mode) & set("wax+"):
            return original(stand_in or file, mode, *args, **kwargs)
        if stand_in is not None or session.saved.is_in_mirror(file):
            return original(session.saved.place(file), mode, *args, **kwargs)
        # What the script writes by itself is its own affair, and so is removing it.
        is_new = isinstance(file, (str, bytes, os.PathLike)) and not session.saved.is_real(file)
        opened = original(file, mode, *args, **kwargs)
        if is_new:
            session.saved.note_made(file)
        return opened

    return open_
