"""What a run cost: what somebody says, else the price of its machine x its time, else nobody knows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from advisor.core.errors import AdvisorError
from advisor.core.values import CostKind
from advisor.service.listening import Silence

if TYPE_CHECKING:
    from advisor.config.layers import Config, PricingSettings
    from advisor.config.settings import Settings
    from advisor.core.values import Offer
    from advisor.service.machine_here import MachineHere
    from advisor.service.ran_on import Place

_S_PER_H = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCost:
    """The cost of a run before tax; all None where nobody knows it.

    Attributes:
        usd_per_h: of the GPUs that it had, behind an estimate.
        price_retrieved_at: when that price was true; None also where a person says it.
    """

    usd: float | None = None
    kind: CostKind | None = None
    usd_per_h: float | None = None
    price_retrieved_at: datetime | None = None


def cost_of(
    where: MachineHere, duration_s: float, config: Config, *, usd: float | None, usd_per_h: float | None
) -> RunCost:
    """What a run cost.

    Args:
        where: it ran; its machine's price counts by the share of the GPUs that it had.
        duration_s: how long.
        config: prices at hand and one's own machines; nothing is asked over the network.
        usd: what a person says of the whole run.
        usd_per_h: what a person says of the machine.
    """
    if usd is not None:
        return RunCost(usd=usd, kind=CostKind.STATED)
    price, retrieved_at = (usd_per_h * where.share, None) if usd_per_h is not None else _price(where, config)
    if price is None:
        return RunCost()
    return RunCost(
        usd=price * duration_s / _S_PER_H,
        kind=CostKind.ESTIMATED,
        usd_per_h=price,
        price_retrieved_at=retrieved_at,
    )


def _price(where: MachineHere, config: Config) -> tuple[float | None, datetime | None]:
    """USD per hour of the GPUs that a command has, and when that was true."""
    offer = _offer(where, config.pricing)
    if offer is not None:
        return offer.usd_per_h * where.share * _num_nodes(where.place, offer), offer.retrieved_at
    return _own_price(where.place, config.settings), None


def _num_nodes(place: Place, offer: Offer) -> float:
    """Machines behind the GPUs of a run that went to more than one has."""
    return max(1.0, (place.num_gpus or 1) / offer.num_gpus)


def _offer(where: MachineHere, pricing: PricingSettings) -> Offer | None:
    """The offer behind a rented machine: that of its zone, else the cheapest of its region."""
    from advisor.service.plan_facts import cheapest_at

    place = where.place
    if not (place.provider and place.instance_type and place.market):
        return None
    for at in filter(None, (where.zone, place.region)):
        try:
            offer = cheapest_at(pricing, place.provider, place.instance_type, at, place.market, Silence())
        except AdvisorError:
            # Prices that cannot be read leave the cost unknown, as the receipt says.
            return None
        if offer is not None:
            return offer
    return None


def _own_price(place: Place, settings: Settings) -> float | None:
    """Of a machine of one's own."""
    from advisor.service.recommend.own_machines import own_machines

    try:
        machines = own_machines(settings, Silence())
    except AdvisorError:
        return None
    for machine in machines:
        if (machine.name, machine.gpu) == (place.provider, place.gpu) and machine.usd_per_gpu_h is not None:
            return machine.usd_per_gpu_h * (place.num_gpus or 1)
    return None
