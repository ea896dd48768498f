"""What was fitted -> ``catalogs/price_drift.csv`` and ``catalogs/spot_ratios.csv``."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from advisor.core.values import Interval, Market, QuoteKind
from advisor.pricing.expected_prices import ANY, DRIFT_FILE, MOST_OF_FAMILY, NEAR, RATIO_FILE, DriftRow, Ratio
from advisor.pricing.instance_types import columns_of, read_as
from research.chosen.derived import ZONES_OF, Derived, most_weights
from research.chosen.fit import NEAR_FLOOR_WEIGHT, drifts_of, family_places, family_ratios, model_of, moves_of
from research.chosen.panels import Panel, day_text

_WEEKLY = "GCP price list week by week (Cyclenerd/google-cloud-pricing-cost-calculator)"
_ZONES = "AWS spot by zone (skypilot-catalog@e385a0d)"
_SAVINGS = "AWS Spot Advisor savings (alexei-led/spotinfo) beside " + _ZONES


def write_catalogs(gcp: Panel, zones: Panel, derived: list[Derived], out: Path) -> None:
    """Both files, read back before anybody relies on them.

    Raises:
        CatalogError: what was written cannot be read.
    """
    _write(out / RATIO_FILE, columns_of(Ratio), _ratio_rows(gcp, zones))
    _write(out / DRIFT_FILE, columns_of(DriftRow), _drift_rows(gcp, zones, derived))
    read_as(out / RATIO_FILE, Ratio)
    read_as(out / DRIFT_FILE, DriftRow)


def _ratio_rows(gcp: Panel, zones: Panel) -> Iterator[tuple[object, ...]]:
    overall = []
    for panel, source, as_of in ((zones, _ZONES, str(ZONES_OF)), (gcp, _WEEKLY, day_text(int(gcp.days[-1])))):
        ratios, moves = family_ratios(panel), moves_of(panel)
        overall.append((*ratios[ANY], as_of))
        for gpu, (ratio, n) in sorted(ratios.items()):
            yield panel.provider, gpu, *_shown(ratio), n, _rounded(moves.get(gpu, 1.0)), source, as_of
    # Of others nothing is known: never cheaper than the dearest that is.
    ratios_of_all = [ratio for ratio, _, _ in overall]
    dearest = Interval(
        p10=min(ratio.p10 for ratio in ratios_of_all),
        p50=max(ratio.p50 for ratio in ratios_of_all),
        p90=max(ratio.p90 for ratio in ratios_of_all),
    )
    n, as_of = sum(n for _, n, _ in overall), max(day for _, _, day in overall)
    yield ANY, ANY, *_shown(dearest), n, 1.0, f"{_ZONES}; {_WEEKLY}", as_of


def _drift_rows(gcp: Panel, zones: Panel, derived: list[Derived]) -> Iterator[tuple[object, ...]]:
    as_of = day_text(int(gcp.days[-1]))
    for market, fitted in drifts_of(gcp).items():
        drift = fitted.drift
        columns = zip(drift.age_days, drift.weight, drift.down, drift.up, fitted.counts, strict=True)
        for age, weight, down, up, n in columns:
            if age:
                low, high = _rounded(math.exp(down)), _rounded(math.exp(up))
                yield ANY, market, QuoteKind.DATED, int(age), _rounded(weight), low, high, n, _WEEKLY, as_of
    quoted = {("aws", gpu): ratio for gpu, (ratio, _) in family_ratios(zones).items()}
    model = replace(model_of(gcp), ratios=quoted)
    for kind, weight in most_weights(derived, model).items():
        is_floor = kind is QuoteKind.FLOOR
        n = sum(one.is_at_floor is is_floor for one in derived)
        yield ANY, Market.SPOT, kind, 0, _rounded(weight), 1, 1, n, _SAVINGS, str(ZONES_OF)
    weight = _rounded(1 / (1 + family_places(gcp)))
    n = int(np.isfinite(gcp.spot).sum())
    yield ANY, Market.SPOT, MOST_OF_FAMILY, 0, weight, 1, 1, n, _WEEKLY, as_of
    yield ANY, Market.SPOT, NEAR, 0, NEAR_FLOOR_WEIGHT, 1, 1, 1, f"judged: {_WEEKLY}", as_of


def _shown(ratio: Interval) -> tuple[float, float, float]:
    return _rounded(ratio.p10), _rounded(ratio.p50), _rounded(ratio.p90)


def _rounded(value: float) -> float:
    return round(value, 4)


def _write(path: Path, columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
