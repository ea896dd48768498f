"""What was recommended -> the ledger, with what a later report needs to price the same job again."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from advisor.core.findings.about_options import RemovedByBudget, RemovedByDeadline
from advisor.core.values import Option, Recommendation
from advisor.service.prices.live import now
from advisor.store.database import open_store

if TYPE_CHECKING:
    from advisor.config.settings import StoreSettings
    from advisor.service.recommend.recommending import RecommendAnswer
    from advisor.store.ledger import Alternative, LedgerEntry, OfferedOption


MAX_ALTERNATIVES = 60
# Other prices would let these through.
_BY_PRICE_AND_TIME = {RemovedByBudget.code, RemovedByDeadline.code}


def keep_recommendation(
    answer: RecommendAnswer, database: StoreSettings, project: str, *, arguments: Sequence[str] | None = None
) -> None:
    """Enter what was recommended into the ledger, under the answer's id.

    Args:
        arguments: of the command line that asked; None where Python did.

    Raises StoreError: a number is not finite, or the database cannot be written.
    """
    from advisor.store.ledger import record_recommendation

    entry = _entry(answer, project, None if arguments is None else _command(arguments))
    with open_store(database.url) as store:
        record_recommendation(store, entry)


def _command(arguments: Sequence[str]) -> str:
    from advisor.core.redaction import redact_words

    return shlex.join(("advisor", *redact_words(arguments, os.environ)))


def _entry(answer: RecommendAnswer, project: str, command: str | None) -> LedgerEntry:
    from advisor.predict.interval import uncorrected_p50_s
    from advisor.store.ledger import LedgerEntry

    ranked = answer.recommendation
    chosen = ranked.chosen
    assert answer.entry_id is not None, "only where it is to be kept"  # noqa: S101
    assert chosen is not None, "only where there is an option to take"  # noqa: S101
    plan, offer = chosen.plan, chosen.plan.offer
    return LedgerEntry(
        id=answer.entry_id,
        at=now(),
        project=project,
        script=answer.recommendation.script.name,
        plan_id=plan.id,
        provider=plan.provider,
        gpu=plan.gpu,
        num_gpus=plan.num_gpus,
        market=None if offer is None else offer.market,
        time_s=chosen.time_s,
        cost_usd=chosen.cost_usd,
        instance_type=None if offer is None else offer.instance_type,
        region=None if offer is None else offer.region,
        command=command,
        budget_usd=ranked.job.budget_usd,
        deadline_s=ranked.job.deadline_s,
        usd_per_h=plan.usd_per_h,
        num_iterations=chosen.iterations,
        iteration_s=chosen.estimate.iteration_s,
        uncorrected_p50_s=uncorrected_p50_s(chosen.estimate),
        alternatives=alternatives_of(ranked.options),
        num_nodes=plan.num_nodes,
        options=tuple(_offered(ranked)),
    )


def _offered(ranked: Recommendation) -> Iterator[OfferedOption]:
    """The frontier, then the cheapest others that run and end, over budget or too late included."""
    from advisor.store.ledger import OfferedOption
    from recommender.ranking.value import num_changes

    best = {*ranked.frontier, ranked.recommended}
    ends = (
        one for one in ranked.options if math.isfinite(one.time_s.p50) and math.isfinite(one.cost_usd.p50)
    )
    possible = [one for one in ends if {*one.removed_by} <= _BY_PRICE_AND_TIME]
    possible.sort(key=lambda option: (option.plan.id not in best, option.counted_usd))
    for option in possible[:MAX_ALTERNATIVES]:
        plan = option.plan
        yield OfferedOption(
            plan_id=plan.id,
            provider=plan.provider,
            gpu=plan.gpu,
            num_gpus=plan.num_gpus,
            num_nodes=plan.num_nodes,
            market=None if plan.offer is None else plan.offer.market.value,
            usd_per_h=plan.usd_per_h,
            time_p50_s=option.time_s.p50,
            time_p90_s=option.time_s.p90,
            cost_p50_usd=option.cost_usd.p50,
            cost_p90_usd=option.cost_usd.p90,
            on_frontier=plan.id in ranked.frontier,
            num_changes=num_changes(option),
        )


def alternatives_of(options: Iterable[Option]) -> tuple[Alternative, ...]:
    """The job's times by GPU and count, the cheapest first: of machines that are not taken away, if any.

    Single machines alone, since a report later looks for the price of one with these GPUs. What budget or
    deadline alone removes is among them: prices change.
    """
    from advisor.store.ledger import Alternative
    from recommender.outcome.spot import is_spot

    possible = [
        option
        for option in options
        if option.plan.num_nodes == 1
        and {*option.removed_by} <= _BY_PRICE_AND_TIME
        and math.isfinite(option.train_s.p90)
    ]
    chosen: dict[tuple[str, int], Option] = {}
    for option in sorted(possible, key=lambda option: (is_spot(option.plan), option.counted_usd)):
        chosen.setdefault((option.plan.gpu, option.plan.num_gpus), option)
    cheapest = sorted(chosen.values(), key=lambda option: option.counted_usd)[:MAX_ALTERNATIVES]
    return tuple(
        Alternative(
            gpu=option.plan.gpu,
            num_gpus=option.plan.num_gpus,
            iteration_p50_s=option.estimate.iteration_s.p50,
            train_p50_s=option.train_s.p50,
            train_p90_s=option.train_s.p90,
        )
        for option in cheapest
    )
