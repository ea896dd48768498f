"""How prices move and what spot costs of on-demand (``price_drift.csv``, ``spot_ratios.csv``), as learned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from advisor.core.gpus import catalog_path
from advisor.core.values import Interval, QuoteKind
from advisor.pricing.catalog.csv_files import parse_date, positive, read_rows

Array = NDArray[np.float64]

DRIFT_FILE, RATIO_FILE = "price_drift.csv", "spot_ratios.csv"
DRIFT_COLUMNS = ("provider", "market", "kind", "age_days", "weight", "p10", "p90", "n", "source", "as_of")
RATIO_COLUMNS = ("provider", "gpu", "p10", "p50", "p90", "n", "source", "as_of")
ANY = "*"
_RUN_STEPS = 8
FLOOR_RATIO = 0.1001
"""AWS lets no spot price fall below a tenth of on-demand: a quote there says that no one is bidding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How far quotes of a market are off by age, what is between two ages interpolated.

    Attributes:
        age_days: ages in ascending order, from 0.
        weight: at each age, how much the quote still says beside its family: 1 at first, never rising.
        down: logarithm of what the cheapest quotes came to over what was expected, at p10; never rising.
        up: the same at p90; never falling.
    """

    age_days: tuple[float, ...] = (0.0,)
    weight: tuple[float, ...] = (1.0,)
    down: tuple[float, ...] = (0.0,)
    up: tuple[float, ...] = (0.0,)

    def up_over(self, age_days: Array, run_days: float) -> Array:
        """``up`` of quotes of these ages in the mean over a run, during which they grow older."""
        shares = [step / _RUN_STEPS for step in range(_RUN_STEPS + 1)]
        # One by one: numpy's sum of a column depends on how many columns there are.
        ups = [np.interp(age_days + run_days * share, self.age_days, self.up) for share in shares]
        return np.asarray(sum(ups[1:], ups[0]) / len(ups))


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceModel:
    """All that is known of prices beside the quote itself.

    Attributes:
        ratios: spot over on-demand by provider and GPU; `ANY` for the others of the provider, and of all.
        drift: by provider and market; `ANY` for other providers.
        most_weight: of what was not plainly quoted, by kind.
    """

    ratios: Mapping[tuple[str, str], Interval] = field(default_factory=dict)
    drift: Mapping[tuple[str, str], Drift] = field(default_factory=dict)
    most_weight: Mapping[QuoteKind, float] = field(default_factory=dict)

    def ratio_of(self, provider: str, gpu: str) -> Interval | None:
        """Of the GPU at this provider, else of the provider, else of any; None where nothing is known."""
        keys = ((provider, gpu), (provider, ANY), (ANY, ANY))
        return next((self.ratios[key] for key in keys if key in self.ratios), None)

    def drift_of(self, provider: str, market: str) -> Drift:
        """Of the market at this provider, else at any; none where nothing is known."""
        keys = ((provider, market), (ANY, market))
        return next((self.drift[key] for key in keys if key in self.drift), Drift())

    def most_weights(self, kind: QuoteKind) -> tuple[float, float]:
        """The most that a quote may say beside its family: at the floor, and above it."""
        plain = self.most_weight.get(kind, 1.0)
        is_plain_quote = kind in (QuoteKind.AGREED, QuoteKind.LIVE)
        return plain if is_plain_quote else min(plain, self.most_weight.get(QuoteKind.FLOOR, 1.0)), plain


@cache
def load_price_model() -> PriceModel:
    """The shipped model.

    Raises:
        CatalogError: a file is missing or a row is broken; it names file and line.
    """
    return read_price_model(catalog_path(DRIFT_FILE), catalog_path(RATIO_FILE))


def read_price_model(drift: Path, ratios: Path) -> PriceModel:
    """The model of two files.

    Raises:
        CatalogError: as `load_price_model`.
    """
    quoted, most_weight = _read_drift(drift)
    return PriceModel(ratios=_read_ratios(ratios), drift=quoted, most_weight=most_weight)


def _read_ratios(path: Path) -> dict[tuple[str, str], Interval]:
    ratios: dict[tuple[str, str], Interval] = {}

    def read_row(row: list[str]) -> None:
        provider, gpu, p10, p50, p90, n, source, as_of = row
        _check_origin(n, source, as_of)
        if (provider, gpu) in ratios:
            raise ValueError(f"{provider} {gpu} is listed twice")
        low, mid, high = (
            positive(name, float(text))
            for name, text in zip(("p10", "p50", "p90"), (p10, p50, p90), strict=True)
        )
        if not low <= mid <= high <= 1:
            raise ValueError("p10, p50 and p90 must ascend to 1 at most")
        ratios[provider, gpu] = Interval(p10=low, p50=mid, p90=high)

    read_rows(path, RATIO_COLUMNS, read_row)
    return ratios


def _read_drift(path: Path) -> tuple[dict[tuple[str, str], Drift], dict[QuoteKind, float]]:
    drift: dict[tuple[str, str], Drift] = {}
    most_weight: dict[QuoteKind, float] = {}

    def read_row(row: list[str]) -> None:
        provider, market, kind, age_days, weight, p10, p90, n, source, as_of = row
        _check_origin(n, source, as_of)
        if not 0 <= float(weight) <= 1:
            raise ValueError(f"weight is {weight}: it must be from 0 to 1")
        if kind != QuoteKind.DATED:
            most_weight[QuoteKind(kind)] = float(weight)
            return
        low, high = (math.log(positive(name, float(text))) for name, text in (("p10", p10), ("p90", p90)))
        key = provider, market
        drift[key] = _longer(drift.get(key, Drift()), float(age_days), float(weight), low, high)

    read_rows(path, DRIFT_COLUMNS, read_row)
    return drift, most_weight


def _longer(drift: Drift, age_days: float, weight: float, down: float, up: float) -> Drift:
    """With one more age.

    Raises:
        ValueError: an older quote would be the better one.
    """
    if age_days <= drift.age_days[-1]:
        raise ValueError("ages must ascend")
    if weight > drift.weight[-1] or down > drift.down[-1] or up < drift.up[-1]:
        raise ValueError("an older quote must not say more than a newer one")
    return Drift(
        age_days=(*drift.age_days, age_days),
        weight=(*drift.weight, weight),
        down=(*drift.down, down),
        up=(*drift.up, up),
    )


def _check_origin(n: str, source: str, as_of: str) -> None:
    if int(n) < 1 or not source:
        raise ValueError("n is below 1, or source is empty")
    parse_date(as_of)
