"""The sentences of findings: what is told of each code, with its flags and units, in one place."""

from advisor.report.words.sentences import (
    WORDS,
    finding_json,
    rule_text,
    sentence,
    sentences,
    warnings_json,
)

__all__ = ["WORDS", "finding_json", "rule_text", "sentence", "sentences", "warnings_json"]
