"""Runs, recommendations, charges and prices of a made-up team, each with a default for everything."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from advisor.core.values import CostKind, Market, Plan, Price, PricePoint, Quantiles, QuoteKind
from advisor.review.budgets import Period
from advisor.review.savings import TodaysMarket
from advisor.spend.charges import Bill, Charge
from advisor.store.ledger import Alternative, LedgerEntry, OfferedOption, Run
from tests.builders import exactly, make_offer, make_plan

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
WEEK = Period(since=MONDAY, until=MONDAY + timedelta(days=7))


def at(days: float = 0) -> datetime:
    """So many days after the Monday on which everything begins."""
    return MONDAY + timedelta(days=days)


def make_run(days: float = 0, usd: float | None = 10.0, **changes: Any) -> Run:
    """A run of two hours on an A10G of AWS."""
    facts: dict[str, Any] = {
        "project": "resnet",
        "script": "train.py",
        "provider": "aws",
        "gpu": "A10G",
        "num_gpus": 1,
        "market": Market.ON_DEMAND,
        "instance_type": "g5.xlarge",
        "region": "us-east-1",
        "started_at": at(days),
        "duration_s": 7200.0,
        "cost_usd": usd,
        "cost_kind": None if usd is None else CostKind.BILLED,
    }
    return Run(**(facts | changes))


def make_entry(entry_id: str = "entry", **changes: Any) -> LedgerEntry:
    """A recommendation of two hours for 10 dollars at the median, 3 hours and 15 dollars at p90."""
    facts: dict[str, Any] = {
        "id": entry_id,
        "at": at(-1),
        "project": "resnet",
        "script": "train.py",
        "plan_id": "aws/g5.xlarge/us-east-1/on-demand",
        "provider": "aws",
        "gpu": "A10G",
        "num_gpus": 1,
        "market": Market.ON_DEMAND,
        "time_s": Quantiles(p50=7200.0, p90=10_800.0),
        "cost_usd": Quantiles(p50=10.0, p90=15.0),
    }
    return LedgerEntry(**(facts | changes))


def make_charge(days: float = 0, usd: str = "1.00", **changes: Any) -> Charge:
    """An hour of a g5.xlarge."""
    facts: dict[str, Any] = {
        "start": at(days),
        "end": at(days) + timedelta(hours=1),
        "provider": "aws",
        "service": "Amazon Elastic Compute Cloud",
        "instance_type": "g5.xlarge",
        "project": "resnet",
        "billed_cost": Decimal(usd),
        "currency": "USD",
    }
    return Charge(**(facts | changes))


def make_bill(*charges: Charge, name: str = "aws.csv", **changes: Any) -> Bill:
    """A bill without faults."""
    return Bill(name=name, charges=charges, **changes)


def make_point(days: float, usd_per_h: float, **changes: Any) -> PricePoint:
    """A spot price of a g5.xlarge."""
    facts: dict[str, Any] = {
        "provider": "aws",
        "instance_type": "g5.xlarge",
        "region": "us-east-1",
        "zone": None,
        "market": Market.SPOT,
        "usd_per_h": usd_per_h,
        "observed_at": at(days),
        "source": "aws",
    }
    return PricePoint(**(facts | changes))


def make_alternative(gpu: str = "L4", hours: float = 2.0, num_gpus: int = 1) -> Alternative:
    """The job on another GPU, half as long again at p90."""
    seconds = hours * 3600
    return Alternative(
        gpu=gpu, num_gpus=num_gpus, iteration_p50_s=1.0, train_p50_s=seconds, train_p90_s=1.5 * seconds
    )


def make_offered(plan_id: str, hours: float, usd: float, **changes: Any) -> OfferedOption:
    """An option of the frontier, half as much again at p90."""
    facts: dict[str, Any] = {
        "provider": "aws",
        "gpu": "L4",
        "num_gpus": 8,
        "num_nodes": 1,
        "market": "spot",
        "usd_per_h": 4.0,
        "time_p50_s": hours * 3600,
        "time_p90_s": hours * 5400,
        "cost_p50_usd": usd,
        "cost_p90_usd": usd * 1.5,
        "on_frontier": True,
    }
    return OfferedOption(plan_id=plan_id, **(facts | changes))


def make_rent(
    gpu: str = "L4", usd_per_h: float = 1.0, *, kind: QuoteKind = QuoteKind.LIVE, **changes: Any
) -> Plan:
    """A machine for rent at a price that is certain, without start-up and wait."""
    market = changes.pop("market", Market.ON_DEMAND)
    offer = make_offer(gpu, usd_per_h, market=market, region=changes.pop("region", "us-west4"))
    price = Price(usd_per_h=exactly(usd_per_h), kind=kind, age_days=0.0)
    return make_plan(gpu, usd_per_h, offer=offer, price=price, **changes)


def make_market(*plans: Plan, is_allowed: bool = True) -> TodaysMarket:
    """Machines that nothing disturbs."""
    return TodaysMarket(
        plans=plans, is_allowed=lambda _: is_allowed, lasting=lambda _, train_s: (train_s, train_s)
    )
