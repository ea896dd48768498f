"""The one place where answers reach stdout, each in the format that was asked for."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from advisor.core.errors import InputError
from advisor.core.processes import ANSWER_FILE_VARIABLE
from advisor.report.plain import Shown, print_text

if TYPE_CHECKING:
    from advisor.report.document import Document


class Format(StrEnum):
    """What ``--format`` takes."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    HTML = "html"


class SweepView(StrEnum):
    """What of a sweep is printed; JSON has all of it."""

    JOBS = "jobs"
    BEST = "best"
    MOVED = "moved"
    BUDGET = "budget"
    CAPACITY = "capacity"


def print_document(document: Document, output: Format) -> None:
    """An answer to stdout; nothing where a format has nothing to show."""
    if beside := os.environ.get(ANSWER_FILE_VARIABLE):
        from advisor.core.files import write_atomically

        write_atomically(Path(beside), text_of(document, Format.JSON).encode(), private=True)
    text = text_of(document, output)
    if text:
        print_text(text)


def write_page(document: Document, path: Path) -> None:
    """An answer as a page of its own, whole or not at all.

    Raises InputError: the folder is not writable, or the disk is full.
    """
    from advisor.core.files import write_atomically

    try:
        write_atomically(path, text_of(document, Format.HTML).encode())
    except OSError as error:
        raise InputError(
            f"cannot write the page to {str(path)!r}: {error.strerror}. Choose another place."
        ) from error


def text_of(document: Document, output: Format) -> Shown:
    """An answer in a format."""
    match output:
        case Format.TABLE:
            from advisor.report.writers.terminal import to_terminal

            return to_terminal(document)
        case Format.JSON:
            from advisor.report.writers.text_formats import to_json

            return to_json(document.facts)
        case Format.CSV:
            from advisor.report.writers.text_formats import to_csv

            return to_csv(document)
        case Format.MARKDOWN:
            from advisor.report.writers.text_formats import to_markdown

            return to_markdown(document)
        case Format.HTML:
            from advisor.report.writers.html import to_page

            return to_page(document)
        case _:
            assert_never(output)
