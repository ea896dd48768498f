"""What several machines that must all be there differ from one: in waits, preemptions and starts.

No open trace watches several equal machines in one zone, so this is a prior, and a wide one. The logarithm of
a start at once, the rate of preemptions and the time away grow with the number of machines N as ``N^a``: a is
0 where all machines share one fate and 1 where each has its own. What is known points between:

- Eight GPUs in one machine against one GPU in the same zone (catalogs/start_odds.csv, spot_odds.csv): starts
  0.18, times away 0.30, and rates 0.
- Preemptions that took 7 to 11 of 16 machines at once: rates 0.14 to 0.30.

So a is 1/4 at the median, and 1/2 at p90. A node more never helps: a is at least 0.
"""

from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EXPONENT_P50, EXPONENT_P90 = 0.25, 0.5
_SIGMA = (EXPONENT_P90 - EXPONENT_P50) / NormalDist().inv_cdf(0.9)
# Standard deviation of the logarithm of one boot: judged, since boots are not logged.
_SIGMA_OF_BOOT = 0.3


def times_of_one(num_nodes: int) -> float:
    """The median of ``N^a``: by how much more of them go away, and for how much longer.

    >>> times_of_one(1), times_of_one(16)
    (1.0, 2.0)
    """
    return float(num_nodes**EXPONENT_P50)


def drawn_over_median(num_nodes: Array, z: Array) -> Array:
    """``N^a`` over its median [plans, n], for standard normal draws [n] of a that are cut to 0 .. 1."""
    exponents = np.clip(EXPONENT_P50 + _SIGMA * z, 0.0, 1.0) - EXPONENT_P50
    return np.asarray(num_nodes[:, None] ** exponents, dtype=np.float64)


def all_at_once(p_at_once: float, num_nodes: int) -> float:
    """Odds that so many machines are there at once, of those of one.

    >>> round(all_at_once(0.8, 16), 2)
    0.64
    """
    return float(p_at_once ** times_of_one(num_nodes))


@cache
def slowest_boot(num_nodes: int) -> float:
    """The median of the slowest of N boots over that of one: the last one decides, and all are billed.

    >>> slowest_boot(1), round(slowest_boot(8), 2)
    (1.0, 1.52)
    """
    median_of_slowest = NormalDist().inv_cdf(0.5 ** (1 / num_nodes))
    return float(np.exp(_SIGMA_OF_BOOT * median_of_slowest))
