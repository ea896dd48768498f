"""What kernels that were measured on a GPU tell of others: the nearer in size, the more.

Gaussian process regression (Rasmussen and Williams 2006, algorithm 2.1) with a constant and a Matern 3/2
covariance over the logarithms of the sizes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.operators.family import Likeness

Floats = NDArray[np.float64]


class Told(NamedTuple):
    """Of N calls what is expected, [N], and the variance that is left, [N], without a call's own."""

    mean: Floats
    variance: Floats


def told(likeness: Likeness, measured: Floats, values: Floats, asked: Floats) -> Told:
    """What K measured values tell of N others, before any of which zero was expected.

    Args:
        likeness: how calls are alike by their D sizes.
        measured: the logarithms of the sizes that were measured, [K, D].
        values: what was found there, [K].
        asked: the logarithms of the sizes in question, [N, D].
    """
    own = likeness.of_call * np.eye(len(measured))
    factor = np.linalg.cholesky(covariance(likeness, measured, measured) + own)
    across = np.linalg.solve(factor, covariance(likeness, measured, asked))
    mean = across.T @ np.linalg.solve(factor, values)
    return Told(mean, np.maximum(likeness.variance - (across**2).sum(axis=0), 0.0))


def covariance(likeness: Likeness, left: Floats, right: Floats) -> Floats:
    """Of K and N calls, [K, N], by the logarithms of their sizes, [K, D] and [N, D]."""
    lengths = np.array(likeness.lengths)
    apart = (left[:, None, :] - right[None, :, :]) / lengths
    distance = math.sqrt(3) * np.sqrt((apart**2).sum(axis=-1))
    return np.asarray(likeness.of_all + likeness.of_size * (1 + distance) * np.exp(-distance))
