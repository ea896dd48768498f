"""A change of the script: its trace as the change would make it, and where it suits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from advisor.core.findings import Finding
from advisor.core.values import GpuSpec, Trace

# A changed script was not profiled. Against profiles of models that fitted nothing, with the change written
# in, times under autocast are off by 7 % at most, others by 2 % but for one in channels_last, by 11 %
# (research/docs/accuracy/what-if.md). What no profile was compared with has a width that is a guess.
SIGMA_AUTOCAST = 0.1
SIGMA_REWRITTEN = 0.03
SIGMA_NOT_COMPARED = 0.25


def _suits_any(_: GpuSpec) -> Finding | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change to the script.

    Attributes:
        name: ends the ids of its options.
        trace: the script's as the change would make it.
        steps: what to change in the script.
        assumption: what its estimates rest on besides.
        why_not_on: why a GPU gains nothing from it; None where it may.
        why_not_fed: why an iteration that does not wait for its samples gains nothing; None where it may.
        new_kernels: words of the families that run by other kernels than before; times of the others are
            wrong as they were.
        sigma: log-normal, of a time that was not profiled.
        is_in_estimate: the estimate of the changed trace is as wide as ``sigma`` makes it already.
        samples: of a step, over those of the script as it is.
    """

    name: str
    trace: Trace
    steps: tuple[Finding, ...]
    assumption: Finding
    why_not_on: Callable[[GpuSpec], Finding | None] = _suits_any
    why_not_fed: Finding | None = None
    new_kernels: frozenset[str] = frozenset()
    sigma: float = SIGMA_REWRITTEN
    is_in_estimate: bool = False
    samples: int = 1
