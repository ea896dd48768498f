"""What would run if the script divided its model, where nothing holds it as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from advisor.core.findings import Code
from advisor.core.values import Layout, Option, Recommendation, Sharding, Split, Trace
from advisor.predict.exchange.collectives import sharded_over
from advisor.predict.split.rank import why_undivided
from recommender.outcome.estimates import estimates_for
from recommender.outcome.evaluate import evaluate_all
from recommender.ranking.what_if import Ground, changed_id

_POWERS = (1, 2, 4, 8, 16)
# What takes fewer changes of a script comes first; the others are tried where it is not enough.
_SPLITS = (
    tuple(Split(sharding=one) for one in Sharding if one is not Sharding.NONE),
    tuple(Split(tensor=tensor, pipeline=pipeline) for tensor, pipeline in product(_POWERS, _POWERS))[1:],
)


def with_splits(ground: Ground, trace: Trace) -> Recommendation:
    """The answer with options of a divided model beside it, if memory alone stands against every other.

    They are options of a changed script: they count neither for the frontier nor for the choice.

    Args:
        ground: of the answer.
        trace: of the script as it is.
    """
    answer = ground.answer
    too_large = [option for option in answer.options if option.removed_by == (Code.MEMORY,)]
    if answer.recommended is not None or not too_large or sharded_over(trace) is not None:
        return answer
    for splits in _SPLITS:
        options = (option for split in splits for option in _divided(split, too_large, ground, trace))
        found = tuple(option for option in options if option.feasible)
        if found:
            return replace(answer, what_ifs=found)
    return answer


def _divides(split: Split, layout: Layout) -> bool:
    """Whether it makes a difference there; a hybrid within one node is full sharding."""
    most = layout.num_nodes if split.sharding is Sharding.HYBRID else layout.num_gpus
    return most > 1 and split.suits(layout)


def _divided(split: Split, options: Sequence[Option], ground: Ground, trace: Trace) -> Iterator[Option]:
    """The options whose GPUs can share the model so."""
    plans = [
        replace(option.plan, id=changed_id(option, split.name))
        for option in options
        if _divides(split, option.plan.layout)
    ]
    if not plans or why_undivided(trace, split) is not None:
        return
    job = replace(ground.answer.job, split=split)
    estimates = estimates_for(trace, plans, ground.gpus, job, corrections=ground.corrections)
    judged = evaluate_all(plans, estimates, ground.gpus, trace, job, ground.draws, ground.terms_of)
    for one in judged:
        yield replace(one.option, what_if=split.name)
