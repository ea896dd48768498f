"""The sentence of each finding: a text with the names of its facts in braces, or a function of its class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch

from advisor.core.findings import Fact, Finding, Text
from advisor.core.units import format_duration, format_usd

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


# Kinds of work on a script (`Work`), as what it gets.
_WORK = {
    "ddp": "DDP",
    "fsdp": "FSDP",
    "model-parallel": "a divided model",
    "checkpoints": "checkpoints",
    "learning-rate": "a new learning rate",
    "nodes": "a start on each node",
    "software": "other packages",
    "script": "other lines of the script",
}
# What sharing the work of a step among GPUs brings with it.
_OF_SHARING, _WITH_SHARING = {"ddp", "fsdp", "model-parallel"}, {"learning-rate", "nodes"}


def named_work(work: Sequence[str]) -> str:
    """``DDP and checkpoints``."""
    left_out = set() if _OF_SHARING.isdisjoint(work) else _WITH_SHARING
    names = [_WORK[one] for one in work if one not in left_out]
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def effort(usd: float, seconds: float) -> str:
    """``$25.00 and 30 min``."""
    return f"{format_usd(usd)} and {format_duration(seconds)}"
