"""Sockets, pipes and passwords in folders that a sandboxed script reads.

A read-only mount closes neither sockets nor named pipes, and repositories keep passwords of their remotes
among their own files.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import deque
from collections.abc import Iterable
from pathlib import Path

# Of all folders together: what is near their top, in a tenth of a second.
_MOST_ENTRIES = 40_000
_BOUND = Path("/proc/net/unix")
_OF_REPOSITORIES = {".git": ("config", "config.worktree", "credentials"), ".hg": ("hgrc",)}
_OF_PACKAGES = ("pip.conf", ".condarc")
_WITH_PASSWORDS = {*_OF_PACKAGES, *(name for names in _OF_REPOSITORIES.values() for name in names)}


def special_files(folders: Iterable[Path]) -> list[Path]:
    """All that a process of this machine listens at, and what is in the folders, deep ones perhaps not."""
    return list(dict.fromkeys([*_bound_sockets(), *_found(folders)]))


def _bound_sockets() -> list[Path]:
    """By the kernel's list; servers in containers and names relative to a server's folder are not in it."""
    try:
        lines = _BOUND.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    except OSError:
        return []
    # Seven columns, and a name that may have spaces.
    names = {parts[7] for parts in (line.split(maxsplit=7) for line in lines) if len(parts) == 8}
    return [path.resolve() for path in map(Path, names) if path.is_absolute() and _is_special(path)]


def _is_special(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISSOCK(path.stat().st_mode) or stat.S_ISFIFO(path.stat().st_mode)
    return False


def _found(folders: Iterable[Path]) -> list[Path]:
    pending = deque(folder.resolve() for folder in folders)
    seen: set[Path] = set()
    found: list[Path] = []
    num_left = _MOST_ENTRIES
    while pending and num_left > 0:
        folder = pending.popleft()
        if folder in seen:
            continue
        seen.add(folder)
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                num_left -= 1
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                elif _is_found(entry):
                    found.append(Path(entry.path))
                if num_left <= 0:
                    break
    return found


def _is_found(entry: os.DirEntry[str]) -> bool:
    if entry.is_file(follow_symlinks=False):
        return entry.name in _WITH_PASSWORDS and _may_hold_passwords(Path(entry.path))
    return not entry.is_symlink()


def _may_hold_passwords(path: Path) -> bool:
    """Settings of a repository, of what it has within (submodules, worktrees), or of a package index.

    >>> _may_hold_passwords(Path("a/.git/modules/b/config")), _may_hold_passwords(Path("a/config"))
    (True, False)
    """
    within = (folder for folder, names in _OF_REPOSITORIES.items() if path.name in names)
    return path.name in _OF_PACKAGES or any(folder in path.parts for folder in within)
