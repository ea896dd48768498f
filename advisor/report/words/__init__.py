"""The sentences of findings: what is told of each code, with its flags and units, in one place."""

from advisor.report.words.sentences import (
    WORDS,
    error_text,
    finding_json,
    in_names,
    rule_text,
    sentence,
    sentences,
    text_of,
    warnings_json,
)

__all__ = [
    "WORDS",
    "error_text",
    "finding_json",
    "in_names",
    "rule_text",
    "sentence",
    "sentences",
    "text_of",
    "warnings_json",
]
