"""Finding -> sentence, by the table of all codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from advisor.core.errors import AdvisorError
from advisor.core.findings import Finding
from advisor.core.values import Recommendation
from advisor.report.plain import in_flags
from advisor.report.words.table import in_names


def sentence(finding: Finding) -> str:
    """What a person reads of a finding, without a full stop.

    >>> from advisor.core.findings.about_options import ApprovalNeeded
    >>> sentence(ApprovalNeeded(by="team lead", detail="over $100", file="org.yaml:9"))
    'needs approval by team lead: over $100 (org.yaml:9)'
    """
    return in_flags(in_names(finding))


def error_text(error: AdvisorError) -> str:
    """An error as the command line tells it: with flags, where it knows them."""
    return in_flags(str(error)) if error.finding is None else f"{sentence(error.finding)}."


def text_of(message: str | Finding) -> str:
    """What a listener hears, in words."""
    return message if isinstance(message, str) else sentence(message)


def sentences(findings: Iterable[Finding]) -> list[str]:
    """The same of several."""
    return [sentence(one) for one in findings]


def rule_text(recommendation: Recommendation) -> str:
    """Why the recommended option is the one to take; empty where none is."""
    return "" if recommendation.rule is None else sentence(recommendation.rule)


def finding_json(finding: Finding) -> Mapping[str, object]:
    """Code, severity and facts, as JSON has them."""
    facts = {
        name: finding_json(fact) if isinstance(fact, Finding) else fact
        for name, fact in finding.facts.items()
    }
    return {"code": finding.code, "severity": finding.severity.value, "facts": facts}


def warnings_json(warnings: Sequence[Finding]) -> Mapping[str, object]:
    """The warnings of a document, for people and for programs."""
    return {"warnings": sentences(warnings), "warning_findings": list(map(finding_json, warnings))}
