"""Writing files that a user names: whole or not at all, and never in the place of what is no file."""

import contextlib
import errno
import os
import re
import shutil
import stat
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from advisor.core.errors import InputError

# Names that the system gives as bytes -> text that JSON, databases and reports take.


def as_text(name: str) -> str:
    r"""The name with each byte that is no UTF-8 written as ``\xff``; others are as they were.

    Python reads such bytes of arguments, variables and paths as halves of characters (surrogates), so that it
    can give them back to the system unchanged. Nothing else takes them.

    >>> as_text("caf\udce9.py"), as_text("café.py")
    ('caf\\xe9.py', 'café.py')
    """
    if name.isascii():
        return name
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # halves that stand for no byte, as JSON can write them
        return name.encode("utf-8", "backslashreplace").decode()


_STANDARD_STREAMS = (1, 2)
_PERMISSIONS = 0o777


def check_can_be_file(path: Path, what: str) -> None:
    """Refuse where no file can be before hours are spent on what it would hold.

    Raises InputError: its folder is missing, or it is a folder.
    """
    if path.is_dir():
        raise InputError(f"cannot write {what} to {str(path)!r}: it is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise InputError(
            f"cannot write {what} to {str(path)!r}: there is no folder {str(path.parent)!r}. Make it first."
        )


def write_atomically(path: Path, payload: bytes, *, private: bool = False) -> None:
    """Write beside the target and rename; on any failure nothing is left behind and the old file stays.

    A link stays a link: its target is replaced. A device, a pipe, and the file that standard output goes to
    already (``/dev/stdout``) are written into, as a shell's ``>>`` does. A file that is replaced keeps its
    permissions.

    Args:
        private: only its owner may read it, whatever the umask says.

    Raises OSError: it is a folder or a socket; its folder is missing or not writable; the disk is full.
    """
    try:
        # Before any link is resolved: the kernel refuses links that others laid into a shared folder.
        before = path.stat()
    except FileNotFoundError:
        before = None
    stream = None if before is None else _standard_stream(before)
    if before is not None and (stream is not None or not stat.S_ISREG(before.st_mode)):
        if path.is_socket():
            raise OSError(errno.ENXIO, "it is a socket, not a file", str(path))
        # A stream is written by its own handle, whose place in the file moves on.
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY) if stream is None else os.dup(stream)
        with os.fdopen(handle, "wb") as out:
            out.write(payload)
    else:
        _replace(Path(os.path.realpath(path)), payload, before, private=private)


def _standard_stream(status: os.stat_result) -> int | None:
    """The stream of ours that goes to this very file, pipe or device; None of most files."""
    for handle in _STANDARD_STREAMS:
        with suppress(OSError):  # it is closed
            if os.path.samestat(status, os.fstat(handle)):
                return handle
    return None


def _replace(path: Path, payload: bytes, before: os.stat_result | None, *, private: bool) -> None:
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(payload)
            if not private:  # mkstemp made it for its owner alone
                os.fchmod(out.fileno(), _mode(before))
            if before is not None:
                with suppress(PermissionError):  # only root gives files away
                    os.fchown(out.fileno(), before.st_uid, before.st_gid)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _mode(before: os.stat_result | None) -> int:
    return 0o666 & ~_umask() if before is None else before.st_mode & _PERMISSIONS


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


# Empties a folder that a script has filled: folders nested by the thousand end ``shutil.rmtree``.

# By descriptor and never by a link: nothing outside of the folder is touched, even if it changes meanwhile.
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


# Temporary folders that do not outlive their process for long: the next one removes what SIGKILL left.
#
# A folder is locked while it is in use, and the kernel takes the lock away with the process. Neither age nor
# process ids would tell: runs last for days, and ids are given anew.

# Not the names of before, which are not locked.
PREFIX = "gpu-advisor-"
_NAME = re.compile(rf"{PREFIX}[a-z]+-[a-z0-9_]{{8}}")
# Root gives a sandboxed script's folder to nobody.
_NOBODY = 65534
_MOST_TRIES = 10


@contextlib.contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """A new folder for this user alone, removed at the end, with those that killed processes left.

    Raises OSError: there is no room, or no temporary folder that can be used.
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
