"""Machine types and rates -> offers and gaps of one region and market."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal

from advisor.core.values import Market, Offer
from advisor.pricing.sources.gcp.component_rates import NO_SKU, Place, Rate
from advisor.pricing.sources.gcp.machines import PROVIDER, Machine
from advisor.pricing.sources.gcp.skus import Kind, kind_of
from advisor.pricing.sources.protocol import Part

SOURCE = "Cloud Billing Catalog"
# Every machine has these; of the others only what Google prices by the GPU is worth a gap.
_COMMON = (Market.ON_DEMAND, Market.SPOT)
_DIGITS = 9


def part_of(
    region: str,
    market: Market,
    machines: Iterable[Machine],
    rates: Mapping[Place, Rate],
    *,
    retrieved_at: datetime,
) -> Part:
    """Offers of the machines that Google starts in a region and market, and what could not be priced."""
    offers, gaps, unpriced = [], [], []
    for machine in machines:
        if region not in machine.regions or market not in machine.markets:
            continue
        of = {component: rates.get((component, region, market), NO_SKU) for component in machine.needs}
        usd_per_h, missing = machine_usd_per_h(machine, of)
        if usd_per_h is not None:
            offers.append(_offer(machine, region, market, usd_per_h, retrieved_at))
        elif market in _COMMON or _is_priced_by_gpu(of):
            gaps.append(f"{machine.instance.instance_type} {region} {market}: {missing}")
            unpriced.append(machine.instance.instance_type)
    return Part(
        scope=f"{region} {market}",
        offers=tuple(offers),
        gaps=tuple(gaps),
        place=(PROVIDER, region, market),
        unpriced=tuple(unpriced),
    )


def machine_usd_per_h(machine: Machine, rates: Mapping[str, Rate]) -> tuple[Decimal | None, str]:
    """Sum over components of amount x rate; without a sum, which components have no price and why."""
    known = {name: rate.usd_per_h for name, rate in rates.items() if rate.usd_per_h is not None}
    missing = [f"{name} ({rate.fault})" for name, rate in rates.items() if rate.usd_per_h is None]
    if missing:
        return None, f"no price of {', '.join(missing)}"
    return sum((machine.needs[name] * usd for name, usd in known.items()), Decimal(0)), ""


def _is_priced_by_gpu(rates: Mapping[str, Rate]) -> bool:
    return any(rate != NO_SKU for name, rate in rates.items() if kind_of(name) in (Kind.GPU, Kind.SLICE))


def _offer(
    machine: Machine, region: str, market: Market, usd_per_h: Decimal, retrieved_at: datetime
) -> Offer:
    instance = machine.instance
    return Offer(
        provider=PROVIDER,
        instance_type=instance.instance_type,
        region=region,
        zone=None,
        gpu=instance.gpu,
        num_gpus=instance.num_gpus,
        market=market,
        list_usd_per_h=float(round(usd_per_h, _DIGITS)),
        includes=instance.includes,
        minimum_billed_s=instance.minimum_billed_s,
        num_vcpus=instance.vcpus,
        architecture=instance.architecture,
        retrieved_at=retrieved_at,
        source=SOURCE,
    )
