"""What jobs that come again could rent today, by the offers that advisor knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from advisor.core.errors import NoOfferError

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.core.values import Offer, Plan
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
    from advisor.service.offers import query_offers

    wanted: dict[str, set[int]] = {}
    for job in jobs:
        for one in () if job.entry is None else job.entry.alternatives:
            wanted.setdefault(one.gpu, set()).add(one.num_gpus)
    try:
        offers = query_offers(config, Asked(wanted=wanted), listener, only_open=True).offers if wanted else ()
    except NoOfferError:  # the report names the jobs that cannot be priced
        offers = ()
    if not offers:
        return TodaysMarket(plans=(), is_allowed=lambda _: True)
    return TodaysMarket(plans=_plans(offers, config), is_allowed=_judge(policy, config))


def _plans(offers: Sequence[Offer], config: Config) -> Sequence[Plan]:
    from advisor.service.offers import prices_of
    from advisor.service.plans import cloud_terms, rates_of, spot_terms
    from recommender.plans.candidates import plans_of_offers

    return plans_of_offers(
        offers,
        terms=cloud_terms(config.settings.cloud, None, spot_terms(config).history),
        catalog=rates_of(config.settings),
        quotas=config.settings.quotas,
        prices=prices_of(offers),
    )


def _judge(policy: Policy | None, config: Config) -> Callable[[Plan], bool]:
    if policy is None:
        return lambda _: True
    from advisor.service.plans import spot_terms
    from recommender.policy import judge_plan

    spot = spot_terms(config)
    return lambda plan: not judge_plan(plan, policy, spot)
