"""Finding -> sentence: by its text of ``texts.toml``, or by a function that is registered for its class."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, singledispatch
from pathlib import Path
from string import Formatter
from typing import Any

from advisor.core.errors import AdvisorError
from advisor.core.findings import Fact, Finding
from advisor.core.units import MIB, format_bytes, format_duration, format_usd
from advisor.core.values import Recommendation
from advisor.report.plain import in_flags

_SPECS: Mapping[str, Callable[[float], str]] = {
    "bytes": format_bytes,
    "duration": format_duration,
    "mib": lambda num_bytes: f"{num_bytes / MIB:g} MiB",
    "percent": lambda share: f"{100 * share:.0f} %",
    "times": lambda factor: f"{factor:.2g}" if factor < 10 else f"{factor:,.0f}",
    "us": lambda seconds: f"{seconds * 1e6:g}",
    "usd": format_usd,
    "s": lambda num: "" if num == 1 else "s",
    "es": lambda num: "" if num == 1 else "es",
}
# A fact and two texts, each of which may hold facts.
_CHOICE = re.compile(r"\{(\w+):\?((?:[^{}|]|\{[^{}]*\})*)\|((?:[^{}]|\{[^{}]*\})*)\}")


class _Sentences(Formatter):
    """Texts with the names of facts in braces: ``{cost_usd:usd}``, ``{time_s:duration}``."""

    def format_field(self, value: Any, format_spec: str) -> str:
        words = _SPECS.get(format_spec)
        return str(super().format_field(value, format_spec)) if words is None else words(value)


@cache
def texts() -> Mapping[str, str | Mapping[str, str]]:
    """By the name of a finding's class its text, or its texts by the first of its facts."""
    return tomllib.loads(Path(__file__).with_name("texts.toml").read_text("utf-8"))


@singledispatch
def in_names(finding: Finding) -> str:
    """The sentence for Python: what it names in backquotes is the name of an argument or setting."""
    facts = {name: _told(fact) for name, fact in finding.facts.items()}
    text = texts()[type(finding).__name__]
    if not isinstance(text, str):
        text = text[str(facts[finding.fact_names[0]])]
    # Chosen before any fact stands in the text: a fact may hold whatever a script names.
    chosen = _CHOICE.sub(lambda it: it[3] if _is_nothing(facts[it[1]]) else it[2], text)
    return _Sentences().vformat(chosen, (), facts)


def _told(fact: Fact) -> Fact:
    if isinstance(fact, list | tuple):
        return ", ".join(map(str, fact))
    return in_names(fact) if isinstance(fact, Finding) else fact


def _is_nothing(fact: Fact) -> bool:
    return fact is None or fact is False or fact == ""


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


def sentence(finding: Finding) -> str:
    """What a person reads of a finding, without a full stop.

    >>> from advisor.core.findings.about_options import ApprovalNeeded
    >>> sentence(ApprovalNeeded(by="team lead", detail="over $100", file="org.yaml:9"))
    'needs approval by team lead: over $100 (org.yaml:9)'
    """
    return in_flags(in_names(finding))


def error_text(error: AdvisorError) -> str:
    """An error as the command line gives it: with flags, where it knows them."""
    return in_flags(str(error)) if error.finding is None else f"{sentence(error.finding)}."


def text_of(message: str | Finding) -> str:
    """What a listener receives, in words."""
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


def told(name: str, finding: Finding | None) -> Mapping[str, object]:
    """A finding for people and, as ``NAME_finding``, for programs; both None where there is none."""
    if finding is None:
        return {name: None, f"{name}_finding": None}
    return {name: sentence(finding), f"{name}_finding": finding_json(finding)}


def all_told(name: str, findings: Sequence[Finding]) -> Mapping[str, object]:
    """The same of several: ``reasons`` and ``reason_findings``."""
    return {
        name: sentences(findings),
        f"{name.removesuffix('s')}_findings": list(map(finding_json, findings)),
    }


def warnings_json(warnings: Sequence[Finding]) -> Mapping[str, object]:
    """The warnings of a document, for people and for programs."""
    return all_told("warnings", warnings)
