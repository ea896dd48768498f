"""The sentence of each finding: a text with the names of its facts in braces, or a function of its class."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch

from advisor.core.findings import Fact, Finding, Text

Texts = dict[type[Finding], str | Mapping[str, str]]

TEXTS: Texts = {Text: "{text}"}
"""A text of each finding, or its texts by the first of its facts."""


@singledispatch
def in_names(finding: Finding) -> str:
    """The sentence for Python: what it names in backquotes is the name of an argument or setting."""
    facts = {name: _told(fact) for name, fact in finding.facts.items()}
    text = TEXTS[type(finding)]
    return (text if isinstance(text, str) else text[str(facts[finding.fact_names[0]])]).format(**facts)


def _told(fact: Fact) -> Fact:
    if isinstance(fact, list | tuple):
        return ", ".join(map(str, fact))
    return in_names(fact) if isinstance(fact, Finding) else fact
