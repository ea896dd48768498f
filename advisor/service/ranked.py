"""A trace and plans -> the Recommendation, with the draws, interruptions and history that it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.core.values import Job, Plan, Recommendation, Trace
    from advisor.predict.calibration.receipt_corrections import Correction
    from recommender.outcome.spot import SpotTerms
    from recommender.policy import Policy, Spent

SEED = 0


def recommendation_of(
    trace: Trace,
    plans: Sequence[Plan],
    job: Job,
    config: Config,
    *,
    spot: SpotTerms,
    what_if: tuple[str, ...] | None,
    policy: Policy | None,
    spent: Spent | None,
    corrections: Mapping[str, Correction],
) -> Recommendation:
    """Rank the plans; ``what_if`` names changes of the script: the best of one line if None, none if empty.

    Raises:
        InputError: the length of the job is unknown.
        NoOfferError: there is no plan.
        PolicyViolationError: the policy removes every plan.
    """
    import numpy as np

    from advisor.core.gpus import load_gpus
    from advisor.pricing.catalog.interruptions import load_interruptions
    from advisor.service.shifts import with_later_starts
    from recommender.engine import recommend as rank
    from recommender.outcome.estimates import estimates_for
    from recommender.outcome.spot import RATE
    from recommender.ranking.gains import with_gains
    from recommender.ranking.what_if import ground_of, with_what_ifs

    gpus = load_gpus()
    interruptions = load_interruptions() if RATE in spot.assumed else None
    answer = rank(
        trace,
        estimates_for(trace, plans, gpus, job, corrections=corrections),
        gpus,
        plans,
        job,
        rng=np.random.default_rng(SEED),
        spot=spot,
        interruptions=interruptions,
        policy=policy,
        spent=spent,
    )
    answer = with_later_starts(answer, config)
    if what_if == ():
        return answer
    rng = np.random.default_rng(SEED)
    ground = ground_of(answer, gpus, rng=rng, spot=spot, interruptions=interruptions, corrections=corrections)
    if what_if is None:
        return with_what_ifs(ground, trace, best_only=True)
    return with_gains(with_what_ifs(ground, trace, names=what_if), ground, trace, what_if)
