"""The largest numbers that can be meant: flags, settings, policies and Python refuse what lies beyond.

Each leaves room for a hundred times what anybody is known to do. Beyond it a number is a slip, and would only
come back as a price of 10^25 dollars.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from numbers import Integral, Real
from reprlib import repr as shortened

from advisor.core.errors import InputError
from advisor.core.units import DAY_S


def check_count(name: str, value: object, *, most: float = math.inf) -> None:
    """Refuse what is no whole number from 1 to ``most``; numpy's integers are some, ``True`` is none.

    Raises InputError: says what is allowed.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= most:
        allowed = "of at least 1" + ("" if most == math.inf else f" and at most {most:,}")
        raise InputError(f"{name} must be a whole number {allowed}, got {shortened(value)}.")


def check_number(
    name: str, value: object, *, above: float = -math.inf, least: float = -math.inf, most: float = math.inf
) -> None:
    """Refuse what is no finite number, or too small or too large a one.

    Raises InputError: says what is allowed.
    """
    if not (
        isinstance(value, Real)
        and math.isfinite(value)
        and above < float(value) <= most
        and least <= float(value)
    ):
        allowed = f" above {above:g}" if above > -math.inf else f" of at least {least:g}"
        up_to = "" if most == math.inf else f" and at most {most:,.15g}"
        raise InputError(f"{name} must be a finite number{allowed}{up_to}, got {shortened(value)}.")


# Defaults of settings that engines need as well, where it is not given.

VALUE_OF_TIME_USD_PER_H = 2.0
"""What an hour until a job is done is worth: about a tenth of the attention of one engineer
(docs/decisions/0018-value-an-hour-at-two-dollars.md)."""

CHANGE_USD = 25.0
"""What it costs to change a script by more than a line: half an hour of an engineer, of whom an
hour at work costs some 50 USD."""


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
MAX_PER_H = 3600.0
"""Preemptions of one machine: none starts within a second."""
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
MAX_SIZE = 10**8
"""Of a job in a log, in GPUs, nodes or cores: ten times the largest machine's cores."""
MAX_MEMORY_GIB = 1e6
"""Of one GPU: a petabyte."""
EARLIEST = datetime(2006, 1, 1, tzinfo=UTC)
"""Of a run: before the first GPU that trains anything. It also keeps times within what databases hold."""

RUN_BOUNDS: Mapping[str, tuple[float, float]] = {
    "num_gpus": (0, MAX_WORLD),
    "num_nodes": (1, MAX_WORLD),
    "duration_s": (0, MAX_PLANNED_S),
    "cost_usd": (0, MAX_USD),
    "usd_per_h": (0, MAX_USD_PER_H),
    "num_steps": (0, 2**53),
    "step_p10_s": (0, MAX_PLANNED_S),
    "step_p50_s": (0, MAX_PLANNED_S),
    "step_p90_s": (0, MAX_PLANNED_S),
    "exit_code": (-(2**31), 2**31 - 1),
    "gpu_busy_share": (0, 1),
    "gpu_mean_w": (0, 100_000),
    "gpu_mean_clock_hz": (0, 1e11),
    "gpu_peak_bytes": (0, 2**53),
}
"""Every number of a run by its column, least and most: in receipts, on the command line, in the database."""


def why_out_of_bounds(name: str, value: object, least: float, most: float) -> str | None:
    """What is wrong with a number, in words that name it; None if nothing is.

    >>> why_out_of_bounds("cost_usd", 1e308, 0, 1e12)
    'cost_usd is 1e+308: it must be between 0 and 1000000000000'
    >>> why_out_of_bounds("cost_usd", True, 0, 1e12)
    'cost_usd is True: it must be between 0 and 1000000000000'
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        # -0.0 is not below 0, and would be printed as -$0.00.
        is_minus_0 = value == 0 and math.copysign(1, value) < 0
        if least <= value <= most and not is_minus_0:
            return None
    digits = value.bit_length() if isinstance(value, int) else 0
    shown = f"a number of {digits:,} bits" if digits > 64 else repr(value)[:40]
    return f"{name} is {shown}: it must be between {least:.15g} and {most:.15g}"
