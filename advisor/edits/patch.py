"""Changes of a script as one unified diff."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import unified_diff

from advisor.core.findings import Finding
from advisor.edits.placing import PLACES
from advisor.edits.script import edited, lines_of, read_script

_NO_NEWLINE = "\n\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """What is changed.

    Attributes:
        changes: those that are in the diff.
        diff: for ``patch`` and ``git apply``; empty where nothing is changed.
        refused: by change, why it has no safe place.
    """

    changes: tuple[str, ...]
    diff: str
    refused: Mapping[str, Finding]


def patch_of(text: str, path: str, names: Iterable[str]) -> Patch:
    """The changes of these names written into a script, one after the other.

    Args:
        text: of the script.
        path: of the script, as the diff names it.
        names: of the changes.

    Raises:
        InputError: the script is no Python that this version can parse.
    """
    new, changes, refused = text, [], {}
    for name in names:
        script = read_script(new, path)
        placed = PLACES[name](script)
        if isinstance(placed, Finding):
            refused[name] = placed
            continue
        new = edited(script, placed)
        read_script(new, path)
        changes.append(name)
    return Patch(changes=tuple(changes), diff=_diff(text, new, path), refused=refused)


def _diff(old: str, new: str, path: str) -> str:
    name = path.lstrip("/")
    lines = unified_diff(lines_of(old), lines_of(new), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else line + _NO_NEWLINE for line in lines)
