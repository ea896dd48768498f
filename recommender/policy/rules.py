"""What a rule is: where it stands, and what it says of a plan."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from advisor.core.units import exact_duration, format_duration, format_usd
from advisor.core.values import Market, Option, Tier
from recommender.conditions import Facts
from recommender.policy.model import Layer, matches


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


# --- Rules about what goes first among several options: the preferred tier and the objective -------------


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRule(Rule):
    """``runs.guard``."""

    merging: ClassVar[Merging] = Merging.STRICTEST

    @property
    def value(self) -> object:
        """As the file has it."""
        return "required"

    def judge(self, facts: Facts) -> Judgement:  # noqa: ARG002
        """Nothing: `advisor run` and `advisor launch` obey it."""
        return silent("it is about how a job is started")


# --- Rules that keep, remove or mark a plan: names, limits, spot machines, approvals ---------------------


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
    """``allow.*`` with its whole list, or one entry of ``deny.*``."""

    names: tuple[str, ...]
    members: frozenset[str] = frozenset()
    """GPUs of the catalog that the names mean; empty for other lists."""

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
            return silent(f"your own machines have no {word}")
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
        match self.key:
            case "spot.allowed":
                return removes_if(not self.setting, "it is a spot machine")
            case "spot.needs_checkpoints":
                return self._checkpoints(facts.saves_checkpoints)
            case "spot.jobs_under":
                return self._length(facts.train_s)
        rate = facts.preemptions_per_h
        if rate is None:
            return unknown("rate of preemptions")
        return removes_if(rate > self.setting, f"{rate:g} preemptions per hour are assumed")

    def _length(self, train_s: float | None) -> Judgement:
        if train_s is None:
            return unknown("training time of the job")
        words = "it never ends" if math.isinf(train_s) else f"it trains for {format_duration(train_s)} there"
        return removes_if(not train_s < self.setting, words)

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
        """Whether someone must agree."""
        if facts.usd_per_job is None:
            return unknown("cost of the job")
        asks = not facts.usd_per_job <= self.over_usd_per_job * (1 + TOLERANCE)
        detail = f"the job costs {format_usd(facts.usd_per_job)} at p90"
        return Judgement(effect=Effect.ASKS if asks else Effect.KEEPS, detail=detail)
