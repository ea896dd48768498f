"""What jobs that come again could rent today, by the offers that advisor knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from advisor.core.errors import NoOfferError
from advisor.core.units import HOUR_S
from advisor.core.values import Quantiles

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.config.settings import Settings
    from advisor.core.values import Offer, Plan
    from advisor.review.savings import Recurring, TodaysMarket
    from advisor.service.listening import Listener
    from recommender.outcome.spot import SpotTerms
    from recommender.policy import Policy

Z90 = 1.2816
"""Nine of ten draws of a standard normal distribution are below."""


def todays_prices_for(
    jobs: Sequence[Recurring], policy: Policy | None, config: Config, listener: Listener
) -> TodaysMarket:
    """Machines with the GPUs that the jobs' recommendations name, at today's prices; nothing is pulled.

    Raises:
        AdvisorError: prices cannot be read.
    """
    from advisor.review.savings import TodaysMarket
    from advisor.service.offer_filters import OfferFilter
    from advisor.service.prices.offers import query_offers
    from advisor.service.recommend.plan_sources import spot_terms

    wanted: dict[str, set[int]] = {}
    for job in jobs:
        for one in () if job.entry is None else job.entry.alternatives:
            wanted.setdefault(one.gpu, set()).add(one.num_gpus)
    try:
        offers = (
            query_offers(config.pricing, OfferFilter(wanted=wanted), listener, only_open=True).offers
            if wanted
            else ()
        )
    except NoOfferError:  # the report names the jobs that cannot be priced
        offers = ()
    spot = spot_terms(config.settings.spot)
    plans = _plans(offers, config.settings, spot) if offers else ()
    return TodaysMarket(plans=plans, is_allowed=_judge(policy, spot), lasting=partial(_lasting, spot))


def _plans(offers: Sequence[Offer], settings: Settings, spot: SpotTerms) -> Sequence[Plan]:
    from advisor.service.prices.offers import prices_of
    from advisor.service.recommend.plan_sources import cloud_terms, quotas_of, rates_of
    from recommender.plans.candidates import plans_of_offers

    return plans_of_offers(
        offers,
        terms=cloud_terms(settings.cloud, None, spot.history),
        catalog=rates_of(settings.rates),
        quotas=quotas_of(settings.quotas),
        prices=prices_of(offers),
    )


def _judge(policy: Policy | None, spot: SpotTerms) -> Callable[[Plan], bool]:
    if policy is None:
        return lambda _: True
    from recommender.policy import judge_plan

    return lambda plan: not judge_plan(plan, policy, spot)


def _lasting(spot: SpotTerms, plan: Plan, train_s: Quantiles) -> tuple[Quantiles, Quantiles]:
    """Until done, and billed: spot machines go away, at p90 as often as nine of ten of their class."""
    from advisor.service.blas import load_numpy

    load_numpy()
    import numpy as np

    from recommender.outcome.spot import drawn_hours, is_spot, terms_at

    if not is_spot(plan):
        return train_s, train_s
    terms, z = terms_at(plan, spot, None), np.array([0.0, Z90])
    work_h = np.array([train_s.p50, train_s.p90]) / HOUR_S
    rate, away = terms.preemptions_per_h * np.exp(terms.sigma_rate * z), np.full(2, terms.reacquire_h)
    done_h, billed_h = drawn_hours(work_h, terms, rate_per_h=rate, reacquire_h=away, z=z)
    done, billed = ((hours * HOUR_S).tolist() for hours in (done_h, billed_h))
    return Quantiles(p50=done[0], p90=done[1]), Quantiles(p50=billed[0], p90=billed[1])
