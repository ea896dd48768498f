"""Project files that are trusted, and whether they still hold what they held."""

from __future__ import annotations

from advisor.config.trusted_files import TrustedFile, is_current, remembered
from advisor.report.plain import print_text
from advisor.report.rows import Format, print_rows, to_json

COLUMNS = ("File", "State")


def print_trusted(output: Format) -> None:
    """Every file that was trusted, by path."""
    rows = [(str(trusted.path), _state(trusted)) for trusted in remembered()]
    if output is Format.JSON:
        print_text(to_json({"trusted": [{"file": file, "state": state} for file, state in rows]}))
        return
    print_rows(COLUMNS, rows, output)


def _state(trusted: TrustedFile) -> str:
    match is_current(trusted):
        case True:
            return "in force"
        case False:
            return "changed since"
        case _:
            return "gone or unreadable"
