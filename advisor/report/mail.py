"""A document as a message: every form of it that some channel takes."""

from __future__ import annotations

import json

from advisor.delivery.message import File, Message
from advisor.report.document import Document
from advisor.report.plain import shown
from advisor.report.writers.csv_text import to_csv
from advisor.report.writers.json_text import to_json
from advisor.report.writers.markdown import to_markdown
from advisor.report.writers.slack import to_slack
from advisor.report.writers.terminal import Screen, to_terminal

# Characters of a line of plain text that mail programs do not fold.
_WIDTH = 78


def message_of(document: Document, subject: str) -> Message:
    """The message that says what a document says.

    Args:
        document: the answer, its warnings included.
        subject: in one line what it comes to.
    """
    return Message(
        subject=shown(subject),
        text=to_terminal(document, Screen(_WIDTH)),
        files=(
            File(suffix=".md", media_type="text/markdown", payload=f"{to_markdown(document)}\n".encode()),
            File(suffix=".csv", media_type="text/csv", payload=f"{to_csv(document)}\n".encode()),
        ),
        blocks=to_slack(document, subject),
        facts=json.loads(to_json(document.facts)),
    )
