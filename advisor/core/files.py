"""Writing files that a user names: whole or not at all, and never in the place of what is no file."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_STANDARD_STREAMS = (1, 2)
_PERMISSIONS = 0o777


def write_atomically(path: Path, payload: bytes, *, private: bool = False) -> None:
    """Write beside the target and rename; on any failure nothing is left behind and the old file stays.

    A link stays a link: its target is replaced. A device, a pipe, and the file that standard output goes to
    already (``/dev/stdout``) are written into, as a shell's ``>>`` does. A file that is replaced keeps its
    permissions.

    Args:
        path: of the file.
        payload: all of it.
        private: only its owner may read it, whatever the umask says.

    Raises:
        OSError: it is a folder or a socket; its folder is missing or not writable; the disk is full.
    """
    try:
        # Before any link is resolved: the kernel refuses links that others laid into a shared folder.
        before = path.stat()
    except FileNotFoundError:
        before = None
    stream = None if before is None else _standard_stream(before)
    if before is not None and (stream is not None or not stat.S_ISREG(before.st_mode)):
        _write_into(path, payload, stream)
    else:
        _replace(Path(os.path.realpath(path)), payload, before, private=private)


def _standard_stream(status: os.stat_result) -> int | None:
    """The stream of ours that goes to this very file, pipe or device; None of most files."""
    for handle in _STANDARD_STREAMS:
        with suppress(OSError):  # it is closed
            if os.path.samestat(status, os.fstat(handle)):
                return handle
    return None


def _write_into(path: Path, payload: bytes, stream: int | None) -> None:
    if path.is_socket():
        raise OSError(errno.ENXIO, "it is a socket, not a file", str(path))
    # A stream is written by its own handle, whose place in the file moves on.
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY) if stream is None else os.dup(stream)
    with os.fdopen(handle, "wb") as out:
        out.write(payload)


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
