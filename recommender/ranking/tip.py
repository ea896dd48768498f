"""A fact that would change the advice, and what would be recommended then."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.findings import Code, Fact, Finding, finding
from advisor.core.values import Option


@dataclass(frozen=True, slots=True, kw_only=True)
class Tip:
    """What to say of a fact, and which part of its range leaves the choice as it is.

    A price may be anything from what is expected to its p90, say: where the last quarter of that way changes
    the choice, ``spared`` is 0.75. Above 1 nothing within the range changes it.
    """

    spared: float
    fact: Finding


def tip_of(code: Code, instead: Option, **facts: Fact) -> Finding:
    """The fact, and the median time and cost of what would be recommended."""
    usd = None if instead.plan.usd_per_h is None else instead.cost_usd.p50
    return finding(code, instead=machine(instead), time_s=instead.time_s.p50, cost_usd=usd, **facts)


def machine(option: Option) -> Finding:
    """What an option is, for a sentence about it."""
    plan, offer = option.plan, option.plan.offer
    return finding(
        Code.MACHINE,
        plan_id=plan.id,
        gpu=plan.gpu,
        num_gpus=plan.num_gpus,
        num_nodes=plan.num_nodes,
        tier=plan.tier,
        provider=plan.provider,
        instance_type=None if offer is None else offer.instance_type,
        place=None if offer is None else offer.zone or offer.region,
        market=None if offer is None else offer.market,
    )


def why_removed(option: Option) -> Finding | None:
    """The first reason that removes it; None for a feasible one."""
    return next((reason for reason in option.reasons if reason.code in option.removed_by), None)
