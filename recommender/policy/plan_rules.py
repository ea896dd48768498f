"""Rules that keep, remove or mark a plan: names, limits, spot machines, approvals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.core.units import format_usd
from advisor.core.values import Market, Tier
from recommender.policy.facts import Facts
from recommender.policy.model import Layer
from recommender.policy.names import matches
from recommender.policy.rules import Effect, Judgement, Merging, Rule, plain, removes_if, silent, unknown

# Money is compared to a millionth, so that rounding never decides.
TOLERANCE = 1e-6
_FACT_OF_LIST = {
    "providers": ("provider", "provider"),
    "regions": ("region", "region"),
    "markets": ("market", "market"),
    "gpus": ("gpu", "GPU"),
    "instance_types": ("instance_type", "instance type"),
}
_OF_CLOUDS = frozenset({"regions", "markets", "instance_types"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRule(Rule):
    """``allow.*`` with its whole list, or one entry of ``deny.*``.

    Attributes:
        members: GPUs of the catalog that the names mean; empty for other lists.
    """

    names: tuple[str, ...]
    members: frozenset[str] = frozenset()

    @property
    def value(self) -> object:
        """As the file has it."""
        return list(self.names)

    @property
    def value_text(self) -> str:
        """As a person reads it."""
        return ", ".join(self.names)

    @property
    def means(self) -> tuple[str, ...]:
        """GPUs of the catalog that the names stand for, if they are not those names."""
        return () if self.members <= set(self.names) else tuple(sorted(self.members))

    def judge(self, facts: Facts) -> Judgement:
        """Whether the name in question is on the list."""
        effect, _, subject = self.key.partition(".")
        fact, word = _FACT_OF_LIST[subject]
        if facts.tier is not Tier.CLOUD and subject in _OF_CLOUDS:
            return silent(f"a machine of one's own has no {word}")
        name = getattr(facts, fact)
        if name is None:
            return unknown(word)
        is_listed = name in self.members or any(matches(glob, name) for glob in self.names)
        removes = is_listed if effect == "deny" else not is_listed
        return removes_if(removes, f"{word} {name} is {'' if is_listed else 'not '}among them")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRule(Rule):
    """``limits.*``."""

    merging: ClassVar[Merging] = Merging.STRICTEST
    most: float

    @property
    def value(self) -> object:
        """As the file has it."""
        return self.most

    @property
    def strictness(self) -> float:
        """The lower, the stricter."""
        return self.most

    @property
    def is_monthly(self) -> bool:
        """Whether the ledger decides."""
        return self.key == "limits.usd_per_month"

    @property
    def is_of_project(self) -> bool:
        """Whether a monthly limit counts the project's own runs alone."""
        return self.origin.layer is Layer.PROJECT

    @property
    def merge_key(self) -> str:
        """A project's monthly limit stands apart: it counts another ledger."""
        is_apart = self.key == "limits.usd_per_month" and self.is_of_project
        return f"{self.key} of a project" if is_apart else self.key

    def judge(self, facts: Facts) -> Judgement:
        """Whether an amount is within the limit."""
        match self.key:
            case "limits.usd_per_month":
                return self._of_month(facts)
            case "limits.gpus_per_job":
                return self._compare(facts.num_gpus, "number of GPUs", f"it has {facts.num_gpus} GPUs")
            case "limits.nodes_per_job":
                nodes = f"it has {facts.num_nodes} node{'' if facts.num_nodes == 1 else 's'}"
                return self._compare(facts.num_nodes, "number of nodes", nodes)
            case "limits.usd_per_hour":
                price = format_usd(facts.usd_per_h or 0)
                return self._compare(facts.usd_per_h, "price per hour", f"it costs {price}/h")
        cost = format_usd(facts.usd_per_job or 0)
        return self._compare(facts.usd_per_job, "cost of the job", f"the job costs {cost} at p90")

    def _of_month(self, facts: Facts) -> Judgement:
        if facts.spent is None or facts.usd_per_job is None:
            return unknown("cost of the job" if facts.usd_per_job is None else "spending of this month")
        spent = facts.spent.project_usd if self.is_of_project else facts.spent.all_usd
        whose = "this project" if self.is_of_project else "all projects"
        detail = (
            f"{format_usd(spent)} spent this month by {whose}, and the job costs"
            f" {format_usd(facts.usd_per_job)} at p90"
        )
        verdict = self._compare(spent + facts.usd_per_job, "spending of this month", detail)
        is_of_project, of = self.is_of_project, facts.spent
        num_unknown = of.project_num_unknown if is_of_project else of.all_num_unknown
        if num_unknown and verdict.effect is not Effect.REMOVES:
            return unknown(f"cost of {num_unknown} of this month's runs")
        return verdict

    def _compare(self, amount: float | None, what: str, detail: str) -> Judgement:
        if amount is None:
            return unknown(what)
        return removes_if(not amount <= self.most * (1 + TOLERANCE), detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRule(Rule):
    """``spot.*``."""

    merging: ClassVar[Merging] = Merging.STRICTEST
    setting: bool | float

    @property
    def value(self) -> object:
        """As the file has it."""
        return self.setting

    @property
    def strictness(self) -> float:
        """The lower, the stricter."""
        return -self.setting if self.key == "spot.needs_checkpoints" else float(self.setting)

    def judge(self, facts: Facts) -> Judgement:
        """Whether a spot machine may be used; others do not matter."""
        if facts.tier is Tier.CLOUD and facts.market is None:
            return unknown("market")
        if facts.tier is not Tier.CLOUD or facts.market != Market.SPOT:
            return silent("it cannot be preempted")
        match self.key:
            case "spot.allowed":
                return removes_if(not self.setting, "it is a spot machine")
            case "spot.needs_checkpoints":
                return self._checkpoints(facts.saves_checkpoints)
        rate = facts.preemptions_per_h
        if rate is None:
            return unknown("rate of preemptions")
        return removes_if(rate > self.setting, f"{rate:g} preemptions per hour are assumed")

    def _checkpoints(self, saved: bool | None) -> Judgement:
        if saved is None and self.setting:
            return unknown("checkpoint interval")
        words = "it saves checkpoints" if saved else "it saves no checkpoints (spot.checkpoint_interval)"
        return removes_if(bool(self.setting) and not saved, words)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule(Rule):
    """An entry of ``approval``."""

    over_usd_per_job: float
    by: str

    @property
    def value(self) -> object:
        """As the file has it."""
        return {"over_usd_per_job": self.over_usd_per_job, "by": self.by}

    @property
    def value_text(self) -> str:
        """As a person reads it."""
        return f"by {self.by} over {plain(self.over_usd_per_job)} USD a job"

    def judge(self, facts: Facts) -> Judgement:
        """Whether somebody must agree."""
        if facts.usd_per_job is None:
            return unknown("cost of the job")
        asks = not facts.usd_per_job <= self.over_usd_per_job * (1 + TOLERANCE)
        detail = f"the job costs {format_usd(facts.usd_per_job)} at p90"
        return Judgement(effect=Effect.ASKS if asks else Effect.KEEPS, detail=detail)
