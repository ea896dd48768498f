"""Rows that gain little over one like them are folded into its row, so that a table shows choices.

Folding is of the view. It is worked out after the choice, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import Option
from recommender.outcome.draws import Array
from recommender.ranking.value import Worth, preference

# Less is hidden by the interval of any prediction, and nobody moves for it.
LEAST_SHARE = 0.05
LEAST_SAVED_S = 60.0


def with_folded(options: Sequence[Option], best_id: str, worth: Worth) -> list[Option]:
    """The options in the same order, each folded into the most preferred one like it that gains little less.

    A row speaks for options of its own kind alone: on demand or spot, or one owner's machines.

    Args:
        options: feasible ones.
        best_id: of the one that is recommended, which keeps its row.
        worth: what counts besides the bill.
    """
    kinds: dict[object, list[Option]] = {}
    for option in sorted(options, key=lambda o: (o.plan.id != best_id, preference(o, worth))):
        kinds.setdefault(_kind(option), []).append(option)
    groups = {rows[0].plan.id: rows for kind in kinds.values() for rows in _groups(kind)}
    speaker = {option.plan.id: plan_id for plan_id, rows in groups.items() for option in rows[1:]}
    return [_in_its_row(option, speaker, groups) for option in options]


def _kind(option: Option) -> object:
    plan = option.plan
    return plan.provider if plan.offer is None else plan.offer.market


def _groups(options: Sequence[Option]) -> Iterator[list[Option]]:
    """Those that get a row, each with what it speaks for; the options in order of preference."""
    times_s = np.array([option.time_s.p50 for option in options])
    usd = np.array([option.cost_usd.p50 for option in options])
    left = np.arange(len(options))
    while left.size:
        first, left = left[0], left[1:]
        like = _is_like(times_s[first] - times_s[left], times_s[first], usd[first] - usd[left], usd[first])
        yield [options[first], *(options[i] for i in left[like])]
        left = left[~like]


def _is_like(saved_s: Array, time_s: float, saved_usd: Array, usd: float) -> NDArray[np.bool_]:
    """Whether options save too little against one of this time and cost, and take as long or cost less."""
    least_s, least_usd = max(LEAST_SHARE * time_s, LEAST_SAVED_S), LEAST_SHARE * usd
    gains_little = (saved_s < least_s) & ((saved_usd < least_usd) | (saved_usd <= 0))
    return np.asarray(gains_little & ((np.abs(saved_s) < least_s) | (saved_usd > 0)))


def _in_its_row(option: Option, speaker: Mapping[str, str], groups: Mapping[str, Sequence[Option]]) -> Option:
    into = speaker.get(option.plan.id)
    if into is not None:
        return replace(option, folded_into=into)
    rows = groups[option.plan.id]
    return replace(option, reasons=(*option.reasons, _alike(rows))) if len(rows) > 1 else option


def _alike(rows: Sequence[Option]) -> Finding:
    times_s, usd = [o.time_s.p50 for o in rows], [o.cost_usd.p50 for o in rows]
    others = [gpus for gpus in map(_gpus, rows) if gpus != _gpus(rows[0])]
    return finding(
        Code.ALIKE,
        num_options=len(rows) - 1,
        num_of_other_gpus=len(others),
        other_gpus=list(dict.fromkeys(others)),
        faster_s=times_s[0] - min(times_s),
        slower_s=max(times_s) - times_s[0],
        cheaper_usd=usd[0] - min(usd),
        dearer_usd=max(usd) - usd[0],
    )


def _gpus(option: Option) -> str:
    return option.plan.layout.of(option.plan.gpu)
