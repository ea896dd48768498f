"""Two plans for one job side by side: what decides between them, and how sure that is.

Both share their draws, so luck decides nothing: ``compared(b, a)`` is the mirror of ``compared(a, b)``.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import itemgetter
from typing import Any, NamedTuple

from advisor.core.findings import Finding, about_answers
from advisor.core.notebook import html_of
from advisor.core.units import HOUR_S
from advisor.core.values import Interval, Job, Option, Recommendation
from recommender.outcome.bill import TOLERANCE
from recommender.outcome.draws import chance_below, ratio_of
from recommender.outcome.evaluate import Judged
from recommender.ranking.value import Worth, change_s, change_usd, whole_s, whole_usd, worth_for
from recommender.ranking.what_tips import machine, why_removed


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """What a plan comes to: means over all draws, or medians where a draw of either plan never ends."""

    usd: float
    """As it counts in comparisons, what changing the script costs included."""
    time_s: float
    """Until the job is done, that of changing the script included."""
    change_usd: float
    """The part of ``usd`` that changes the script."""
    change_s: float
    """The part of ``time_s`` that changes the script."""
    total_usd: float
    """Both together, at what an hour is worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanComparison:
    """Two plans for one job."""

    a: Option
    b: Option
    worth: Worth
    """Of an hour, and of changing the script."""
    whole: tuple[Whole, Whole]
    """What each comes to, that of A first."""
    p_a_cheaper: float | None
    """Probability that A costs less, ties half; None where a rent is unknown."""
    p_a_sooner: float
    """Probability that A is done first, ties half."""
    times_as_fast: Interval | None
    """As A, that B trains, waits apart: narrower than both times, since they share a part of what is wrong in
    predictions. None where a draw never ends."""
    even_usd_per_h: float | None
    """The worth of an hour at which both are as good; None where none makes them so."""
    verdict: Finding
    """What decides."""

    def _repr_html_(self) -> str | None:
        """What decides and every line, in a notebook."""
        return html_of(self)


class _Side(NamedTuple):
    name: str
    """A or B."""
    option: Option
    whole: Whole
    p_sooner: float


def compared(a: Judged, b: Judged, job: Job) -> PlanComparison:
    """Two judged plans, by the rule of the recommendation: the least of expected cost and expected time."""
    options, worth = (a.option, b.option), worth_for(job)
    by_means = all(math.isfinite(option.expected.time_s) for option in options)
    whole = _whole(a.option, worth, by_means=by_means), _whole(b.option, worth, by_means=by_means)
    p_sooner = chance_below(a.time_s, b.time_s)
    sides = _Side("A", a.option, whole[0], p_sooner), _Side("B", b.option, whole[1], 1 - p_sooner)
    is_cost_known = all(option.plan.usd_per_h is not None for option in options)
    return PlanComparison(
        a=a.option,
        b=b.option,
        worth=worth,
        whole=whole,
        p_a_cheaper=chance_below(a.cost_usd, b.cost_usd) if is_cost_known else None,
        p_a_sooner=p_sooner,
        times_as_fast=ratio_of(a.train_s, b.train_s),
        even_usd_per_h=_even_usd_per_h(*whole) if is_cost_known else None,
        verdict=_verdict(*sides, worth),
    )


def _whole(option: Option, worth: Worth, *, by_means: bool) -> Whole:
    extra_usd, extra_s = change_usd(option, worth), change_s(option)
    usd = whole_usd(option, worth) if by_means else option.counted_usd + extra_usd
    time_s = whole_s(option) if by_means else option.time_s.p50 + extra_s
    return Whole(
        usd=usd,
        time_s=time_s,
        change_usd=extra_usd,
        change_s=extra_s,
        total_usd=usd + worth.hour_usd * time_s / HOUR_S,
    )


def _even_usd_per_h(a: Whole, b: Whole) -> float | None:
    if not (_pays_for_time(a, b) or _pays_for_time(b, a)):
        return None
    return (b.usd - a.usd) / (a.time_s - b.time_s) * HOUR_S


def _pays_for_time(one: Whole, other: Whole) -> bool:
    """Whether the one is faster and dearer."""
    return _is_less(one.time_s, other.time_s) and _is_less(other.usd, one.usd)


def _is_less(one: float, other: float) -> bool:
    return one < other and not math.isclose(one, other, rel_tol=TOLERANCE)


def _verdict(a: _Side, b: _Side, worth: Worth) -> Finding:
    feasible = [side for side in (a, b) if side.option.feasible]
    if not feasible:
        return about_answers.ComparedNeither(why_a=why_removed(a.option), why_b=why_removed(b.option))
    if len(feasible) == 1:
        other = b if feasible == [a] else a
        return about_answers.ComparedOne(
            take=feasible[0].name, other=other.name, why=why_removed(other.option)
        )
    faster, slower = (b, a) if _is_less(b.whole.time_s, a.whole.time_s) else (a, b)
    unpriced = [side.name for side in (a, b) if side.option.plan.usd_per_h is None]
    if unpriced:
        return about_answers.Compared(by="time-alone", unpriced=unpriced, **_faster(faster, slower))
    even = _even_usd_per_h(faster.whole, slower.whole) if _pays_for_time(faster.whole, slower.whole) else None
    if even is not None:  # time for money
        return about_answers.Compared(
            by="trade",
            times_in_cost=_ratio(faster.whole.usd, slower.whole.usd),
            cost_differs_by_usd=faster.whole.usd - slower.whole.usd,
            change_usd=faster.whole.change_usd - slower.whole.change_usd,
            even_usd_per_h=even,
            value_usd_per_h=worth.hour_usd,
            take=faster.name if worth.hour_usd > even else slower.name,
            **_faster(faster, slower),
        )
    better, worse = (b, a) if _is_less(b.whole.total_usd, a.whole.total_usd) else (a, b)
    if not _is_less(better.whole.total_usd, worse.whole.total_usd):
        return about_answers.ComparedSame(usd=a.whole.usd, time_s=a.whole.time_s)
    return about_answers.Compared(
        by="both",
        times_in_cost=_ratio(worse.whole.usd, better.whole.usd),
        cost_differs_by_usd=worse.whole.usd - better.whole.usd,
        change_usd=worse.whole.change_usd - better.whole.change_usd,
        **_faster(better, worse),
    )


