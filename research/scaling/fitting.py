"""The constants of `advisor.predict.exchange.collective_time`, fitted to groups of rows that a hash chose."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from advisor.core.values import Z90
from advisor.predict.exchange.collective_time import ScalingConstants
from research.chosen.fit import of_one_more
from research.scaling.cases import Case, Judged, judged

BOARDS = "Lambda"
_SLOWDOWNS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_SPREADS = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06)
_OF_STEPS = (0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.06)


def fitted(cases: Sequence[Case]) -> ScalingConstants:
    """The constants of the least mean absolute error on the rows that fit, and the spread of what is left."""
    fit = [case for case in cases if case.is_fitted]
    # NVIDIA's loaders decode and pad what eight processes wait for; Lambda's input is none or in memory.
    boards = [case for case in fit if case.source == BOARDS] or fit
    best = _best(boards, of_one_node(ScalingConstants(sigma=0.0)))
    grid = [
        replace(best, slowdown=slowdown, spread=spread) for slowdown, spread in product(_SLOWDOWNS, _SPREADS)
    ]
    best = _best(fit, grid)
    return replace(best, sigma=_left([judged(case, best) for case in fit]))


def of_one_node(scaling: ScalingConstants) -> list[ScalingConstants]:
    """The same with each pair of what is tried for boards of one node."""
    return [
        replace(scaling, slowdown_in_node=slowdown, spread_of_steps=spread)
        for slowdown, spread in product(_SLOWDOWNS, _OF_STEPS)
    ]


def boards_left_out(cases: Sequence[Case]) -> list[Judged]:
    """Rows of one node, each kind of board judged by the slowdown and spread that all others ask for."""
    rows = []
    for group in {case.group for case in cases}:
        others = [case for case in cases if case.group != group and case.is_known]
        scaling = _best(others, of_one_node(ScalingConstants()))
        rows += [judged(case, scaling) for case in cases if case.group == group]
    return rows


def _best(cases: Sequence[Case], grid: Sequence[ScalingConstants]) -> ScalingConstants:
    """The one of the least mean absolute error."""
    return min(grid, key=lambda scaling: mean_error([judged(case, scaling) for case in cases]))


def mean_error(rows: Sequence[Judged]) -> float:
    """Mean absolute error, in shares of perfect scaling."""
    return statistics.fmean(abs(row.error) for row in rows)


def _left(rows: Sequence[Judged]) -> float:
    """The sigma that, beside what collectives have, lets p10 to p90 hold four of five rows of one more group.

    Rows of a group resemble each other, so groups count and not rows.
    """
    groups = {(row.case.source, row.case.group) for row in rows if row.case.is_beside_one_gpu}
    wanted = sorted(
        math.sqrt(max((math.log(row.predicted / row.case.published) / Z90) ** 2 - row.sigma**2, 0.0))
        for row in rows
        if row.case.is_beside_one_gpu
    )
    return math.ceil(1000 * wanted[math.ceil(0.8 * len(wanted)) - 1] * of_one_more(len(groups))) / 1000


def coverage(rows: Sequence[Judged]) -> float | None:
    """The share of rows beside one GPU that lie between p10 and p90; None where there are none."""
    inside = [
        abs(math.log(row.predicted / row.case.published)) <= Z90 * row.sigma
        for row in rows
        if row.case.is_beside_one_gpu
    ]
    return sum(inside) / len(inside) if inside else None
