"""What jobs that come again could rent today, by the offers that advisor knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from advisor.core.errors import NoOfferError

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.core.values import Plan
    from advisor.review.savings import Recurring
    from advisor.review.team_review import TodaysMarket
    from advisor.service.listening import Listener
    from recommender.policy import Policy


def market_for(
    jobs: Sequence[Recurring], policy: Policy | None, config: Config, listener: Listener
) -> TodaysMarket:
    """Machines with the GPUs that the jobs' recommendations name, at today's prices; nothing is pulled.

    Raises:
        AdvisorError: prices cannot be read.
    """
    from advisor.review.team_review import TodaysMarket
    from advisor.service.limits import Asked
    from advisor.service.offers import prices_of, query_offers
    from advisor.service.plans import cloud_terms, rates_of, spot_terms
    from recommender.plans.candidates import plans_of_offers

    counts = {
        (one.gpu, one.num_gpus)
        for job in jobs
        for one in (() if job.entry is None else job.entry.alternatives)
    }
    spot = spot_terms(config)
    wanted: dict[str, set[int]] = {}
    for gpu, num_gpus in counts:
        wanted.setdefault(gpu, set()).add(num_gpus)
    if not wanted:
        return TodaysMarket(plans=(), is_allowed=lambda _: True)
    try:
        offers = query_offers(config, Asked(wanted=wanted), listener, only_open=True).offers
    except NoOfferError:  # the report names the jobs that cannot be priced
        return TodaysMarket(plans=(), is_allowed=lambda _: True)
    plans = plans_of_offers(
        offers,
        terms=cloud_terms(config.settings.cloud, None, spot.history),
        catalog=rates_of(config.settings),
        quotas=config.settings.quotas,
        prices=prices_of(offers),
    )
    return TodaysMarket(plans=plans, is_allowed=_judge(policy, config))


def _judge(policy: Policy | None, config: Config) -> Callable[[Plan], bool]:
    if policy is None:
        return lambda _: True
    from advisor.service.plans import spot_terms
    from recommender.policy import judge_plan

    spot = spot_terms(config)
    return lambda plan: not judge_plan(plan, policy, spot)
