"""How much a derived spot price says: on-demand less the Spot Advisor's savings, beside what zones quoted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np

from advisor.core.values import Market, Offer, Price, QuoteKind
from advisor.pricing.expected_prices import AT_FLOOR, USUAL_FLOOR, PriceModel, likely_prices
from advisor.pricing.sources.protocol import DERIVED
from research.chosen.fit import family_ratios
from research.chosen.judge import Choice
from research.chosen.panels import Panel, read_rows

SAVINGS_OF = "2025-06-28"
# The snapshot of the zones is of some day between August 25 and November 18.
ZONES_OF = date(2025, 10, 6)
WEIGHTS = tuple(step / 20 for step in range(21))


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A derived price and what a zone of its region quoted; the row of the zone in the panel."""

    offer: Offer
    on_demand_usd_per_h: float
    paid_usd_per_h: float
    row: int

    @property
    def is_at_floor(self) -> bool:
        """Whether it was derived from savings of 90 %."""
        return self.offer.list_usd_per_h <= AT_FLOOR * USUAL_FLOOR * self.on_demand_usd_per_h


def derived_prices(shared: Path, zones: Panel) -> list[Derived]:
    """One for each zone whose region has a figure of savings."""
    savings = {
        (row["instance_type"], row["region"]): int(row["savings_pct"]) / 100
        for row in read_rows(shared / "prices" / "aws_spot_advisor.csv")
        if row["os"] == "Linux" and row["as_of"] == SAVINGS_OF
    }
    pairs = []
    for row, ((instance_type, _), region) in enumerate(zip(zones.machines, zones.regions, strict=True)):
        if (instance_type, region) not in savings:
            continue
        on_demand = float(zones.on_demand[row, 0])  # NaN where none is listed
        offer = Offer(
            provider="aws", instance_type=instance_type, region=region, zone=None, gpu=zones.gpus[row],
            num_gpus=1, market=Market.SPOT,
            list_usd_per_h=on_demand * (1 - savings[instance_type, region]),
            retrieved_at=datetime.combine(date.fromisoformat(SAVINGS_OF), datetime.min.time(), UTC),
            source=f"{DERIVED} savings",
        )  # fmt: skip
        paid = min(float(zones.spot[row, 0]), on_demand)
        pairs.append(Derived(offer=offer, on_demand_usd_per_h=on_demand, paid_usd_per_h=paid, row=row))
    return pairs


def most_weights(derived: Sequence[Derived], model: PriceModel) -> Mapping[QuoteKind, float]:
    """By kind: the weight of least mean absolute error, in logarithms, of those that need it.

    At the floor a quote says nothing: nobody bids.
    """
    plain = [one for one in derived if not one.is_at_floor]
    weight = min(WEIGHTS, key=lambda w: _error(plain, replace(model, most_weight={QuoteKind.DERIVED: w})))
    return {QuoteKind.DERIVED: weight, QuoteKind.FLOOR: 0.0}


def _error(derived: Sequence[Derived], model: PriceModel) -> float:
    expected = [price.usd_per_h.p50 for price in _prices(derived, model)]
    return float(np.abs(np.log([one.paid_usd_per_h for one in derived]) - np.log(expected)).mean())


def _prices(derived: Sequence[Derived], model: PriceModel) -> tuple[Price, ...]:
    now = datetime.combine(ZONES_OF, datetime.min.time(), UTC)
    on_demand = {("aws", d.offer.instance_type, d.offer.region): d.on_demand_usd_per_h for d in derived}
    return likely_prices([one.offer for one in derived], now=now, on_demand=on_demand, model=model)


def cross_validated(
    derived: Sequence[Derived], zones: Panel, model: PriceModel, *, by: str
) -> Iterator[tuple[Derived, Choice]]:
    """Every derived price, by families and weights that were learned without its region, or its GPU.

    Args:
        derived: of the zones.
        zones: what was quoted.
        model: with the drift of another record.
        by: what is left out at a time: ``"region"`` or ``"gpu"``.
    """
    keys = zones.regions if by == "region" else zones.gpus
    for left_out in sorted({keys[one.row] for one in derived}):
        known = zones.rows([key != left_out for key in keys])
        trained = replace(
            model, ratios={("aws", gpu): ratio for gpu, (ratio, _) in family_ratios(known).items()}
        )
        fit = [one for one in derived if keys[one.row] != left_out]
        judged = [one for one in derived if keys[one.row] == left_out]
        trained = replace(trained, most_weight=most_weights(fit, trained))
        for one, price in zip(judged, _prices(judged, trained), strict=True):
            yield one, Choice(
                day=ZONES_OF.toordinal(), by=by, paid_usd_per_h=one.paid_usd_per_h,
                expected_usd_per_h=price.usd_per_h.p50, most_usd_per_h=price.usd_per_h.p90,
                quoted_usd_per_h=one.offer.list_usd_per_h, quoted_paid_usd_per_h=one.paid_usd_per_h,
            )  # fmt: skip
