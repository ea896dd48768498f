"""Project files that the user trusts, each with the hash of what it held when it was trusted.

One small file for each, named after the path and readable by its owner alone: two commands at once
cannot lose each other's answer. A hash covers the settings file, not the files that it names.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from advisor.core.errors import ConfigError
from advisor.core.files import write_atomically
from advisor.formats.user_files import decoded

_KIND = "settings file"
# A second of YAML: whose repository it is may not keep us busy for longer.
MAX_PROJECT_FILE_BYTES = 64_000
_FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedFile:
    """A settings file as its user trusted it."""

    path: Path
    sha256: str


def read_project_file(path: Path) -> tuple[str, str]:
    """The text of a project's settings file and the hash of just that text.

    Raises:
        ConfigError: a link, no regular file (a pipe would wait for a writer), unreadable or too large.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"{str(path)!r} is no regular file, which a {_KIND} must be: remove it.")
            payload = file.read(MAX_PROJECT_FILE_BYTES + 1)
    except OSError as error:
        if error.errno == errno.ELOOP:
            advice = "put a copy of its target there, since a project's settings may not point elsewhere"
            raise ConfigError(f"{str(path)!r} is a symbolic link: {advice}.") from error
        raise ConfigError(f"cannot read {str(path)!r}: {error.strerror or error}.") from error
    if len(payload) > MAX_PROJECT_FILE_BYTES:
        raise ConfigError(f"{str(path)!r} is larger than 64 kB: that is no {_KIND} of a project.")
    return decoded(payload, place=repr(str(path))), hashlib.sha256(payload).hexdigest()


def is_trusted(path: Path, sha256: str) -> bool:
    """Whether the user trusts a file with just this content."""
    trusted = _read(_record(path))
    return trusted is not None and trusted == TrustedFile(path=_real(path), sha256=sha256)


def remember(path: Path, sha256: str) -> None:
    """Trust a file as long as its content has this hash.

    Raises:
        OSError: the user's data folder cannot be written.
    """
    record = _record(path)
    record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    body = {"format_version": _FORMAT_VERSION, "file": str(_real(path)), "sha256": sha256}
    write_atomically(record, f"{json.dumps(body)}\n".encode(), private=True)


def forget(path: Path) -> bool:
    """Trust a file no longer; whether it was trusted. The file itself may be gone.

    Raises:
        OSError: the user's data folder cannot be written.
    """
    try:
        _record(path).unlink()
    except FileNotFoundError:
        return False
    return True


def remembered() -> Iterator[TrustedFile]:
    """Every file that was trusted, by path; damaged records trust nothing and are left out."""
    folder = _folder()
    records = [_read(record) for record in folder.glob("*.json")] if folder.is_dir() else []
    yield from sorted((record for record in records if record is not None), key=lambda record: record.path)


def is_current(trusted: TrustedFile) -> bool | None:
    """Whether a trusted file still holds what it held; None if it is gone or cannot be read."""
    try:
        return read_project_file(trusted.path)[1] == trusted.sha256
    except ConfigError:
        return None


def _folder() -> Path:
    import platformdirs

    return platformdirs.user_data_path("advisor") / "trusted"


def _real(path: Path) -> Path:
    """The path by the real name of its folder; a project file itself is never a link."""
    return Path(os.path.realpath(path.parent)) / path.name


def _record(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(_real(path))).hexdigest()
    return _folder() / f"{name}.json"


def _read(record: Path) -> TrustedFile | None:
    try:
        body = json.loads(record.read_text(encoding="utf-8"))
        if body["format_version"] != _FORMAT_VERSION:
            return None
        return TrustedFile(path=Path(body["file"]), sha256=str(body["sha256"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None
