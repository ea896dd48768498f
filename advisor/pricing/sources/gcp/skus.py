"""SKUs of the Cloud Billing Catalog -> rates of components -> prices of machines."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from advisor.core.gpus import catalog_path
from advisor.core.units import GIB, HOURS_PER_MONTH
from advisor.core.values import Market
from advisor.pricing.instance_types import (
    INSTANCE_FILE,
    InstanceKey,
    InstanceType,
    load_instances,
    parse_date,
    read_table,
)
from advisor.pricing.sources.protocol import Part

NANOS = 10**9


class SkuKind(StrEnum):
    """The last word of a component's name."""

    CORE = "core"
    RAM = "RAM"
    GPU = "GPU"
    SLICE = "slice"
    SSD = "SSD"


# What a price is per, hours in it, and Google's base units (seconds, byte seconds); None if months differ.
_PER_H = ("h", 1, 3600)
UNITS: Mapping[SkuKind, tuple[str, int, int | None]] = {
    SkuKind.CORE: _PER_H,
    SkuKind.RAM: ("GiBy.h", 1, 2**30 * 3600),
    SkuKind.GPU: _PER_H,
    SkuKind.SLICE: _PER_H,
    SkuKind.SSD: ("GiBy.mo", HOURS_PER_MONTH, None),
}

# A location is any text, so these must not hide in it.
_FOREIGN = re.compile(
    r"\b(?:dws|calendar|reserved|commitment|preemptible|sole|tenancy|custom|extended|premium|suspended)\b"
)
_LOCATION = re.compile(r" (?:running )?in [^()]+$")


def _words() -> Mapping[str, Any]:
    """How Google words its SKUs."""
    return tomllib.loads(catalog_path("gcp_skus.toml").read_text("utf-8"))


@cache
def components() -> Mapping[str, re.Pattern[str]]:
    """What Google sells by itself, and its words for it."""
    words = _words()
    patterns = {f"{host} core": f"{text} (?:instance )?(?:core|cpu)" for host, text in words["hosts"].items()}
    patterns |= {f"{host} RAM": f"{text} (?:instance )?ram" for host, text in words["hosts"].items()}
    patterns |= {f"{g} GPU": f"(?:nvidia )?(?:tesla )?{text}(?: gpu)?" for g, text in words["gpus"].items()}
    return {name: re.compile(pattern) for name, pattern in (patterns | words["others"]).items()}


