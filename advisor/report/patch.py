"""A patch of the user's script as a document: the diff, and what has no safe place in it."""

from __future__ import annotations

from advisor.edits.patch import Patch
from advisor.report.document import Document, Lines
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
        blocks=(Lines(tuple(patch.diff.splitlines())),) if patch.diff else (),
    )
