"""What a project's settings file may do to what its user set: `ProjectMay` of each setting, as rules."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel

from advisor.config.section import ProjectMay
from advisor.config.settings import ClusterSettings, Settings, project_may


class Why(StrEnum):
    """Why a value of a project does not count."""

    NOT_ALLOWED = "not-allowed"
    CHANGES_AN_ENTRY = "changes-an-entry"
    NAMES_A_FILE_ELSEWHERE = "names-a-file-elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A line of a project's settings file that does not count.

    Attributes:
        setting: its dotted name.
        value: as it is written there; it may hold a password.
        line: from 1.
        allowed: what a project may do to this setting.
    """

    setting: str
    value: object
    file: Path
    line: int
    allowed: ProjectMay
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
            return _is_narrower(wide, narrow)
    return False


def _is_narrower(old: Iterable[str], new: Iterable[str]) -> bool:
    return all(any(_covers(wide.lower(), glob.lower()) for wide in old) for glob in new)


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
