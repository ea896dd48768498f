"""Project files that are trusted, and whether they still hold what they held."""

from __future__ import annotations

from advisor.config.project_layer import TrustedFile, is_current, remembered
from advisor.report.document import Document, Row, Table, columns

COLUMNS = columns("File", "State")


def trusted_document() -> Document:
    """Every file that was trusted, by path."""
    rows = tuple((str(trusted.path), _state(trusted)) for trusted in remembered())
    facts = {"trusted": [{"file": file, "state": state} for file, state in rows]}
    return Document(facts=facts, blocks=(Table(columns=COLUMNS, rows=tuple(map(Row, rows))),))


def _state(trusted: TrustedFile) -> str:
    match is_current(trusted):
        case True:
            return "in force"
        case False:
            return "changed since"
        case _:
            return "gone or unreadable"
