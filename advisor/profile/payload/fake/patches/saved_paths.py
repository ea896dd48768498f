"""The functions that look at files see what the script saved in this run.

Scripts ask whether their checkpoint exists, copy the best one, rename a temporary one, and delete old
ones. For files that `saving` put elsewhere the standard library's functions are sent there; of all
other files they know nothing new.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from advisor.profile.payload.session import Session

_ONE_PATH = ("stat", "lstat", "access", "chmod", "utime", "remove", "unlink", "listxattr", "getxattr",
             "setxattr")  # fmt: skip
_TWO_PATHS = ("rename", "replace", "link", "symlink")


def install(session: Session) -> None:
    """Wrap functions of os, shutil and io."""
    # Extended attributes are Linux's alone.
    for name in filter(functools.partial(hasattr, os), _ONE_PATH):
        setattr(os, name, _reading(session, getattr(os, name)))
    os.listdir = _listing(session, os.listdir)
    os.scandir = _scanning(session, os.scandir)
    for name in _TWO_PATHS:
        setattr(os, name, _copying(session, getattr(os, name)))
    shutil.copyfile = _copying(session, shutil.copyfile)
    builtins.open = io.open = _opening(session, io.open)


def _reading(session: Session, original: Any) -> Any:
    @functools.wraps(original)
    def function(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
        return original(session.saved.find(path) or path, *args, **kwargs)

    return function


def _copying(session: Session, original: Any) -> Any:
    @functools.wraps(original)
    def function(src: Any, dst: Any, *args: Any, **kwargs: Any) -> Any:
        stand_in = session.saved.find(src)
        if stand_in is None:
            return original(src, dst, *args, **kwargs)
        original(stand_in, session.saved.place(dst), *args, **kwargs)
        return dst

    return function


def _listing(session: Session, original: Any) -> Any:
    @functools.wraps(original)
    def listdir(path: Any = ".") -> list[Any]:
        folder = session.saved.folder(path)
        if folder is None:
            return list(original(path))
        real = original(path) if session.saved.find(path) is None else []
        return list(dict.fromkeys([*real, *original(folder)]))

    return listdir


def _scanning(session: Session, original: Any) -> Any:
    @functools.wraps(original)
    def scandir(path: Any = ".") -> Any:
        folder = session.saved.folder(path)
        if folder is None:
            return original(path)
        real = original(path) if session.saved.find(path) is None else ()
        entries = {entry.name: entry for entry in original(folder)}
        return _Entries(iter((entries | {entry.name: entry for entry in real}).values()))

    return scandir


class _Entries:
    """What ``os.scandir`` gives back: an iterator that can be closed."""

    def __init__(self, entries: Iterator[Any]) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[Any]:
        return self._entries

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is open."""


def _opening(session: Session, original: Any) -> Any:
    @functools.wraps(original)
    def open_(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        # What the script writes by itself is its own affair.
        stand_in = session.saved.find(file) if not set(mode) & set("wax+") else None
        return original(stand_in or file, mode, *args, **kwargs)

    return open_
