"""Findings: what is worth saying, as typed values; a class each, by room that makes them."""

from advisor.core.findings.finding import (
    Caution, Change, Fact, Fault, Finding, Note, Removal, Severity, Text, TraceWarning, quoted, removals,
)  # fmt: skip
