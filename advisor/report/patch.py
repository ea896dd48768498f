"""A patch of the user's script as a document: the diff, and what has no safe place in it."""

from __future__ import annotations

from advisor.edits.patch import Patch
from advisor.report.document import Document, Lines
from advisor.report.plain import shown_code
from advisor.report.words import finding_json, sentence


def patch_document(patch: Patch) -> Document:
    """The diff alone, for ``git apply``; what is not in it stands beside it in JSON."""
    return Document(
        facts={
            "changes": patch.changes,
            "diff": patch.diff,
            "refused": [
                {"change": change, "why_not": sentence(why), "why_not_finding": finding_json(why)}
                for change, why in patch.refused.items()
            ],
        },
        blocks=(Lines(tuple(_lines(patch)), are_code=True),) if patch.diff else (),
    )


def prints_as_it_is(patch: Patch) -> bool:
    """Whether the printed diff is the diff: what could move a terminal's cursor is printed as an escape."""
    return "".join(f"{shown_code(line)}\n" for line in _lines(patch)) == patch.diff


def _lines(patch: Patch) -> list[str]:
    return patch.diff.removesuffix("\n").split("\n")
