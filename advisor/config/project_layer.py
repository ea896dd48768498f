"""Project files: which ones the user trusts, and what one may do to what its user set."""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel

from advisor.config.setting_kinds import ProjectMay
from advisor.config.settings import ClusterSettings, Settings, project_may
from advisor.core.errors import ConfigError
from advisor.core.files import write_atomically
from advisor.formats.user_files import decoded

# Project files that the user trusts, each with the hash of what it held when it was trusted.
#
# One small file for each, named after the path and readable by its owner alone: two commands at once cannot
# lose each other's answer. A hash covers the settings file, not the files that it names.

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

    Raises ConfigError: a link, no regular file (a pipe would wait for a writer), unreadable or too large.
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

    Raises OSError: the user's data folder cannot be written.
    """
    record = _record(path)
    record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    body = {"format_version": _FORMAT_VERSION, "file": str(_real(path)), "sha256": sha256}
    write_atomically(record, f"{json.dumps(body)}\n".encode(), private=True)


def forget(path: Path) -> bool:
    """Trust a file no longer; whether it was trusted. The file itself may be gone.

    Raises OSError: the user's data folder cannot be written.
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


class Why(StrEnum):
    """Why a value of a project does not count."""

    NOT_ALLOWED = "not-allowed"
    CHANGES_AN_ENTRY = "changes-an-entry"
    NAMES_A_FILE_ELSEWHERE = "names-a-file-elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A line of a project's settings file that does not count."""

    setting: str
    value: object
    """As it is written there; it may hold a password."""
    file: Path
    line: int
    """From 1."""
    allowed: ProjectMay
    """What a project may do to this setting."""
    why: Why


def why_refused(name: str, before: Settings, after: Settings, folder: Path) -> Why | None:
    """Why a project in a folder may not make of the settings ``before`` what is ``after``; None if it may."""
    old, new = value_of(before, name), value_of(after, name)
    if new == old:
        return None
    may = project_may(name)
    if not _allows(may, old, new):
        return Why.NOT_ALLOWED
    if may is not ProjectMay.ADD:
        return None
    known = set(entries_of(before, name))
    added = [entry for entry in entries_of(after, name) if entry not in known]
    if _cluster_names(known) & _cluster_names(added):
        return Why.CHANGES_AN_ENTRY
    is_inside = all(_is_file_in(folder, path) for path in _paths(added))
    return None if is_inside else Why.NAMES_A_FILE_ELSEWHERE


def with_added(old: Iterable[object], new: Iterable[object], written: Iterable[object]) -> list[object]:
    """What is ``written`` for the entries of ``new`` that ``old`` does not have."""
    known = set(old)
    return [raw for entry, raw in zip(new, written, strict=True) if entry not in known]


def value_of(settings: Settings, name: str) -> object:
    """The value of a setting by its dotted name: of the type that it declares."""
    section, _, key = name.partition(".")
    value: object = getattr(settings, section)
    return getattr(value, key) if key else value


def entries_of(settings: Settings, name: str) -> tuple[object, ...]:
    """The same of a setting that is a list."""
    value = value_of(settings, name)
    if not isinstance(value, tuple):
        raise TypeError(f"{name} is no list")
    return value


def _allows(may: ProjectMay, old: object, new: object) -> bool:
    """Whether it may make ``new`` of ``old``; what no rule allows is not allowed."""
    match may, old, new:
        case ProjectMay.ANYTHING, _, _:
            return True
        case ProjectMay.LOWER, (int() | float() | None) as most, (int() | float()) as number:
            # None is no limit.
            return most is None or number < most
        case ProjectMay.SWITCH_ON, _, _:
            return new is True
        case ProjectMay.ADD, tuple(known), tuple(entries):
            # An empty list asks for the removal of what is there; any other list is put behind it.
            return bool(entries) or not known
        case ProjectMay.NARROW, tuple(wide), tuple(narrow):
            return all(any(_covers(one.lower(), glob.lower()) for one in wide) for glob in narrow)
    return False


def _covers(wide: str, glob: str) -> bool:
    """Whether all that one glob means is meant by a wider one; in doubt not."""
    # Taken literally, a * or ? of the narrow glob is matched by a * of the wide one and by nothing else.
    is_plain = not set("?[") & set(wide) and "[" not in glob
    return wide in ("*", glob) or (is_plain and fnmatchcase(glob, wide))


def _cluster_names(entries: Iterable[object]) -> set[str]:
    return {entry.name for entry in entries if isinstance(entry, ClusterSettings)}


def _paths(value: object) -> Iterator[Path]:
    if isinstance(value, Path):
        yield value
    elif isinstance(value, BaseModel):
        for _, item in value:
            yield from _paths(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _paths(item)


def _is_file_in(folder: Path, path: Path) -> bool:
    """Whether a path, links followed, stays in a folder and is no pipe; one that is not there may come."""
    try:
        real = Path(os.path.realpath(path))
        return real.is_relative_to(os.path.realpath(folder)) and (real.is_file() or not real.exists())
    except (OSError, ValueError):  # ValueError: a null character
        return False
