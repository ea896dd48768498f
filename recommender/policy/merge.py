"""Files of several layers -> the policy in force, and where they contradict each other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from advisor.core.iterables import grouped
from advisor.core.values import PickName
from recommender.policy import rules as policy_rules
from recommender.policy.model import SECTIONS, Layer, PolicyFile, may_overlap

Lines = Mapping[tuple[str | int, ...], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFault:
    """What is wrong, and where; no line for what concerns a whole file."""

    file: str
    line: int | None
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One policy file and the lines of its keys and list entries."""

    file: str
    content: PolicyFile
    lines: Lines

    @property
    def layer(self) -> Layer:
        """Whose rules it holds."""
        return self.content.layer

    def origin(self, *place: str | int) -> policy_rules.Origin:
        """Where a key or list entry stands."""
        return policy_rules.Origin(file=self.file, line=self.lines.get(place, 1), layer=self.layer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Rules of all layers."""

    rules: tuple[policy_rules.Rule, ...]
    """In force, uppermost layer first."""
    overruled: tuple[tuple[policy_rules.Rule, policy_rules.Rule], ...]
    """Rules that another one of the same key goes before, with that one."""
    sources: tuple[Source, ...]
    """The files."""

    @property
    def prefer(self) -> policy_rules.PreferRule | None:
        """The tier to take first."""
        return next((rule for rule in self.rules if isinstance(rule, policy_rules.PreferRule)), None)

    @property
    def guard(self) -> policy_rules.GuardRule | None:
        """Why a job must have a limit."""
        return next((rule for rule in self.rules if isinstance(rule, policy_rules.GuardRule)), None)

    @property
    def pick(self) -> PickName | None:
        """``objective.pick``."""
        value = self._objective("objective.pick")
        return None if value is None else PickName(value)

    @property
    def value_of_time_usd_per_h(self) -> float | None:
        """``objective.value_of_time_usd_per_h``."""
        value = self._objective("objective.value_of_time_usd_per_h")
        return None if value is None else float(value)

    def _objective(self, key: str) -> Any:
        return next((rule.setting for rule in self.rules if rule.key == key), None)


def merge(sources: Sequence[Source]) -> tuple[Policy, tuple[PolicyFault, ...]]:
    """The policy in force, and every contradiction; with one, the policy is not to be used."""
    ordered = sorted(sources, key=lambda source: source.layer.rank)
    rules = [rule for source in ordered for rule in rules_of(source)]
    groups = grouped(rules, lambda rule: rule.merge_key)
    overruled = {
        id(rule): winner
        for group in groups.values()
        if (winner := _winner(group)) is not None
        for rule in group
        if rule is not winner
    }
    policy = Policy(
        rules=tuple(rule for rule in rules if id(rule) not in overruled),
        overruled=tuple((rule, overruled[id(rule)]) for rule in rules if id(rule) in overruled),
        sources=tuple(ordered),
    )
    return policy, (*_broken_locks(ordered), *_contradictions(rules), *_empty_allowances(rules))


def _winner(rules: Sequence[policy_rules.Rule]) -> policy_rules.Rule | None:
    """The rule that goes before the others of its key; None where all count."""
    match rules[0].merging:
        case policy_rules.Merging.STRICTEST:
            return min(rules, key=lambda rule: rule.strictness)
        case policy_rules.Merging.NEAREST:
            return max(rules, key=lambda rule: rule.origin.layer.rank)
        case policy_rules.Merging.ALL:
            return None


def rules_of(source: Source) -> Iterator[policy_rules.Rule]:
    """Every rule of a file in the order of the documentation."""
    content = source.content
    for name in SECTIONS:
        for key, value in getattr(content, name):
            if value is not None:
                yield from _rules_of_key(source, name, key, value)
    if content.prefer is not None:
        yield policy_rules.PreferRule(key="prefer", origin=source.origin("prefer"), setting=content.prefer)
    for index, entry in enumerate(content.approval):
        origin = source.origin("approval", index)
        yield policy_rules.ApprovalRule(key="approval", origin=origin, setting=entry)


_RULES: Mapping[str, type[policy_rules.Rule]] = {
    "allow": policy_rules.NameRule,
    "deny": policy_rules.NameRule,
    "limits": policy_rules.LimitRule,
    "spot": policy_rules.SpotRule,
    "objective": policy_rules.ObjectiveRule,
    "runs": policy_rules.GuardRule,
}


def _rules_of_key(source: Source, section: str, key: str, value: Any) -> Iterator[policy_rules.Rule]:
    parts: list[tuple[tuple[str | int, ...], Any]] = [((section, key), value)]
    if section == "deny":  # each entry removes by itself
        parts = [((section, key, index), (name,)) for index, name in enumerate(value)]
    for place, setting in parts:
        yield _RULES[section](key=f"{section}.{key}", origin=source.origin(*place), setting=setting)


def _broken_locks(ordered: Sequence[Source]) -> Iterator[PolicyFault]:
    for upper in ordered:
        below = [source for source in ordered if source.layer.rank > upper.layer.rank]
        for index, lock in enumerate(upper.content.lock):
            place = upper.origin("lock", index)
            if upper.layer is list(Layer)[-1]:
                message = "lock: no layer is below a project, so there is nothing to lock: remove it"
                yield PolicyFault(file=place.file, line=place.line, message=message)
            for lower in below:
                yield from _set_in_spite(lower, lock, place)


def _set_in_spite(lower: Source, lock: str, place: policy_rules.Origin) -> Iterator[PolicyFault]:
    origins: dict[str, policy_rules.Origin] = {}
    for rule in rules_of(lower):
        if rule.key == lock or rule.key.startswith(f"{lock}."):
            origins.setdefault(rule.key, rule.origin)
    for key, origin in origins.items():
        message = (
            f"{key} is locked by the {place.layer} ({place}), so a {origin.layer} cannot set it:"
            " remove it here, or have the lock lifted there"
        )
        yield PolicyFault(file=origin.file, line=origin.line, message=message)


def _contradictions(rules: Sequence[policy_rules.Rule]) -> Iterator[PolicyFault]:
    """Two files of one layer of which each wants to go first."""
    first: dict[tuple[str, Layer], policy_rules.Rule] = {}
    for rule in rules:
        earlier = first.setdefault((rule.key, rule.origin.layer), rule)
        if rule.merging is policy_rules.Merging.NEAREST and rule.value != earlier.value:
            before = f"{earlier.text} of the same layer ({earlier.origin})"
            message = f"{rule.text} contradicts {before}: keep one of them"
            yield PolicyFault(file=rule.origin.file, line=rule.origin.line, message=message)


def _empty_allowances(rules: Sequence[policy_rules.Rule]) -> Iterator[PolicyFault]:
    """Two lists of which nothing could be on both."""
    lists = [
        rule for rule in rules if isinstance(rule, policy_rules.NameRule) and rule.key.startswith("allow.")
    ]
    for upper, lower in combinations(lists, 2):
        is_shared = upper.members & lower.members or any(
            may_overlap(a, b) for a in lower.setting for b in upper.setting
        )
        if upper.key == lower.key and not is_shared:
            message = (
                f"{lower.text} and {upper.text} ({upper.origin}) have nothing in common, so nothing would be"
                " allowed: change one of them"
            )
            yield PolicyFault(file=lower.origin.file, line=lower.origin.line, message=message)
