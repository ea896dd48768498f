"""What a document without rows says, for formats of rows."""

from __future__ import annotations

from advisor.report.document import Document, Lines
from advisor.report.plain import Shown, stacked


def words_alone(document: Document) -> Shown:
    """Its lines."""
    return stacked(*(line for block in document.blocks if isinstance(block, Lines) for line in block.lines))
