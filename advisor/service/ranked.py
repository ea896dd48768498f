"""A trace and plans -> the Recommendation, with the draws, interruptions and history that it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.core.values import Job, Plan, Recommendation, Trace
    from advisor.predict.calibration.receipt_corrections import Correction
    from advisor.pricing.spot import Interruptions
    from recommender.outcome.evaluate import Judged
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
    from advisor.service.shifts import with_later_starts
    from recommender.engine import ranked
    from recommender.ranking.gains import with_gains
    from recommender.ranking.supposed import with_splits
    from recommender.ranking.what_if import ground_of, with_what_ifs

    judged = judged_of(trace, plans, job, spot=spot, policy=policy, spent=spent, corrections=corrections)
    answer = with_later_starts(ranked(judged, trace, job), config)
    if what_if == ():
        return answer
    rng, interruptions = np.random.default_rng(SEED), _interruptions(spot)
    ground = ground_of(
        answer, load_gpus(), rng=rng, spot=spot, interruptions=interruptions, corrections=corrections
    )
    if what_if is None:
        changed = with_what_ifs(ground, trace, best_only=True)
        # A line that makes it fit is less work than another way to train.
        return changed if changed.what_ifs or not job.split.is_none else with_splits(ground, trace)
    return with_gains(with_what_ifs(ground, trace, names=what_if), ground, trace, what_if)


def judged_of(
    trace: Trace,
    plans: Sequence[Plan],
    job: Job,
    *,
    spot: SpotTerms,
    policy: Policy | None,
    spent: Spent | None,
    corrections: Mapping[str, Correction],
) -> list[Judged]:
    """The plans with what they lead to, feasible or not; errors as of `recommendation_of`."""
    import numpy as np

    from advisor.core.gpus import load_gpus
    from recommender.engine import judge
    from recommender.outcome.estimates import estimates_for

    gpus = load_gpus()
    return judge(
        trace,
        estimates_for(trace, plans, gpus, job, corrections=corrections),
        gpus,
        plans,
        job,
        rng=np.random.default_rng(SEED),
        spot=spot,
        interruptions=_interruptions(spot),
        policy=policy,
        spent=spent,
    )


def _interruptions(spot: SpotTerms) -> Mapping[tuple[str, str], Interruptions] | None:
    """Nothing to go by where somebody said how often machines go away."""
    from advisor.pricing.spot import load_interruptions
    from recommender.outcome.spot import RATE

    return load_interruptions() if RATE in spot.assumed else None
