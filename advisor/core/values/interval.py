"""Quantiles of what is uncertain."""

from __future__ import annotations

from dataclasses import dataclass

Z90 = 1.2815515655446004
"""The normal distribution's 90 % quantile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Quantiles of an uncertain quantity; the unit is in the name of the field that holds it."""

    p10: float
    p50: float
    p90: float

    def __post_init__(self) -> None:
        assert self.p10 <= self.p50 <= self.p90, self


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Median and 90 % quantile."""

    p50: float
    p90: float
