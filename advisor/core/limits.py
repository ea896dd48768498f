"""The largest numbers that can be meant: flags, settings, policies and Python refuse what lies beyond.

Each leaves room for a hundred times what anybody is known to do. Beyond it a number is a slip, and would only
come back as a price of 10^25 dollars.
"""

from __future__ import annotations

from advisor.core.units import DAY_S

MAX_EPOCHS = 1e6
MAX_ITERATIONS = 10**10
"""Ten billion steps of 0.1 ms take eleven days; no published run comes near."""
MAX_USD = 1e12
MAX_USD_PER_H = 1e9
MAX_USD_PER_KWH = 1e3
MIN_W, MAX_W = 10.0, 1e4
"""What a GPU may draw: none does with less, or needs more."""
MAX_PLANNED_S = 100 * 365.25 * DAY_S
"""Deadlines, waits and start-ups: a century. How long prices are remembered has no such limit."""
MAX_TIMEOUT_S = 7 * DAY_S
"""Of profiling. The system's own timers end at 24 days."""
MAX_GB = 1e8
"""A tenth of an exabyte."""
MIN_GBIT_PER_S = 1e-6
MAX_GBIT_PER_S = 1e6
MAX_SAMPLES = 10**9
"""A sampler that shuffles them holds 8 bytes of each."""
MAX_WORLD = 2**16
MAX_ROWS = 10**5
MAX_MACHINES = 10**5
MAX_NODES = 4096
MAX_MEMORY_GIB = 1e6
"""Of one GPU: a petabyte."""
