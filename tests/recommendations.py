"""Recommendations made up for tests: as many options as wanted, of every kind, nothing predicted."""

from dataclasses import replace
from typing import Any

from advisor.core.findings import Finding, quoted
from advisor.core.findings.about_options import (
    RemovedByBudget,
    RemovedByDeadline,
    RemovedByMemory,
    RemovedBySharding,
)
from advisor.core.values import Interval, Market, Means, Option, Quantiles, QuoteKind, Recommendation, Tier
from recommender.ranking.choice import shortlist
from tests.builders import HOUR_S, make_estimate, make_job, make_offer, make_plan, make_price
from tests.findings import sample
from tests.recommending import make_script

PLACES = ("us-east-1", "northamerica-northeast1-a", "apse3-az3", "europe-central2")
MACHINES = ("g6e.48xlarge", "a2-ultragpu-8g", "p6-b200.48xlarge", "Standard_ND96isr_H100_v5")
GPUS = ("L40S", "RTX-PRO-6000-Server", "H100-SXM-80GB", "V100-PCIE-32GB")
REMOVALS = (
    (RemovedByMemory,),
    (RemovedByBudget,),
    (RemovedByBudget, RemovedByDeadline),
    (RemovedBySharding,),
)


def make_option(gpu: str, hours: float, usd: float, **changes: Any) -> Option:
    """An option that takes ``hours`` and ``usd``, twice that at p90; its id is the GPU's name."""
    time_s = Quantiles(p50=hours * HOUR_S, p90=2 * hours * HOUR_S)
    facts: dict[str, Any] = {
        "plan": make_plan(gpu),
        "estimate": make_estimate(gpu),
        "iterations": 1000,
        "wait_s": None,
        "train_s": time_s,
        "time_s": time_s,
        "cost_usd": Quantiles(p50=usd, p90=2 * usd),
        "counted_usd": usd,
        "expected": Means(wait_s=0.0, time_s=hours * HOUR_S, cost_usd=usd, counted_usd=usd),
        "cost_breakdown_usd": {"training": usd},
        "p_within_budget": None,
        "p_within_deadline": None,
        "risk": quoted("low"),
        "script_changes": (),
        "reasons": (),
    }
    return Option(**(facts | changes))


def removed(option: Option, *codes: type[Finding], **changes: Any) -> Option:
    """The option, removed for these reasons."""
    return replace(option, reasons=(*map(sample, codes), *option.reasons), **changes)


def many_options(num_options: int, *, num_frontier: int = 7) -> Recommendation:
    """A frontier, two thirds dominated and the rest removed; names as long as clouds have them."""
    options = [_numbered(i, num_frontier) for i in range(num_options)]
    frontier = tuple(option.plan.id for option in options[:num_frontier])
    job, best_id = make_job(budget_usd=50_000.0), frontier[len(frontier) // 2]
    return Recommendation(
        script=make_script(),
        job=job,
        options=tuple(reversed(options)),
        frontier=frontier,
        recommended=best_id,
        rule=quoted("the best value"),
        warnings=(),
        shortlist=shortlist(options, (), job, best_id=best_id, as_it_is=None),
    )


def _numbered(i: int, num_frontier: int) -> Option:
    is_first, is_removed = i < num_frontier, i >= num_frontier and i % 3 == 0
    hours = 1.5**i if is_first else 20.0 + i / 7
    usd = 90_000.0 / 1.9**i if is_first else 95_000.0 + 37.3 * i
    gpu, market = GPUS[i % 4], (Market.SPOT, Market.ON_DEMAND)[i % 2]
    offer = make_offer(gpu, 10.0, instance_type=MACHINES[i % 4], zone=PLACES[i % 4], market=market)
    plan = make_plan(gpu, 10.0, num_gpus=8, id=f"aws/{offer.instance_type}/{i}", offer=offer)
    if i % 1000 == 49:
        plan = make_plan(gpu, None, num_gpus=8, tier=Tier.CLUSTER, id=f"cluster/{i}", provider=f"lab-{i}")
    return make_option(
        gpu,
        hours,
        usd,
        plan=plan,
        estimate=make_estimate(gpu, Interval(p10=0.1, p50=0.2, p90=0.3), num_gpus=8),
        reasons=tuple(map(sample, REMOVALS[i // 3 % 4])) if is_removed else (),
    )


def guessed(option: Option, p90_usd: float) -> Option:
    """The same at a price that nobody quoted, which counts at its p90."""
    usd_per_h = option.plan.usd_per_h or 1.0
    price = make_price(usd_per_h, usd_per_h * p90_usd / option.cost_usd.p50, QuoteKind.DERIVED)
    return replace(
        option,
        plan=replace(option.plan, price=price),
        cost_usd=Quantiles(p50=option.cost_usd.p50, p90=p90_usd),
        counted_usd=p90_usd,
        expected=replace(option.expected, counted_usd=p90_usd),
    )
