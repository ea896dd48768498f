"""Tiers and offers -> Plans: what could be rented or used for a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from advisor.types import Offer, Plan, Quantiles, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """GPUs the user has: this machine, or a node type of the organisation's cluster.

    Attributes:
        usd_per_gpu_h: internal cost; None if nobody configured one.
        wait_s: None if nobody configured or measured it.
    """

    tier: Tier
    name: str
    gpu: str
    num_gpus: int
    usd_per_gpu_h: float | None
    wait_s: Quantiles | None


def plans_of_machine(machine: Machine) -> list[Plan]:
    """One plan for each useful count: powers of two, and all GPUs."""
    return [_machine_plan(machine, count) for count in useful_counts(machine.num_gpus)]


def useful_counts(num_gpus: int) -> list[int]:
    """Powers of two up to ``num_gpus``, and ``num_gpus`` itself.

    >>> useful_counts(6)
    [1, 2, 4, 6]
    """
    powers = [2**i for i in range(num_gpus.bit_length()) if 2**i <= num_gpus]
    return sorted({*powers, num_gpus})


def _machine_plan(machine: Machine, num_gpus: int) -> Plan:
    local = machine.tier is Tier.LOCAL
    place = "local" if local else f"cluster/{machine.name}"
    rate = machine.usd_per_gpu_h
    return Plan(
        id=f"{place}/{num_gpus}x{machine.gpu}",
        tier=machine.tier,
        provider="local" if local else machine.name,
        gpu=machine.gpu,
        num_gpus=num_gpus,
        num_nodes=1,
        offer=None,
        usd_per_h=None if rate is None else rate * num_gpus,
        wait_s=Quantiles(p50=0.0, p90=0.0) if local else machine.wait_s,
        startup_s=0.0,
        minimum_billed_s=0.0,
    )


def plans_of_offers(offers: Iterable[Offer], *, startup_s: float) -> list[Plan]:
    """One plan an offer: the whole machine, with every GPU in it. The cloud's wait is unknown."""
    return [
        Plan(
            id="/".join([o.provider, o.instance_type, o.zone or o.region, o.market]),
            tier=Tier.CLOUD,
            provider=o.provider,
            gpu=o.gpu,
            num_gpus=o.num_gpus,
            num_nodes=1,
            offer=o,
            usd_per_h=o.usd_per_h,
            wait_s=None,
            startup_s=startup_s,
            minimum_billed_s=o.minimum_billed_s,
        )
        for o in offers
    ]


def cheapest_places(offers: Sequence[Offer]) -> list[Offer]:
    """The cheapest zone of each (provider, instance type, market), in the order of the offers.

    A job runs equally long everywhere, so the other zones are dominated.
    """
    best: dict[tuple[str, str, str], Offer] = {}
    for offer in offers:
        key = (offer.provider, offer.instance_type, offer.market)
        if key not in best or _place_order(offer) < _place_order(best[key]):
            best[key] = offer
    return list(best.values())


def _place_order(offer: Offer) -> tuple[float, str, str]:
    return offer.usd_per_h, offer.region, offer.zone or ""
