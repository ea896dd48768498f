"""What providers list for machines, and what spot costs of one machine in all its places."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from advisor.core.values import Offer
from advisor.pricing.instance_types import load_instances

OnDemand = Mapping[tuple[str, str, str], float]
"""USD per hour by provider, instance type and region."""
SpotQuotes = Mapping[tuple[str, str], Mapping[tuple[str, str], float]]
"""USD per hour by provider and instance type, then by region and zone (empty where there is none)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """Prices of a catalog, not of the offers: what else is offered must not move a price."""

    on_demand: OnDemand = field(default_factory=dict)
    spot: SpotQuotes = field(default_factory=dict)

    def with_estimates(self, offers: Iterable[Offer]) -> Mapping[tuple[str, str, str], float]:
        """List prices by provider, instance type and region, also where none is listed.

        Some machines are rented as spot alone. Their list price is the median of the machine's other regions,
        else that of its GPUs in other machines of the region, else of its GPUs anywhere. What has neither is
        left out.
        """
        missing = {
            (offer.provider, offer.instance_type, region): offer
            for offer in offers
            if _key(offer) not in self.on_demand
            for region in (offer.region, *self._regions(offer))
            if (offer.provider, offer.instance_type, region) not in self.on_demand
        }
        if not missing:
            return self.on_demand
        by_machine, by_gpu = self._per_machine_and_gpu()
        estimated = {key: _estimate(offer, key[2], by_machine, by_gpu) for key, offer in missing.items()}
        return {**{key: usd for key, usd in estimated.items() if usd is not None}, **self.on_demand}

    def _regions(self, offer: Offer) -> Iterator[str]:
        """Wherever spot of an offer's machine was quoted, offered or not."""
        return (region for region, _ in self.spot.get((offer.provider, offer.instance_type), {}))

    def _per_machine_and_gpu(
        self,
    ) -> tuple[dict[tuple[str, str], list[float]], dict[tuple[str, str, str], list[float]]]:
        """List prices by machine; for one GPU by provider, GPU and region (empty for any)."""
        by_machine: dict[tuple[str, str], list[float]] = {}
        by_gpu: dict[tuple[str, str, str], list[float]] = {}
        known = load_instances()
        for (provider, name, region), usd in self.on_demand.items():
            by_machine.setdefault((provider, name), []).append(usd)
            if (machine := known.get((provider, name))) is not None:
                for where in (region, ""):
                    each = by_gpu.setdefault((provider, machine.gpu, where), [])
                    each.append(usd / machine.num_gpus)
        return by_machine, by_gpu

    def places_of(self, offer: Offer, listed: OnDemand) -> Sequence[tuple[float, tuple[str, str]]]:
        """Spot prices of the machine in all its places, ascending: logarithms over their list prices.

        Over nothing where the offer's own list price is unknown.
        """
        provider, name = key = offer.provider, offer.instance_type
        places = self.spot.get(key, {}).items()
        if _key(offer) not in listed:
            return sorted((math.log(usd), place) for place, usd in places)
        return sorted(
            (math.log(usd / base), place)
            for place, usd in places
            if (base := listed.get((provider, name, place[0]))) is not None
        )


def _key(offer: Offer) -> tuple[str, str, str]:
    return offer.provider, offer.instance_type, offer.region


def _estimate(
    offer: Offer,
    region: str,
    by_machine: Mapping[tuple[str, str], Sequence[float]],
    by_gpu: Mapping[tuple[str, str, str], Sequence[float]],
) -> float | None:
    if (same := by_machine.get((offer.provider, offer.instance_type))) is not None:
        return median(same)
    for where in (region, ""):
        if (each := by_gpu.get((offer.provider, offer.gpu, where))) is not None:
            return median(each) * offer.num_gpus
    return None
