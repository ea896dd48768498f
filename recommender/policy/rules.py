"""What a rule is: where it stands, and what it says of a plan."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar

from advisor.core.units import exact_duration, format_duration, format_usd
from advisor.core.values import Market, Option, Tier
from recommender.conditions import Facts
from recommender.outcome.bill import TOLERANCE
from recommender.policy.model import Approval, Layer, Prefer, gpu_members, matches


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
    setting: Any
    """As it was read from the file."""

    @property
    def value(self) -> object:
        """As the file has it, for JSON."""
        return self.setting

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
    """A list or a scalar as YAML writes it, numbers without exponent."""
    if isinstance(value, list):
        return ", ".join(value)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferRule(Rule):
    """``prefer``: the tier and the waits (in seconds) under which it goes first."""

    merging: ClassVar[Merging] = Merging.NEAREST
    setting: Prefer

    @property
    def tier(self) -> Tier:
        """The one to take first."""
        return self.setting.tier

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
        return [(key, limit) for key, limit in self.setting.if_ if limit is not None]

    def holds_for(self, option: Option) -> bool:
        """Whether the option is of the tier, feasible and known to wait short enough."""
        wait = option.wait_s
        waits = {"wait_p50_under": wait.p50, "wait_p90_under": wait.p90} if wait else {}
        is_short = all(key in waits and waits[key] < limit for key, limit in self._limits())
        return option.plan.tier is self.tier and option.feasible and is_short

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

    def judge(self, facts: Facts) -> Judgement:  # noqa: ARG002
        """Nothing: it ranks what is left."""
        return silent("it ranks what is left")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRule(Rule):
    """``runs.guard``."""

    merging: ClassVar[Merging] = Merging.STRICTEST

    def judge(self, facts: Facts) -> Judgement:  # noqa: ARG002
        """Nothing: `advisor run` and `advisor launch` obey it."""
        return silent("it is about how a job is started")


_FACT_OF_LIST = {
    "providers": ("provider", "provider"),
    "regions": ("region", "region"),
    "markets": ("market", "market"),
    "gpus": ("gpu", "GPU"),
    "instance_types": ("instance_type", "instance type"),
}
_OF_CLOUDS = frozenset({"regions", "markets", "instance_types"})


@cache
def _gpus_of(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(gpu for name in names for gpu in gpu_members(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRule(Rule):
    """``allow.*`` with its whole list, or one entry of ``deny.*``."""

    setting: tuple[str, ...]

    @property
    def value(self) -> object:
        """As the file has it."""
        return list(self.setting)

    @property
    def members(self) -> frozenset[str]:
        """GPUs of the catalog that the names mean; none for other lists."""
        return _gpus_of(self.setting) if self.key.endswith(".gpus") else frozenset()

    @property
    def means(self) -> tuple[str, ...]:
        """GPUs of the catalog that the names stand for, if they are not those names."""
        return () if self.members <= set(self.setting) else tuple(sorted(self.members))

    def judge(self, facts: Facts) -> Judgement:
        """Whether the name in question is on the list."""
        effect, _, subject = self.key.partition(".")
        fact, word = _FACT_OF_LIST[subject]
        if facts.tier is not Tier.CLOUD and subject in _OF_CLOUDS:
            return silent(f"your own machines have no {word}")
        name = getattr(facts, fact)
        if name is None:
            return unknown(word)
        is_listed = name in self.members or any(matches(glob, name) for glob in self.setting)
        removes = is_listed if effect == "deny" else not is_listed
        return removes_if(removes, f"{word} {name} is {'' if is_listed else 'not '}among them")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRule(Rule):
    """``limits.*``."""

    merging: ClassVar[Merging] = Merging.STRICTEST
    setting: float

    @property
    def strictness(self) -> float:
        """The lower, the stricter."""
        return self.setting

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
        return f"{self.key} of a project" if self.is_monthly and self.is_of_project else self.key

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
        usd, of = facts.usd_per_job, facts.spent
        if of is None or usd is None:
            return unknown("cost of the job" if usd is None else "spending of this month")
        if self.is_of_project:
            whose, spent, num_unknown = "this project", of.project_usd, of.project_num_unknown
        else:
            whose, spent, num_unknown = "all projects", of.all_usd, of.all_num_unknown
        words = f"{format_usd(spent)} spent this month by {whose}, and the job costs {format_usd(usd)} at p90"
        verdict = self._compare(spent + usd, "spending of this month", words)
        if num_unknown and verdict.effect is not Effect.REMOVES:
            return unknown(f"cost of {num_unknown} of this month's runs")
        return verdict

    def _compare(self, amount: float | None, what: str, detail: str) -> Judgement:
        if amount is None:
            return unknown(what)
        return removes_if(not amount <= self.setting * (1 + TOLERANCE), detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRule(Rule):
    """``spot.*``."""

    merging: ClassVar[Merging] = Merging.STRICTEST
    setting: bool | float

    @property
    def value(self) -> object:
        """As the file has it."""
        return exact_duration(self.setting) if self.key == "spot.jobs_under" else self.setting

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
        saved, train_s, rate = facts.saves_checkpoints, facts.train_s, facts.preemptions_per_h
        match self.key:
            case "spot.allowed":
                return removes_if(not self.setting, "it is a spot machine")
            case "spot.needs_checkpoints":
                if saved is None and self.setting:
                    return unknown("script's use of checkpoints")
                words = (
                    "it saves checkpoints" if saved else "it saves no checkpoints (spot.checkpoint_interval)"
                )
                return removes_if(bool(self.setting) and not saved, words)
            case "spot.jobs_under":
                if train_s is None:
                    return unknown("training time of the job")
                is_endless = math.isinf(train_s)
                words = "it never ends" if is_endless else f"it trains for {format_duration(train_s)} there"
                return removes_if(not train_s < self.setting, words)
        if rate is None:
            return unknown("rate of preemptions")
        return removes_if(rate > self.setting, f"{rate:g} preemptions per hour are assumed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule(Rule):
    """An entry of ``approval``."""

    setting: Approval

    @property
    def value(self) -> object:
        """As the file has it."""
        return self.setting.model_dump()

    @property
    def value_text(self) -> str:
        """As a person reads it."""
        return f"by {self.setting.by} over {plain(self.setting.over_usd_per_job)} USD a job"

    def judge(self, facts: Facts) -> Judgement:
        """Whether someone must agree."""
        if facts.usd_per_job is None:
            return unknown("cost of the job")
        asks = not facts.usd_per_job <= self.setting.over_usd_per_job * (1 + TOLERANCE)
        detail = f"the job costs {format_usd(facts.usd_per_job)} at p90"
        return Judgement(effect=Effect.ASKS if asks else Effect.KEEPS, detail=detail)
