"""What is worth saying, as a value: which thing it is, how serious, and the facts.

Engines make findings and look at their codes; nobody looks into a sentence. `advisor.report.words` has the
sentence of each code, and programs get codes and facts as they are (docs/findings.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from advisor.core.codes import Code, Severity

__all__ = ["REMOVALS", "Code", "Fact", "Finding", "Severity", "finding", "quoted", "removals"]

Fact: TypeAlias = "str | int | float | bool | Finding | Sequence[Fact] | Mapping[str, Fact] | None"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth saying.

    Attributes:
        facts: numbers and names behind it, units in their names.
    """

    code: Code
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def __hash__(self) -> int:
        """Of the code and the texts: other facts may be lists, and a file can hold a million texts."""
        return hash((self.code, frozenset(fact for fact in self.facts.values() if isinstance(fact, str))))

    @property
    def severity(self) -> Severity:
        """How serious it is, which follows from what it is."""
        return self.code.severity


def finding(code: Code, **facts: Fact) -> Finding:
    """A finding with these facts; they are the arguments of its words.

    >>> finding(Code.INPUT_IN_TURN, loading_s=0.5, gpu_s=0.1).severity
    <Severity.NOTE: 'note'>
    """
    return Finding(code, facts)


def quoted(sentence: str) -> Finding:
    """A sentence that somebody else wrote."""
    return Finding(Code.TEXT, {"text": sentence})


def removals(findings: Iterable[Finding]) -> tuple[Code, ...]:
    """What removes an option, each once, in the order of `Code`.

    >>> [code.value for code in removals([finding(Code.BUDGET), finding(Code.MEMORY), finding(Code.TIE)])]
    ['memory', 'budget']
    """
    codes = _REMOVING.intersection([one.code for one in findings])
    return tuple(code for code in REMOVALS if code in codes) if codes else ()


REMOVALS = tuple(code for code in Code if code.severity is Severity.REMOVAL)
_REMOVING = frozenset(REMOVALS)