@cache
def _terms() -> Sequence[tuple[re.Pattern[str], str, Market]]:
    """Description, usage type (empty for any) and market."""
    return [(re.compile(text), usage, Market(market)) for text, usage, market in _words()["markets"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTier:
    """A price from some usage on: ``units + nanos / 1e9`` of a currency."""

    currency: str
    units: int
    nanos: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """What a SKU costs from a moment on."""

    effective_at: datetime | None
    """None if the list does not say."""
    usage_unit: str
    base_units: float
    """Base units in one usage unit, 0 if the list does not say."""
    tiers: tuple[PriceTier, ...]
    """In the order of usage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sku:
    """One line of the price list, as Google words it."""

    sku_id: str
    description: str
    usage_type: str
    regions: tuple[str, ...]
    pricing: tuple[Pricing, ...]


def kind_of(component: str) -> SkuKind:
    """What a component is: ``core`` for ``"A2 core"``. Raises ValueError: no SKU is recognised as it."""
    if component not in components():
        raise ValueError(f"{component!r} is no component: there are {', '.join(components())}")
    return SkuKind(component.rpartition(" ")[2])


def recognise(description: str, usage_type: str) -> tuple[str, Market] | None:
    """Component and market of a SKU; None if it is none of ours.

    >>> recognise("Nvidia Tesla A100 GPU running in Americas", "OnDemand")
    ('A100-40GB GPU', <Market.ON_DEMAND: 'on-demand'>)
    """
    text = " ".join(description.lower().split())
    for pattern, required, market in _terms():
        if (match := pattern.fullmatch(text)) is None:
            continue
        what_and_where = "".join(match.groups(""))
        if usage_type != (required or usage_type) or _FOREIGN.search(what_and_where):
            return None
        what = _LOCATION.sub("", what_and_where)
        return next(((name, market) for name, known in components().items() if known.fullmatch(what)), None)
    return None


def usd_per_h(sku: Sku, component: str, now: datetime) -> Decimal:
    """The newest price in effect of one core, GiB or GPU for an hour; the first tier that is not free.

    Raises ValueError: there is none we can use; says why, in words.
    """
    usage_unit, hours, base_units = UNITS[kind_of(component)]
    pricing = _newest(sku.pricing, now)
    if pricing.usage_unit != usage_unit:
        raise ValueError(f"is priced per {pricing.usage_unit!r}, not per {usage_unit}")
    if base_units and pricing.base_units not in (0, base_units):
        raise ValueError(f"counts {pricing.base_units:g} base units per {usage_unit}")
    tier = next((tier for tier in pricing.tiers if (tier.units, tier.nanos) != (0, 0)), None)
    if tier is None:
        raise ValueError("has the price 0, which means unknown")
    if tier.currency != "USD":
        raise ValueError(f"is priced in {tier.currency or 'no currency'}, not in USD")
    price = Decimal(tier.units) + Decimal(tier.nanos) / NANOS
    if price <= 0:
        raise ValueError(f"has the price {price}")
    return price / hours


def _newest(pricing: tuple[Pricing, ...], now: datetime) -> Pricing:
    """The one in effect; an undated one counts as older than all others."""
    began = {p: p.effective_at or datetime.min.replace(tzinfo=UTC) for p in pricing}
    latest = max((at for at in began.values() if at <= now), default=None)
    newest = [p for p, at in began.items() if at == latest]
    if len(newest) != 1:
        raise ValueError("has several prices from the same moment on" if newest else "has no price yet")
    return newest[0]


Place = tuple[str, str, Market]
"""Component, region, market."""


SkuRate = Decimal | str
"""What one unit of a component costs for an hour; in words why that is unknown."""
NO_SKU = "no SKU"


def rates_of(skus: Iterable[Sku], now: datetime) -> dict[Place, SkuRate]:
    """Rates, now, of all places that some SKU is about, whatever the order of the SKUs.

    SKUs that agree count once. If they disagree, or one of them has no usable price, it is unknown which is
    meant and the place has no rate.
    """
    by_place: dict[Place, set[tuple[str, SkuRate]]] = {}
    for sku in skus:
        if not (known := recognise(sku.description, sku.usage_type)):
            continue
        component, market = known
        rate: SkuRate
        try:
            rate = usd_per_h(sku, component, now)
        except ValueError as error:
            rate = f"SKU {sku.sku_id} {error}"
        for region in sku.regions:
            by_place.setdefault((component, region, market), set()).add((sku.sku_id, rate))
    return {place: _agreed(priced) for place, priced in by_place.items()}


def _agreed(priced: set[tuple[str, SkuRate]]) -> SkuRate:
    """The one rate of several SKUs."""
    if faults := sorted(rate for _, rate in priced if isinstance(rate, str)):
        return ", ".join(faults)
    rates = {rate for _, rate in priced}
    if len(rates) == 1:
        return rates.pop()
    return f"SKUs disagree (USD/h: {', '.join(sorted(f'{sku_id} {rate:f}' for sku_id, rate in priced))})"


PROVIDER = "gcp"
MACHINE_FILE = "gcp_machine_types.csv"
MACHINE_COLUMNS = ("machine_type", "components", "local_ssd_gib", "markets", "regions", "source", "as_of")
SEPARATOR = "|"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """How Google bills an instance type, and where."""

    instance: InstanceType
    needs: Mapping[str, Decimal]
    """How much of each component it is billed for: cores, GiB, GPUs."""
    local_ssd_gib: int
    """Disks it comes with, billed as a component of their own or with the rest."""
    markets: tuple[Market, ...]
    """On what terms Google starts it."""
    regions: tuple[str, ...]
    """Where some zone has it."""
    source: str
    """Of the regions, as is the date."""
    as_of: date


@cache
def load_machines() -> tuple[MachineType, ...]:
    """The shipped machine types. Raises CatalogError: names file and line; as `read_machines`."""
    return read_machines(catalog_path(MACHINE_FILE), load_instances())


def read_machines(path: Path, instances: Mapping[InstanceKey, InstanceType]) -> tuple[MachineType, ...]:
    """Machine types of a file, joined to ``instances.csv``.

    Raises CatalogError: the file is missing or a row is broken, double, or of a machine or component that
    nobody knows; it names file and line.
    """
    table = read_table(path, MACHINE_COLUMNS, lambda row: (row[0], _machine(row, instances)))
    return tuple(table.values())


def _machine(row: list[str], instances: Mapping[InstanceKey, InstanceType]) -> MachineType:
    name, components, local_ssd_gib, markets, regions, source, as_of = row
    instance = instances.get((PROVIDER, name))
    if instance is None:
        raise ValueError(f"{PROVIDER} {name!r} is not in {INSTANCE_FILE}")
    if not (regions and source):
        raise ValueError("regions or source is empty")
    return MachineType(
        instance=instance,
        needs=needs_of(components.split(SEPARATOR), instance, int(local_ssd_gib)),
        local_ssd_gib=int(local_ssd_gib),
        markets=tuple(map(Market, markets.split(SEPARATOR))) if markets else tuple(Market),
        regions=tuple(regions.split(SEPARATOR)),
        source=source,
        as_of=parse_date(as_of),
    )


def needs_of(components: Iterable[str], instance: InstanceType, local_ssd_gib: int) -> Mapping[str, Decimal]:
    """How much of each component a machine is billed for; what is unknown counts as none.

    Raises ValueError: a component is unknown, or the machine has none of it.
    """
    amounts = {
        SkuKind.CORE: Decimal(instance.vcpus or 0),
        SkuKind.RAM: Decimal(instance.memory_bytes or 0) / GIB,
        SkuKind.GPU: Decimal(instance.num_gpus),
        SkuKind.SLICE: Decimal(instance.num_gpus),
        SkuKind.SSD: Decimal(local_ssd_gib),
    }
    needs = {component: amounts[kind_of(component)] for component in components}
    if not all(amount > 0 for amount in needs.values()):
        raise ValueError(f"{instance.instance_type} is billed by a component of which it has none")
    return needs


SOURCE = "Cloud Billing Catalog"
# Every machine has these; of the others only what Google prices by the GPU is worth a gap.
_COMMON = (Market.ON_DEMAND, Market.SPOT)
_DIGITS = 9


def part_of(
    region: str,
    market: Market,
    machines: Iterable[MachineType],
    rates: Mapping[Place, SkuRate],
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
            offers.append(
                machine.instance.offer(
                    region=region,
                    market=market,
                    usd_per_h=float(round(usd_per_h, _DIGITS)),
                    retrieved_at=retrieved_at,
                    source=SOURCE,
                )
            )
        elif market in _COMMON or any(
            rate != NO_SKU and kind_of(name) in (SkuKind.GPU, SkuKind.SLICE) for name, rate in of.items()
        ):
            gaps.append(f"{machine.instance.instance_type} {region} {market}: {missing}")
            unpriced.append(machine.instance.instance_type)
    return Part(
        scope=f"{region} {market}",
        offers=tuple(offers),
        gaps=tuple(gaps),
        place=(PROVIDER, region, market),
        unpriced=tuple(unpriced),
    )


def machine_usd_per_h(machine: MachineType, rates: Mapping[str, SkuRate]) -> tuple[Decimal | None, str]:
    """Sum over components of amount x rate; without a sum, which components have no price and why."""
    if missing := [f"{name} ({rate})" for name, rate in rates.items() if isinstance(rate, str)]:
        return None, f"no price of {', '.join(missing)}"
    return sum((machine.needs[name] * Decimal(rate) for name, rate in rates.items()), Decimal(0)), ""
