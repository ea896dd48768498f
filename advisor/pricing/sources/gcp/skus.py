"""SKUs of Compute Engine -> which component they price, on what terms, for how much.

Google names no component in a field of its own: it is read from the description, which must match as a
whole, so that what we do not know (sole tenancy, custom and extended machines, premium images) counts for
nothing. Evidence for the texts: ``shared/prices/samples`` and ``gcp_gpu_skus.csv``; for N1, A3 Mega
("A3Plus"), G4, B200 and disks gpuhunt, which reads the same list. A3 Ultra and Edge hosts are by analogy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from advisor.core.units import HOURS_PER_MONTH
from advisor.core.values import Market

NANOS = 10**9


class Kind(StrEnum):
    """The last word of a component's name."""

    CORE = "core"
    RAM = "RAM"
    GPU = "GPU"
    SLICE = "slice"
    SSD = "SSD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What a price of a component is per.

    Attributes:
        base_units: of Google's base unit (seconds, byte seconds) in one usage unit; None if months differ.
    """

    usage_unit: str
    hours: int = 1
    base_units: float | None


_PER_H = Unit(usage_unit="h", base_units=3600)
UNITS = {
    Kind.CORE: _PER_H,
    Kind.RAM: Unit(usage_unit="GiBy.h", base_units=2**30 * 3600),
    Kind.GPU: _PER_H,
    Kind.SLICE: _PER_H,
    Kind.SSD: Unit(usage_unit="GiBy.mo", hours=HOURS_PER_MONTH, base_units=None),
}

# Text, usage type (None for any: DWS and Calendar pass as OnDemand), market. The first that matches counts.
_MARKETS = tuple(
    (re.compile(pattern), usage_type, market)
    for pattern, usage_type, market in (
        (r"commitment v\d+: (.+) for 1 years?", "Commit1Yr", Market.COMMIT_1Y),
        (r"commitment v\d+: (.+) for 3 years?", "Commit3Yr", Market.COMMIT_3Y),
        (r"reserved (.+) in calendar mode", None, Market.CALENDAR),
        (r"dws calendar mode (.+)", None, Market.CALENDAR),
        (r"reserved (.+)", None, Market.RESERVED),
        (r"(.+) attached to dws defined duration vms( .+)?", None, Market.FLEX_START),
        (r"dws defined duration (.+)", None, Market.FLEX_START),
        (r"(.+) attached to spot preemptible vms( .+)?", "Preemptible", Market.SPOT),
        (r"(?:spot )?preemptible (.+)", "Preemptible", Market.SPOT),
        (r"(.+)", "OnDemand", Market.ON_DEMAND),
    )
)
# A location is any text, so these must not hide in it.
_FOREIGN = re.compile(
    r"\b(?:dws|calendar|reserved|commitment|preemptible|sole|tenancy|custom|extended|premium|suspended)\b"
)
_LOCATION = re.compile(r" (?:running )?in [^()]+$")

_HOSTS = {
    "A2": "a2", "A3": "a3", "A3-Mega": "a3 ?(?:plus|mega)", "A3-Ultra": "a3 ?ultra", "A3-Edge": "a3 ?edge",
    "G2": "g2", "G4": "g4",
}  # fmt: skip
_GPUS = {
    "A100-40GB": "a100(?: 40gb)?", "A100-80GB": "a100 80gb", "H100-80GB": "h100 80gb",
    # Where no "Mega" is listed (us-central1), "Plus" is, at its price: gcp_gpu_skus.csv.
    "H100-80GB-Mega": "h100 (?:80gb (?:mega|plus)|mega 80gb)",
    "H200-141GB": "h200 141gb", "L4": "l4", "RTX-PRO-6000": "rtx (?:pro )?6000 96gb",
    "T4": "t4", "P4": "p4", "P100": "p100", "V100": "v100",
}  # fmt: skip
COMPONENTS = {
    name: re.compile(pattern)
    for name, pattern in (
        # Commitments say "A2 Cpu", and of N1 just "Cpu".
        *((f"{host} core", rf"{text} (?:instance )?(?:core|cpu)") for host, text in _HOSTS.items()),
        *((f"{host} RAM", rf"{text} (?:instance )?ram") for host, text in _HOSTS.items()),
        ("N1 core", r"n1 (?:predefined )?(?:instance )?core|cpu"),
        ("N1 RAM", r"n1 (?:predefined )?(?:instance )?ram|ram"),
        *((f"{gpu} GPU", rf"(?:nvidia )?(?:tesla )?{text}(?: gpu)?") for gpu, text in _GPUS.items()),
        ("B200 slice", r"a4 nvidia b200 \(1 gpu slice\)"),
        ("local SSD", r"ssd backed local storage|local ssd"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A price from some usage on: ``units + nanos / 1e9`` of a currency."""

    currency: str
    units: int
    nanos: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """What a SKU costs from a moment on.

    Attributes:
        effective_at: None if the list does not say.
        base_units: base units in one usage unit, 0 if the list does not say.
        tiers: in the order of usage.
    """

    effective_at: datetime | None
    usage_unit: str
    base_units: float
    tiers: tuple[Tier, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sku:
    """One line of the price list, as Google words it."""

    sku_id: str
    description: str
    usage_type: str
    regions: tuple[str, ...]
    pricing: tuple[Pricing, ...]


def kind_of(component: str) -> Kind:
    """What a component is, such as ``core`` for ``"A2 core"``.

    Raises:
        ValueError: no SKU is recognised as this component.
    """
    if component not in COMPONENTS:
        raise ValueError(f"{component!r} is no component: there are {', '.join(COMPONENTS)}")
    return Kind(component.rpartition(" ")[2])


def recognise(description: str, usage_type: str) -> tuple[str, Market] | None:
    """Component and market of a SKU; None if it is none of ours.

    >>> recognise("Nvidia Tesla A100 GPU running in Americas", "OnDemand")
    ('A100-40GB GPU', <Market.ON_DEMAND: 'on-demand'>)
    """
    text = " ".join(description.lower().split())
    matches = ((pattern.fullmatch(text), usage, market) for pattern, usage, market in _MARKETS)
    match, required, market = next((one for one in matches if one[0]), (None, None, Market.ON_DEMAND))
    if match is None or usage_type != (required or usage_type):
        return None
    what_and_where = "".join(match.groups(""))
    if _FOREIGN.search(what_and_where):
        return None
    what = _LOCATION.sub("", what_and_where)
    component = next((name for name, pattern in COMPONENTS.items() if pattern.fullmatch(what)), None)
    return None if component is None else (component, market)


def usd_per_h(sku: Sku, component: str, now: datetime) -> Decimal:
    """The newest price in effect of one core, GiB or GPU for an hour; the first tier that is not free.

    Raises:
        ValueError: there is none we can use; says why, in words.
    """
    unit = UNITS[kind_of(component)]
    pricing = _newest(sku.pricing, now)
    if pricing.usage_unit != unit.usage_unit:
        raise ValueError(f"is priced per {pricing.usage_unit!r}, not per {unit.usage_unit}")
    if unit.base_units and pricing.base_units not in (0, unit.base_units):
        raise ValueError(f"counts {pricing.base_units:g} base units per {unit.usage_unit}")
    tier = next((tier for tier in pricing.tiers if (tier.units, tier.nanos) != (0, 0)), None)
    if tier is None:
        raise ValueError("has the price 0, which means unknown")
    if tier.currency != "USD":
        raise ValueError(f"is priced in {tier.currency or 'no currency'}, not in USD")
    price = Decimal(tier.units) + Decimal(tier.nanos) / NANOS
    if price <= 0:
        raise ValueError(f"has the price {price}")
    return price / unit.hours


def _newest(pricing: tuple[Pricing, ...], now: datetime) -> Pricing:
    """The one in effect; an undated one counts as older than all others."""
    dated = [p for p in pricing if p.effective_at is not None and p.effective_at <= now]
    undated = [p for p in pricing if p.effective_at is None]
    if not (dated or undated):
        raise ValueError("has no price yet")
    latest = max((p.effective_at for p in dated if p.effective_at), default=None)
    newest = {p for p in (dated or undated) if p.effective_at == latest}
    if len(newest) > 1:
        raise ValueError("has several prices from the same moment on")
    return newest.pop()
