"""Recommendations for two versions of a script -> what the change does to the job's cost, time and memory."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from advisor.core.findings import Finding, about_answers
from advisor.core.values import Option, Recommendation
from recommender.ranking.what_tips import machine, why_removed


class Measure(StrEnum):
    """By what two versions are compared."""

    COST = "cost"
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineChange:
    """One number of one GPU before and after.

    Attributes:
        base: the cheapest of these machines that does the job before the change, else any; None without one.
        head: the same after it.
    """

    gpu: str
    num_gpus: int
    base: Option | None
    head: Option | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptChange:
    """What the change does.

    Attributes:
        base: what is recommended before; None where nothing could do the job.
        same: that very plan after the change, whether it still does the job or not.
        head: what is recommended after it; None where nothing can do the job.
        machines: those that do the job before or after, the recommended first, then what the change rules in
            or out, each by cost; one number of each GPU.
    """

    base: Option | None
    same: Option | None
    head: Option | None
    machines: tuple[MachineChange, ...]

    @property
    def now(self) -> Option | None:
        """What stands beside the base: the same plan as long as it does the job, else the new one to take."""
        return self.same if self.same is not None and self.same.feasible else self.head

    @property
    def measure(self) -> Measure:
        """Cost, or time where a machine has no known price or costs nothing."""
        pair = (self.base, self.now)
        priced = all(option is not None and _is_priced(option) for option in pair)
        return Measure.COST if priced else Measure.TIME

    @property
    def relative(self) -> float | None:
        """Median after over median before, less 1: 0.23 is 23 % more; None without both."""
        if self.base is None or self.now is None:
            return None
        return _amount(self.now, self.measure) / _amount(self.base, self.measure) - 1


def script_change(base: Recommendation, head: Recommendation) -> ScriptChange:
    """Compare the answers for two versions of a script; both rank the same plans.

    Args:
        base: for the version before.
        head: for the version after.
    """
    before, after = base.chosen, head.chosen
    return ScriptChange(
        base=before,
        same=None if before is None else head.option(before.plan.id),
        head=after,
        machines=tuple(_machines(base, head, (before, after))),
    )


def change_findings(change: ScriptChange) -> tuple[Finding, ...]:
    """The change in short: its price, what no longer fits, and whether another machine is better now."""
    return tuple(_findings(change))


def _findings(change: ScriptChange) -> Iterator[Finding]:
    base, same, head = change.base, change.same, change.head
    if head is None:
        yield about_answers.ChangeEndsAll(machine=None if base is None else machine(base))
    elif base is None:
        yield about_answers.ChangeMoves(was_possible=False, machine=machine(head), **_figures("head", head))
    else:
        yield from _between(change, base, head)
    yield from _fits(change)
    if same is not None and same.feasible and head is not None and head.plan.id != same.plan.id:
        yield about_answers.ChangeMoves(was_possible=True, machine=machine(head), **_figures("head", head))


def _between(change: ScriptChange, base: Option, head: Option) -> Iterator[Finding]:
    same = change.same
    facts: dict[str, Any] = {"measure": change.measure, "relative": change.relative, **_figures("base", base)}
    if same is not None and same.feasible:
        yield about_answers.ChangeCosts(machine=machine(base), **facts, **_figures("head", same))
        return
    yield about_answers.ChangeRulesOut(
        machine=machine(base),
        why=None if same is None else why_removed(same),
        instead=machine(head),
        **facts,
        **_figures("head", head),
    )


def _fits(change: ScriptChange) -> Iterator[Finding]:
    """Memory of one GPU on the machine of the base, and which GPUs it rules in or out."""
    pairs = [(change.base, change.same), *((one.base, one.head) for one in change.machines)]
    both = [(a.estimate, b.estimate) for a, b in pairs if a is not None and b is not None]
    grown = [(a.memory_bytes, b.memory_bytes) for a, b in both if a.memory_bytes and b.memory_bytes]
    out = [b.gpu for a, b in both if a.fits_memory is True and b.fits_memory is False]
    newly = [b.gpu for a, b in both if a.fits_memory is False and b.fits_memory is True]
    if grown and grown[0][0] != grown[0][1]:
        base_bytes, head_bytes = grown[0]
        yield about_answers.ChangeOfMemory(
            base_bytes=base_bytes,
            head_bytes=head_bytes,
            no_longer=tuple(dict.fromkeys(out)),
            newly=tuple(dict.fromkeys(newly)),
        )


def _figures(name: str, option: Option) -> dict[str, Any]:
    is_known = option.plan.usd_per_h is not None
    return {
        f"{name}_usd": option.cost_usd.p50 if is_known else None,
        f"{name}_p90_usd": option.cost_usd.p90 if is_known else None,
        f"{name}_s": option.time_s.p50,
    }


def _machines(
    base: Recommendation, head: Recommendation, chosen: Iterable[Option | None]
) -> list[MachineChange]:
    """Those chosen, then one number of each GPU: first those ruled in or out, each group by cost."""
    befores, afters = _cheapest(base.options), _cheapest(head.options)
    first = {_key(option) for option in chosen if option is not None}
    changes = [
        MachineChange(gpu=gpu, num_gpus=num_gpus, base=befores.get(key), head=afters.get(key))
        for key in {**befores, **afters}
        for gpu, num_gpus in [key]
        if any(option is not None and option.feasible for option in (befores.get(key), afters.get(key)))
    ]

    def order(change: MachineChange) -> tuple[bool, bool, float]:
        pair = [option for option in (change.base, change.head) if option is not None]
        turns = len({option.feasible for option in pair}) > 1
        cost_usd = min(option.counted_usd for option in pair if option.feasible)
        return (change.gpu, change.num_gpus) not in first, not turns, cost_usd

    ordered = sorted(changes, key=order)
    by_gpu = {change.gpu: change for change in reversed(ordered)}
    return [c for c in ordered if (c.gpu, c.num_gpus) in first or by_gpu[c.gpu] is c]


def _cheapest(options: Iterable[Option]) -> Mapping[tuple[str, int], Option]:
    """By GPU and number, the cheapest that does the job; one that does not, where none does."""
    cheapest: dict[tuple[str, int], Option] = {}
    for option in sorted(options, key=cheapest_first):
        cheapest.setdefault(_key(option), option)
    return cheapest


def cheapest_first(option: Option) -> tuple[bool, float, str]:
    """What does the job goes before what does not, and what costs less before the rest."""
    return not option.feasible, option.counted_usd, option.plan.id


def _key(option: Option) -> tuple[str, int]:
    return option.plan.gpu, option.plan.num_gpus


def _is_priced(option: Option) -> bool:
    return option.plan.usd_per_h is not None and option.cost_usd.p50 > 0


def _amount(option: Option, measure: Measure) -> float:
    return option.cost_usd.p50 if measure is Measure.COST else option.time_s.p50
