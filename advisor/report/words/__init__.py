"""The sentence of each finding, with its flags and units, in one place."""

# Each registers its sentences.
from advisor.report.words import answer_notes, estimate_notes, team_report  # noqa: F401
from advisor.report.words.sentences import (
    all_told,
    error_text,
    finding_json,
    in_names,
    rule_text,
    sentence,
    sentences,
    text_of,
    told,
    warnings_json,
)

__all__ = [
    "all_told",
    "error_text",
    "finding_json",
    "in_names",
    "rule_text",
    "sentence",
    "sentences",
    "text_of",
    "told",
    "warnings_json",
]
