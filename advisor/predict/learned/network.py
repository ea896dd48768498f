"""An ensemble of small multilayer perceptrons, evaluated by numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """E members of two hidden layers of H units and SiLU activations; inputs of F features.

    Attributes:
        low, high: the range of each feature in training, [F]; inputs are cut to it, since outside of it
            only the roofline knows.
        mean, scale: what features are normalised by, [F].
        weights: [E, F, H], [E, H, H] and [E, H, 3].
        biases: [E, 1, H], [E, 1, H] and [E, 1, 3].
    """

    low: Array
    high: Array
    mean: Array
    scale: Array
    weights: tuple[Array, ...]
    biases: tuple[Array, ...]

    def outputs(self, features: Array) -> Array:
        """What each member says of each row of ``features`` [N, F]: [E, N, 3]."""
        values: Array = (np.clip(features, self.low, self.high) - self.mean) / self.scale
        # One after the other: what all of them need at once does not fit into the cache.
        return np.array([self._member(number, values) for number in range(len(self.weights[0]))])

    def _member(self, number: int, values: Array) -> Array:
        """What one member says: [N, 3]."""
        *hidden, last = zip(self.weights, self.biases, strict=True)
        for weights, biases in hidden:
            values = silu(values @ weights[number] + biases[number])
        weights, biases = last
        return np.asarray(values @ weights[number] + biases[number])


def silu(values: Array) -> Array:
    """X / (1 + exp(-x)), without overflow.

    >>> silu(np.array([-1000.0, 0.0, 1000.0], np.float32)).tolist()
    [-0.0, 0.0, 1000.0]
    """
    # In one array: what several of them cost is memory's time.
    gates = np.multiply(values, 0.5, dtype=values.dtype)
    np.tanh(gates, out=gates)
    gates *= 0.5
    gates += 0.5
    gates *= values
    return gates
