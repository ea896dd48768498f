"""What is known beside the question: how spot machines behave, and what was spent this month."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from advisor.core.values import Option, Plan, Tier
from advisor.pricing.spot_odds import Interruptions
from recommender.outcome.spot import ASSUMED_TERMS, SpotTerms, terms_of_plans


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """US dollars that the ledger holds since the first of the month, and how many runs of unknown cost."""

    all_usd: float
    project_usd: float
    all_num_unknown: int = 0
    project_num_unknown: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What rules look at; None is unknown. Own machines have no instance type, region or market."""

    tier: Tier = Tier.CLOUD
    provider: str | None = None
    instance_type: str | None = None
    region: str | None = None
    market: str | None = None
    gpu: str | None = None
    num_gpus: int | None = None
    """Of the whole plan, all nodes together."""
    num_nodes: int | None = None
    usd_per_h: float | None = None
    """Of the whole plan."""
    usd_per_job: float | None = None
    """What 9 of 10 runs stay under."""
    spent: Spent | None = None
    train_s: float | None = None
    """Median of the job's training, preemptions included."""
    saves_checkpoints: bool | None = None
    """None if unknown."""
    preemptions_per_h: float | None = None
    """Of a spot machine while it runs."""


def facts_of_plan(plan: Plan, spot: SpotTerms) -> Facts:
    """All that is known before anything is computed.

    A machine of one's own without a configured cost counts as free, as everywhere; the option says so.
    """
    offer, at = plan.offer, terms_of_plans(spot, None)(plan)
    return Facts(
        tier=plan.tier,
        provider=plan.provider,
        instance_type=offer.instance_type if offer else None,
        region=offer.region if offer else None,
        market=offer.market if offer else None,
        gpu=plan.gpu,
        num_gpus=plan.num_gpus,
        num_nodes=plan.num_nodes,
        usd_per_h=plan.usd_per_h or 0.0,
        saves_checkpoints=spot.checkpoint_interval_h is not None,
        preemptions_per_h=at.preemptions_per_h,
    )


def facts_of_option(option: Option, spot: SpotTerms, spent: Spent) -> Facts:
    """The same, with what the job costs at p90, how long it trains and what was spent before it."""
    known = facts_of_plan(option.plan, spot)
    return replace(known, usd_per_job=option.cost_usd.p90, train_s=option.train_s.p50, spent=spent)


def start_of_month(now: datetime) -> datetime:
    """When the current month began, in the time zone of ``now``: since then a ledger counts."""
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What is known beside the question."""

    spot: SpotTerms = ASSUMED_TERMS
    """How spot machines behave; by default as their classes did in availability traces."""
    interruptions: Mapping[tuple[str, str], Interruptions] | None = None
    """By instance type and region: floors of an assumed rate of preemptions. None where the rate is
    configured."""
    spent: Spent | None = None
    """This month's spending, for monthly limits; None where no rule asks."""

    def terms_of(self) -> Callable[[Plan], SpotTerms]:
        """How often each plan is preempted."""
        return terms_of_plans(self.spot, self.interruptions)
