"""What a rule is: where it stands, and what it says of a plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from recommender.policy.facts import Facts
from recommender.policy.model import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a rule stands."""

    file: str
    line: int
    layer: Layer

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Effect(StrEnum):
    """What a rule does to a plan."""

    KEEPS = "keeps"
    REMOVES = "removes"
    ASKS = "needs approval"
    UNKNOWN = "unknown"
    SILENT = "does not apply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a rule says of a plan, and why."""

    effect: Effect
    detail: str


class Merging(StrEnum):
    """Which of several rules of one key are in force."""

    ALL = "all"
    STRICTEST = "strictest"
    NEAREST = "nearest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(ABC):
    """One key of a policy file."""

    merging: ClassVar[Merging] = Merging.ALL
    key: str
    origin: Origin

    @property
    @abstractmethod
    def value(self) -> object:
        """As the file has it, for JSON."""

    @property
    def value_text(self) -> str:
        """As a person reads it."""
        return plain(self.value)

    @property
    def text(self) -> str:
        """``limits.usd_per_job: 500``."""
        return f"{self.key}: {self.value_text}"

    @property
    def means(self) -> tuple[str, ...]:
        """GPUs of the catalog that the names stand for, if they are not those names."""
        return ()

    @property
    def merge_key(self) -> str:
        """Rules of the same merge key are compared with each other."""
        return self.key

    @property
    def strictness(self) -> float:
        """The lower, the stricter."""
        return 0.0

    @abstractmethod
    def judge(self, facts: Facts) -> Judgement:
        """What the rule says of a plan."""


def plain(value: object) -> str:
    """A scalar as YAML writes it, numbers without exponent."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, int | float) else str(value)


def removes_if(removes: bool, detail: str) -> Judgement:
    """Removes or keeps, for the reason given."""
    return Judgement(effect=Effect.REMOVES if removes else Effect.KEEPS, detail=detail)


def silent(detail: str) -> Judgement:
    """The rule is not about such a plan."""
    return Judgement(effect=Effect.SILENT, detail=detail)


def unknown(what: str) -> Judgement:
    """What the rule is about is not known."""
    return Judgement(effect=Effect.UNKNOWN, detail=f"the {what} is not known")
