"""Values as notebooks show them; the public face (advisor/__init__.py) hands this to the values."""

from __future__ import annotations

from advisor.core.values import Recommendation, Trace
from advisor.report.document import Document, warnings_of
from advisor.report.recommendation import notebook_document
from advisor.report.trace import trace_table
from advisor.report.words import in_names
from advisor.report.writers.html import to_html


def html_of(value: object) -> str | None:
    """HTML of a value that has a form of its own in a notebook; None leaves it to the notebook."""
    match value:
        case Recommendation():
            return to_html(notebook_document(value))
        case Trace():
            table = trace_table(value, caption=value.script)
            return to_html(
                Document(facts={}, blocks=(table, *warnings_of(list(map(in_names, value.warnings)))))
            )
        case _:
            return None
