"""Few constants from many measurements: Levenberg and Marquardt's method on Huber's loss.

Sources: Marquardt, "An algorithm for least-squares estimation of nonlinear parameters", 1963; Huber, "Robust
estimation of a location parameter", 1964 (by weights, anew in each step).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Errors beyond this count by their size, not its square: 10 % where residuals are logarithms.
HUBER = 0.1
_STEP = 1e-4
_LEAST_GAIN = 1e-4


def least_squares(residuals: Callable[[Floats], Floats], start: Floats, *, most_steps: int = 40) -> Floats:
    """Where the residuals are smallest, near ``start``.

    Args:
        residuals: of parameters [P], [N]; a prior is a residual too.
        start: the first parameters.
        most_steps: it ends before where nothing is gained.
    """
    parameters, damping = start.astype(float), 1e-2
    current = residuals(parameters)
    for _ in range(most_steps):
        weights = np.minimum(1.0, HUBER / np.maximum(np.abs(current), 1e-12))
        slopes = _slopes(residuals, parameters, current)
        normal, gradient = slopes.T @ (weights[:, None] * slopes), slopes.T @ (weights * current)
        ridge = damping * np.diag(np.diag(normal) + 1e-9)
        trial = parameters - np.linalg.solve(normal + ridge, gradient)
        after = residuals(trial)
        gain = _loss(current) - _loss(after)
        damping *= 0.3 if gain > 0 else 5.0
        if gain > 0:
            is_done = gain < _LEAST_GAIN * _loss(after)
            parameters, current = trial, after
            if is_done:
                break
    return parameters


def _slopes(residuals: Callable[[Floats], Floats], parameters: Floats, current: Floats) -> Floats:
    steps = _STEP * np.eye(len(parameters))
    return np.stack([(residuals(parameters + step) - current) / _STEP for step in steps], axis=1)


def _loss(residuals: Floats) -> float:
    size = np.abs(residuals)
    return float(np.where(size < HUBER, size**2, 2 * HUBER * size - HUBER**2).sum())
