"""The same GPUs on a machine with more vCPUs, where vCPUs are what an option waits for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from advisor.core.findings import Code, Finding, finding
from advisor.core.input_time import input_s
from advisor.core.values import Bound, Layout, Market, Option
from recommender.outcome.evaluate import Judged
from recommender.outcome.reading import vcpus_per_gpu

# Less of the time is not worth another machine.
_LEAST_SAVING = 0.05
_Kind = tuple[str, Layout, Market]


def with_more_vcpus(judged: Sequence[Judged]) -> list[Judged]:
    """Options that wait for input name the cheapest machine of their GPUs that feeds them faster."""
    if all(item.option.estimate.binds is not Bound.INPUT for item in judged):
        return list(judged)
    rented: dict[_Kind, list[Option]] = {}
    for item in judged:
        if item.option.plan.offer is not None and item.option.feasible:
            rented.setdefault(_kind(item.option), []).append(item.option)
    return [_with_note(item, rented) for item in judged]


def _kind(option: Option) -> _Kind:
    plan = option.plan
    market = Market.ON_DEMAND if plan.offer is None else plan.offer.market
    return plan.gpu, replace(plan.layout, fabric=None), market


def _with_note(item: Judged, rented: dict[_Kind, list[Option]]) -> Judged:
    option = item.option
    if option.estimate.binds is not Bound.INPUT:
        return item
    note = _note(option, rented.get(_kind(option), ()))
    return item if note is None else replace(item, option=replace(option, reasons=(*option.reasons, note)))


def _note(option: Option, alike: Iterable[Option]) -> Finding | None:
    made_s, whole_s = _made_s(option, option), option.estimate.input_s
    if made_s is None or whole_s is None or made_s < whole_s.p50:
        return None  # its disks or its network keep it waiting
    faster = (o for o in alike if _is_faster(o, option, made_s))
    better = min(faster, key=lambda o: (o.cost_usd.p50, o.plan.id), default=None)
    if better is None or better.plan.offer is None:
        return None
    return finding(
        Code.MORE_VCPUS,
        instance_type=better.plan.offer.instance_type,
        vcpus_per_gpu=vcpus_per_gpu(better.plan),
        time_s=better.time_s.p50,
        cost_usd=better.cost_usd.p50,
        instead_of_time_s=option.time_s.p50,
        instead_of_cost_usd=option.cost_usd.p50,
    )


def _made_s(option: Option, there: Option) -> float | None:
    """Seconds in which the samples of one of its iterations are made by another's vCPUs."""
    work = option.estimate.input
    return None if work is None else input_s(work, vcpus_per_gpu(there.plan)).p50


def _is_faster(other: Option, option: Option, made_s: float) -> bool:
    """By vCPUs, of which workers may leave some idle: both the samples and the whole."""
    there_s = _made_s(option, other)
    is_worth_it = other.time_s.p50 <= (1 - _LEAST_SAVING) * option.time_s.p50
    return is_worth_it and there_s is not None and there_s < made_s
