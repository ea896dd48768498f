"""What is worth saying, as a typed value: its class is what was found, its fields are the facts.

Engines make findings and look at their classes, never into a sentence. `advisor.report.words` has the
sentence of each class, and programs get code, severity and facts (docs/findings.md). Units stand in the
fields' names.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, NoReturn, TypeAlias, dataclass_transform

Fact: TypeAlias = "str | int | float | bool | Finding | Sequence[Fact] | Mapping[str, Fact] | None"


class Severity(StrEnum):
    """What a finding does to what it is about."""

    NOTE = "note"
    WARNING = "warning"
    REMOVAL = "removal"
    CHANGE = "change"
    ERROR = "error"


_OF_EVERY_CLASS = {"code", "severity", "fact_names"}


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Finding:
    """One thing worth saying: a frozen dataclass of its facts, for type checkers and in use.

    `dataclasses` itself compiles several functions for each class, which here would cost every command 0.1 s.
    """

    code: ClassVar[str]
    """The name of its class for programs, such as ``near-tie``."""
    severity: ClassVar[Severity] = Severity.NOTE
    fact_names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, code: str = "") -> None:
        cls.code = code or "".join(f"-{c.lower()}" if c.isupper() else c for c in cls.__name__)[1:]
        own = [name for kind in reversed(cls.__mro__[:-1]) for name in vars(kind).get("__annotations__", {})]
        cls.fact_names = tuple(name for name in dict.fromkeys(own) if name not in _OF_EVERY_CLASS)

    def __init__(self, **facts: Any) -> None:
        own = vars(self)
        for name in self.fact_names:
            if name not in facts and not hasattr(type(self), name):
                raise TypeError(f"{self.code} lacks {name}")
            own[name] = facts.pop(name) if name in facts else getattr(type(self), name)
        if facts:
            raise TypeError(f"{self.code} has no {', '.join(sorted(facts))}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self.code} cannot be changed: {name}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        # Of the texts alone: other facts may be lists, and a file can hold a million texts.
        return hash((self.code, frozenset(fact for fact in vars(self).values() if isinstance(fact, str))))

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={fact!r}" for name, fact in self.facts.items())
        return f"{type(self).__name__}({facts})"

    @property
    def facts(self) -> Mapping[str, Any]:
        """The fields by name.

        >>> quoted("a sentence").facts
        {'text': 'a sentence'}
        """
        return dict(vars(self))


class Note(Finding):
    """What is good to know."""


class Caution(Finding):
    """What may mislead."""

    severity = Severity.WARNING


class TraceWarning(Caution):
    """What may mislead about a trace; it is kept in the trace's file."""


class Removal(Finding):
    """Why an option is not feasible."""

    severity = Severity.REMOVAL


class Change(Finding):
    """What to change in the script, its environment or its place."""

    severity = Severity.CHANGE


class Fault(Finding):
    """What is missing or wrong in what was asked: an error carries it."""

    severity = Severity.ERROR


class Text(Note):
    """A sentence that someone else wrote: the child process, a plug-in, a file."""

    text: str


def quoted(sentence: str) -> Text:
    """A sentence that someone else wrote."""
    return Text(text=sentence)


def removals(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The codes of what removes an option, each once, in the order in which they are defined.

    >>> from advisor.core.findings.about_options import RemovedByBudget, RemovedBySoftware
    >>> dear = RemovedByBudget(cost_usd=3, budget_usd=2, p=0.1)
    >>> removals([dear, RemovedBySoftware(compute_capability="3.5")])
    ('software', 'budget')
    """
    codes = {one.code for one in findings if isinstance(one, Removal)}
    return tuple(kind.code for kind in Removal.__subclasses__() if kind.code in codes) if codes else ()