def _faster(faster: _Side, slower: _Side) -> dict[str, Any]:
    return {
        "faster": faster.name,
        "slower": slower.name,
        "times_faster": _ratio(slower.whole.time_s, faster.whole.time_s),
        "less_s": slower.whole.time_s - faster.whole.time_s,
        "p_sooner": faster.p_sooner,
    }


def _ratio(larger: float, smaller: float) -> float | None:
    """None beside nothing."""
    return larger / smaller if smaller > 0 and math.isfinite(larger) else None


# Recommendations for two versions of a script -> what the change does to the job's cost, time and memory.


class Measure(StrEnum):
    """By what two versions are compared."""

    COST = "cost"
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineChange:
    """One number of one GPU before and after."""

    gpu: str
    num_gpus: int
    base: Option | None
    """The cheapest of these machines that does the job before the change, else any; None without one."""
    head: Option | None
    """The same after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptChange:
    """What the change does."""

    base: Option | None
    """What is recommended before; None where nothing could do the job."""
    same: Option | None
    """That very plan after the change, whether it still does the job or not."""
    head: Option | None
    """What is recommended after it; None where nothing can do the job."""
    machines: tuple[MachineChange, ...]
    """Those that do the job before or after, the recommended first, then what the change rules in or out,
    each by cost; one number of each GPU."""

    @property
    def now(self) -> Option | None:
        """What stands beside the base: the same plan as long as it does the job, else the new one to take."""
        return self.same if self.same is not None and self.same.feasible else self.head

    @property
    def measure(self) -> Measure:
        """Cost, or time where a machine has no known price or costs nothing."""
        are_priced = all(
            option is not None and option.plan.usd_per_h is not None and option.cost_usd.p50 > 0
            for option in (self.base, self.now)
        )
        return Measure.COST if are_priced else Measure.TIME

    @property
    def relative(self) -> float | None:
        """Median after over median before, less 1: 0.23 is 23 % more; None without both."""
        pair = [option for option in (self.now, self.base) if option is not None]
        by_cost = self.measure is Measure.COST
        amounts = [option.cost_usd.p50 if by_cost else option.time_s.p50 for option in pair]
        return amounts[0] / amounts[1] - 1 if len(amounts) == 2 else None


def script_change(base: Recommendation, head: Recommendation) -> ScriptChange:
    """Compare the answers for a script before and after a change; both rank the same plans."""
    before, after = base.chosen, head.chosen
    return ScriptChange(
        base=before,
        same=None if before is None else head.option(before.plan.id),
        head=after,
        machines=tuple(_machines(base, head)),
    )


def change_findings(change: ScriptChange) -> Iterator[Finding]:
    """The change in short: its price, what no longer fits, and whether another machine is better now."""
    base, same, head = change.base, change.same, change.head
    if head is None:
        yield about_answers.ChangeEndsAll(machine=None if base is None else machine(base))
    elif base is None:
        yield about_answers.ChangeMoves(was_possible=False, machine=machine(head), **_figures("head", head))
    else:
        yield _between(change, base, head)
    yield from _fits(change)
    if same is not None and same.feasible and head is not None and head.plan.id != same.plan.id:
        yield about_answers.ChangeMoves(was_possible=True, machine=machine(head), **_figures("head", head))


def _between(change: ScriptChange, base: Option, head: Option) -> Finding:
    same, facts = change.same, {"machine": machine(base), **_figures("base", base)}
    facts |= {"measure": change.measure, "relative": change.relative}
    if same is not None and same.feasible:
        return about_answers.ChangeCosts(**facts, **_figures("head", same))
    why = None if same is None else why_removed(same)
    return about_answers.ChangeRulesOut(why=why, instead=machine(head), **facts, **_figures("head", head))


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


def _machines(base: Recommendation, head: Recommendation) -> list[MachineChange]:
    """Those chosen, then one number of each GPU: first those ruled in or out, each group by cost."""
    befores, afters = _cheapest(base.options), _cheapest(head.options)
    first = {_key(answer.chosen) for answer in (base, head) if answer.chosen is not None}
    keyed: list[tuple[tuple[bool, bool, float], MachineChange]] = []
    for key in {**befores, **afters}:
        change = MachineChange(gpu=key[0], num_gpus=key[1], base=befores.get(key), head=afters.get(key))
        pair = [option for option in (change.base, change.head) if option is not None]
        costs_usd = [option.counted_usd for option in pair if option.feasible]
        if costs_usd:
            turns = len({option.feasible for option in pair}) > 1
            keyed.append(((key not in first, not turns, min(costs_usd)), change))
    ordered = [change for _, change in sorted(keyed, key=itemgetter(0))]
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
