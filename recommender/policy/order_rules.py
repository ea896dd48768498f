"""Rules about what goes first among several options: the preferred tier and the objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.core.units import exact_duration, format_duration
from advisor.core.values import Option, Tier
from recommender.policy.facts import Facts
from recommender.policy.rules import Effect, Judgement, Merging, Rule, silent


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferRule(Rule):
    """``prefer``: the tier and the waits (in seconds) under which it goes first."""

    merging: ClassVar[Merging] = Merging.NEAREST
    tier: Tier
    wait_p50_under_s: float | None
    wait_p90_under_s: float | None

    @property
    def value(self) -> object:
        """As the file has it."""
        return {"tier": self.tier.value, "if": {key: exact_duration(s) for key, s in self._limits()}}

    @property
    def value_text(self) -> str:
        """As a person reads it."""
        conditions = [f"{key} {exact_duration(s)}" for key, s in self._limits()]
        return self.tier + (f" if {' and '.join(conditions)}" if conditions else "")

    def _limits(self) -> list[tuple[str, float]]:
        limits = {"wait_p50_under": self.wait_p50_under_s, "wait_p90_under": self.wait_p90_under_s}
        return [(key, limit) for key, limit in limits.items() if limit is not None]

    def holds_for(self, option: Option) -> bool:
        """Whether the option is of the tier, feasible and known to wait short enough."""
        if option.plan.tier is not self.tier or not option.feasible:
            return False
        wait = option.wait_s
        waits = {"wait_p50_under": wait.p50, "wait_p90_under": wait.p90} if wait else {}
        return all(key in waits and waits[key] < limit for key, limit in self._limits())

    def detail(self, preferred: Option) -> str:
        """Why the other tiers go: ``cluster/lab/8xT4 is feasible and waits 2 h (p90)``."""
        wait = f" and waits {format_duration(preferred.wait_s.p90)} at p90" if preferred.wait_s else ""
        return f"{preferred.plan.id} is feasible{wait}"

    def judge(self, facts: Facts) -> Judgement:
        """The tier alone: whether an option of the preferred one is there, other options tell."""
        if facts.tier is self.tier:
            return Judgement(effect=Effect.KEEPS, detail="it is of the preferred tier")
        detail = f"it stays unless a {self.tier} option is feasible and meets the condition"
        return Judgement(effect=Effect.UNKNOWN, detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveRule(Rule):
    """``objective.*``."""

    merging: ClassVar[Merging] = Merging.NEAREST
    setting: str | float

    @property
    def value(self) -> object:
        """As the file has it."""
        return self.setting

    def judge(self, facts: Facts) -> Judgement:  # noqa: ARG002
        """Nothing: it ranks what is left."""
        return silent("it ranks what is left")
