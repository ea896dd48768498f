"""A document as a message: every form of it that some channel takes."""

from __future__ import annotations

import json
from functools import cache, partial

from advisor.delivery.message import File, Html, Message
from advisor.report.document import Document
from advisor.report.plain import shown
from advisor.report.printing import Format, text_of
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
        html=cache(partial(_html, document, subject)),
        files=(
            File(suffix=".html", media_type="text/html", make=cache(partial(text_of, document, Format.HTML))),
            File(suffix=".md", media_type="text/markdown", make=partial(text_of, document, Format.MARKDOWN)),
            File(suffix=".csv", media_type="text/csv", make=partial(text_of, document, Format.CSV)),
        ),
        blocks=to_slack(document, subject),
        facts=json.loads(text_of(document, Format.JSON)),
        of_moment=document.of_moment,
    )


def _html(document: Document, subject: str) -> Html:
    from advisor.report.writers.mail_html import to_mail_html

    return to_mail_html(document, subject)
