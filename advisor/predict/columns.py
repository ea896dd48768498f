"""Operators as columns: what does not depend on the GPU, worked out once for all that are asked about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import Op, Phase
from advisor.operators.family import Family, base_name
from advisor.operators.registry import family_of, is_known
from advisor.predict.distinct import Same


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpColumns:
    """N operators, a column for each fact.

    Attributes:
        words: distinct words of the families.
        word_index: which of them each has, [N].
        names: distinct base names.
        name_index: which of them each has, [N].
        counts: calls of each, [N].
        measured_s: of one call on the GPU of the profile, [N]; NaN where it was not measured.
        custom: base names that no PyTorch release defines, sorted.
    """

    ops: tuple[Op, ...]
    families: tuple[Family, ...]
    words: tuple[str, ...]
    word_index: NDArray[np.int64]
    names: tuple[str, ...]
    name_index: NDArray[np.int64]
    counts: NDArray[np.float64]
    measured_s: NDArray[np.float64]
    is_backward: NDArray[np.bool_]
    is_optimizer: NDArray[np.bool_]
    custom: tuple[str, ...]


def columns_of(ops: Sequence[Op]) -> OpColumns:
    """The operators' columns, kept for the next GPU they are asked for."""
    return _columns_of(Same(ops))


@lru_cache(maxsize=4)
def _columns_of(same: Same) -> OpColumns:
    ops = tuple(same.ops)
    families = tuple(map(family_of, ops))
    words, word_index = _distinct([family.word for family in families])
    names, name_index = _distinct([base_name(op.name) for op in ops])
    return OpColumns(
        ops=ops,
        families=families,
        words=words,
        word_index=word_index,
        names=names,
        name_index=name_index,
        counts=np.array([float(op.count) for op in ops]),
        measured_s=np.array([math.nan if op.measured_s is None else op.measured_s for op in ops]),
        is_backward=np.array([op.phase is Phase.BACKWARD for op in ops]),
        is_optimizer=np.array([op.phase is Phase.OPTIMIZER for op in ops]),
        custom=tuple(sorted({base_name(op.name) for op in ops if not is_known(op)})),
    )


def _distinct(values: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The distinct ones in the order in which they come, and which of them each is."""
    place = {value: i for i, value in enumerate(dict.fromkeys(values))}
    return tuple(place), np.array([place[value] for value in values])
